import type { Options } from './options.ts';
import type { Namespaces } from './parts.ts';

/**
 * `single`: everybody in `base`. `sharded`: 32 namespaces by the first character of the user part, each with rate limits
 * of its own. `per-user`: one for each user.
 */
export function createNamespaces(layout: Options['layout'], base: string): Namespaces {
  const kept = { single: 0, sharded: 1, 'per-user': Number.POSITIVE_INFINITY }[layout];
  return { own: base, of: (userPart) => (kept === 0 ? base : `${base}-${userPart.slice(0, kept)}`) };
}
