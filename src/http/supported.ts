import type { Context } from 'hono';
import { OmpError } from '#contract';
import type { Verbs } from '../core/verbs.ts';
import type { Env } from './call.ts';

type Verb = Exclude<keyof Verbs, 'read_only'>;
const CHANGES: readonly Verb[] = ['add', 'update', 'delete'];

/** The caller's verb, or `unsupported_capability` where the provider lacks it. */
export function supported<Name extends Verb>(c: Context<Env>, name: Name): NonNullable<Verbs[Name]> {
  const { [name]: verb, read_only } = c.get('verbs');
  if (verb) return verb;
  const why = read_only !== undefined && CHANGES.includes(name) ? `: ${read_only}` : '';
  throw new OmpError('unsupported_capability', `the provider does not support ${name}${why}`, {
    provider: c.get('provider'),
  });
}
