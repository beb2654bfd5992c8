import type { Case } from '../kit.ts';
import { CAPABILITIES, CORE } from './core.ts';
import { GRANTS } from './grants.ts';
import { LIFECYCLE } from './lifecycle.ts';
import { LIST } from './list.ts';
import { AUDIT, CONTEXT } from './open.ts';
import { SCOPED } from './scopes.ts';
import { SEARCH } from './search.ts';

/** The cases by profile, in the order in which they run. */
export const CASES = {
  core: [...CAPABILITIES, ...CORE],
  list: LIST,
  lifecycle: LIFECYCLE,
  search: SEARCH,
  scopes: SCOPED,
  grants: GRANTS,
  audit: AUDIT,
  context: CONTEXT,
} as const satisfies Readonly<Record<string, readonly Case[]>>;

export type Profile = keyof typeof CASES;
export const PROFILES = Object.keys(CASES) as readonly Profile[];
