import type { Reading } from './given.ts';

// biome-ignore lint/suspicious/noTemplateCurlyInString: quoted for the reader
const SYNTAX = 'a reference is ${NAME} or ${NAME:-default}, a plain ${ is written $${';
const TOKEN = /\$\$|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?/g;

/**
 * Replaces `${NAME}` and `${NAME:-default}` by environment variables and `$$` by `$`; any other `$` stays.
 * A variable that is empty counts as unset. Each reference that leads nowhere becomes one entry of `problems`, each name
 * one of `referenced`.
 */
export function resolveReferences(
  text: string,
  { env, referenced }: Pick<Reading, 'env' | 'referenced'>,
): { text: string; problems: string[] } {
  const problems: string[] = [];
  const resolved = text.replace(TOKEN, (token, name?: string, fallback?: string) => {
    if (token === '$$') return '$';
    if (name !== undefined) referenced.add(name);
    if (name === undefined) problems.push(SYNTAX);
    else if (!env[name] && fallback === undefined) problems.push(`the environment variable ${name} is not set`);
    return (name && env[name]) || (fallback ?? '');
  });
  return { text: resolved, problems };
}
