import type { Context } from 'hono';
import { OmpError } from '#contract';
import type { Verbs } from '../core/verbs.ts';
import type { Env } from './call.ts';

/** The caller's verb, or `unsupported_capability` where the provider lacks it. */
export function supported<Name extends keyof Verbs>(c: Context<Env>, name: Name): NonNullable<Verbs[Name]> {
  const verb = c.get('verbs')[name];
  if (verb) return verb;
  throw new OmpError('unsupported_capability', `the provider does not support ${name}`, {
    provider: c.get('provider'),
  });
}
