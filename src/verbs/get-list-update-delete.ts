import { z } from 'zod';
import type { Call, ListQuery, Memory, MemoryPatch, Position } from '#contract';
import { type Access, recordFacts, type Target, withTrust } from '../core/access.ts';
import type { AuditFacts } from '../core/audit-queue.ts';
import { currentAmong } from '../core/current-memories.ts';
import { cursorKind } from '../core/cursor.ts';
import { type Page, pageOf } from '../core/read-shares.ts';
import type { Store } from '../core/store.ts';
import { changeChecked } from '../core/with-origin.ts';
import {
  cursor,
  leftOut,
  next_cursor,
  originFilter,
  queryDate,
  scopeGlob,
  tag,
  trueOrFalse,
  untrusted,
  userId,
  wholeNumber,
} from './fields.ts';
import { verb } from './verb.ts';
import {
  MemoryFields,
  memoryExample,
  memoryTarget,
  PatchBody,
  readPatch,
  readTarget,
  toWire,
  versionsIn,
  withoutUndefined,
} from './wire-memory.ts';

export const factsOfId = ({ id }: Target): AuditFacts => ({ user_id: null, memory_id: id, scope: null });

/**
 * SPEC, GET /memories/{id}. Like `update` and `delete`, throws `not_found` if there is no such record or the caller may not
 * access its user, and `scope_denied` if the grants do not cover its scope.
 */
export const get = verb({
  name: 'get',
  method: 'GET',
  path: '/memories/{id}',
  input: z.object(memoryTarget),
  headers: { user_id: 'X-User-Id' },
  needs: [],
  read: readTarget,
  facts: factsOfId,
  async run(target, access, call, facts) {
    const memory = await access.store.get(access.ref(target, 'read'), call);
    if (!memory) throw await access.absenceError('read', target, call, facts);
    return toWire(recordFacts(facts, access.readable(memory, target.user_id)));
  },
  id: 'getMemory',
  summary: 'Read one memory',
  success: { description: 'The memory.', schema: MemoryFields, example: memoryExample, tagged: true },
  errors: ['not_found'],
});

export const changeTarget = { ...memoryTarget, if_match: z.string().optional() };
export const CHANGE_HEADERS = { user_id: 'X-User-Id', if_match: 'If-Match' };

/** The target of a change, with the versions that `If-Match` admits. */
export function readChangeTarget(
  { if_match, ...input }: Target & { readonly if_match?: string | undefined },
  access: Access,
): Target {
  const target = readTarget(input);
  if (if_match === undefined) return target;
  const store = access.storeOf(target.id) ?? access.store;
  if (!store.capabilities.etags) throw access.unsupported('If-Match', store);
  return { ...target, versions: versionsIn(if_match) };
}

const patchExample = { tags: ['tooling', 'nodejs'], valid_to: '2036-03-01T00:00:00Z' };

/** SPEC, PATCH /memories/{id}. */
export const update = verb({
  name: 'update',
  method: 'PATCH',
  path: '/memories/{id}',
  input: z.object({ ...changeTarget, patch: z.unknown() }),
  headers: CHANGE_HEADERS,
  body: { field: 'patch', schema: PatchBody, example: patchExample },
  needs: ['update'],
  writes: true,
  read({ patch: body, ...input }, access, call) {
    const target = readChangeTarget(input, access);
    return { target, patch: readPatch(body, access.storeOf(target.id) ?? access.store, call) };
  },
  facts: ({ target }) => factsOfId(target),
  async run({ target, patch }, access, call, facts) {
    const { store, admitsRead } = access;
    if (patch.scope !== undefined && !access.admitsWrite(patch.scope)) {
      throw await access.accessError(target, call, facts);
    }
    const reveals = patch.scope !== undefined && admitsRead(patch.scope) && !access.readsAllItWrites;
    const memory = await (reveals
      ? updateReadable(access, { target, patch }, call, facts)
      : store.update({ ref: access.ref(target, 'write'), patch }, call));
    if (!memory) throw await access.absenceError('write', target, call, facts);
    access.writable(memory, target.user_id);
    return toWire(admitsRead(memory.scope) ? memory : withoutHidden(memory, patch));
  },
  id: 'updateMemory',
  summary: 'Update fields of a memory',
  description: '`tags` and `supersedes` replace the whole list. Only `valid_to` and `x-` keys may be null.',
  success: {
    description: 'The full memory.',
    schema: MemoryFields,
    example: {
      ...memoryExample,
      tags: patchExample.tags,
      valid_to: '2036-03-01T00:00:00.000Z',
      updated_at: '2026-03-01T09:31:00.000Z',
    },
    tagged: true,
  },
  errors: ['invalid_request', 'unsupported_capability', 'not_found'],
});

/** Checks `read` before the change, and that nobody changes the memory between the two, where the backend has versions. */
function updateReadable(
  access: Access & { readonly store: Required<Pick<Store, 'update'>> },
  { target, patch }: { readonly target: Target; readonly patch: MemoryPatch },
  call: Call,
  facts: AuditFacts,
): Promise<Memory | undefined> {
  const { store } = access;
  const find = async () => {
    const memory = await store.get(access.ref(target, 'read'), call);
    if (!memory) throw await access.absenceError('read', target, call, facts);
    return memory;
  };
  return changeChecked(store, access.ref(target, 'write'), find, (ref) => store.update({ ref, patch }, call));
}

/** What a caller who may not read a memory gets of it (Decision 14): what names it, and what the caller sent itself. */
const withoutHidden = (
  { id, user_id, created_at, updated_at, status }: Memory,
  { extensions: _, ...patch }: MemoryPatch,
): Memory => ({
  id,
  content: '',
  user_id,
  created_at,
  updated_at,
  scope: null,
  tags: [],
  source: null,
  confidence: null,
  valid_from: null,
  valid_to: null,
  supersedes: [],
  embedding_model: null,
  status,
  extensions: {},
  ...patch,
});

/** SPEC, DELETE /memories/{id}. */
export const remove = verb({
  name: 'delete',
  method: 'DELETE',
  path: '/memories/{id}',
  input: z.object(changeTarget),
  headers: CHANGE_HEADERS,
  needs: ['delete'],
  writes: true,
  read: readChangeTarget,
  facts: factsOfId,
  async run(target, access, call, facts) {
    if (await access.store.delete(access.ref(target, 'delete'), call)) return;
    throw await access.absenceError('delete', target, call, facts);
  },
  id: 'deleteMemory',
  summary: 'Delete a memory permanently',
  description: 'To keep the history, add a memory that names this one in `supersedes`.',
  success: { status: 204, description: 'Deleted.' },
  errors: ['unsupported_capability', 'not_found'],
});

const ListInput = z.object({
  user_id: userId,
  scope: scopeGlob.optional(),
  tag: tag.optional().meta({ description: 'Only memories with this tag.' }),
  since: queryDate.optional(),
  until: queryDate.optional(),
  limit: wholeNumber('Maximum results per page', 1, 500).default(50),
  current: trueOrFalse.meta({
    description: 'Leaves out what is not valid now, or superseded by another memory of the page.',
    type: 'boolean',
  }),
  origin: originFilter.optional(),
  untrusted,
  cursor,
});

const ListCursor = cursorKind<Position>(undefined, { position: (last) => last, place: (position) => position });

/** SPEC, GET /memories. */
export const list = verb({
  name: 'list',
  method: 'GET',
  path: '/memories',
  input: ListInput,
  needs: ['list'],
  read({ cursor, limit, tag, current, origin, untrusted, ...filters }, access) {
    access.requireTimes({ since: filters.since, until: filters.until }, 'temporal');
    const written = access.writtenOf(origin, untrusted);
    const query = { tags: tag === undefined ? [] : [tag], ...withoutUndefined({ ...filters, written }) };
    return { query, after: ListCursor.read(cursor, query), limit, current, untrusted };
  },
  facts: ({ query }, access) => access.facts(query),
  async run({ query, after, limit, current, untrusted }, access, call) {
    const { items, more } = await listAllowed(access, { limit, ...query, ...(after && { after }) }, call);
    const last = items.at(-1);
    let page = withTrust(items, untrusted, (memory) => memory);
    if (current) page = page.filter(currentAmong(page, { now: new Date(), untrusted: untrusted === true }));
    return { items: page.map(toWire), next_cursor: ListCursor.write(more ? last : undefined, query) };
  },
  id: 'listMemories',
  summary: "List a user's memories",
  description: 'Newest first. Pass each `next_cursor` as `cursor`, with the same filters, until it is null.',
  success: {
    description: 'One page.',
    schema: z
      .looseObject({
        items: z
          .array(MemoryFields)
          .meta({ description: 'Newest first: by `created_at`, then `id`, both descending.' }),
        next_cursor,
        ...leftOut,
      })
      .meta({ id: 'MemoryPage' }),
    example: { items: [memoryExample], next_cursor: null },
  },
});

/** A query of a caller. The gateway adds the allowed scopes and the byte limits. */
export type CallerQuery<Query> = Omit<Query, 'scope' | 'within' | 'outside' | 'max_bytes' | 'max_content_bytes'> & {
  readonly scope?: string;
};

/** The memories of a list that the caller may read. */
async function listAllowed(
  access: Access & { readonly store: Required<Pick<Store, 'list'>> },
  { user_id, limit, ...rest }: CallerQuery<ListQuery>,
  call: Call,
): Promise<Page<Memory>> {
  const { store, shares, bounds } = access;
  access.requireUser(user_id, rest.scope);
  return shares.records(limit, call, async () => {
    // One more record than the limit tells whether the list continues.
    const memories = await store.list({ user_id, limit: limit + 1, ...rest, ...bounds }, call);
    for (const memory of memories) access.readable(memory, user_id);
    return pageOf(memories, memories, limit);
  });
}
