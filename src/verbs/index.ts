import { FEATURE_VERBS } from '../features/index.ts';
import { add, batch } from './add.ts';
import { audit } from './audit.ts';
import { get, list, remove, update } from './get-list-update-delete.ts';
import { context, search } from './search.ts';

/** Every verb: those of the specification, and those of features. A path with `{id}` comes after those that it would match too. */
export const VERB_TABLE = { add, list, batch, search, get, update, delete: remove, context, audit, ...FEATURE_VERBS };
