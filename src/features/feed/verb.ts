import { z } from 'zod';
import { AUDIT_ACTIONS, type Call, type Change, type ChangeFilter, type ChangePart, type Memory } from '#contract';
import { changeMatcher, recordBytes, shownScope } from '#toolbox';
import type { Access } from '../../core/access.ts';
import { NO_FACTS } from '../../core/audit-queue.ts';
import type { Store } from '../../core/store.ts';
import { scopeGlob, short, time, userId, wholeNumber } from '../../verbs/fields.ts';
import { verb } from '../../verbs/verb.ts';
import { MemoryFields, memoryExample, toWire } from '../../verbs/wire-memory.ts';

/** The longest wait of a request, in seconds. */
const MAX_WAIT = 60;
/** Parts without a match that one request reads, so that it ends in time. */
const MAX_PARTS = 20;
/** Memories that are read at once. */
const TOGETHER = 10;
/** Usual size of a change. */
const CHANGE_BYTES = 300;

/** A position on Citus names each node. */
const position = short(4_096).optional();

const ChangesInput = z.object({
  after: position.meta({
    description:
      '`next_cursor` of the previous answer; `now`: only what changes from now on. Default: from the beginning.',
  }),
  last_event_id: position,
  user_id: userId.optional().meta({ description: 'Only changes of this user.' }),
  scope: scopeGlob.optional(),
  limit: wholeNumber('Maximum changes', 1, 1000).default(100),
  wait: wholeNumber('Seconds to wait for a change if there is none', 0, MAX_WAIT).default(0),
  include: z.enum(['memory']).optional().meta({ description: '`memory`: with the memory as it is now.' }),
});

/** What has an audit entry already: a stream asks again and again with one call. */
const recorded = new WeakSet<Call>();

type Reader = Access & { readonly store: Required<Pick<Store, 'changes'>> };

/** The feed of changes (Decision 51). */
export const changes = verb({
  name: 'changes',
  method: 'GET',
  path: '/changes',
  input: ChangesInput,
  headers: { last_event_id: 'Last-Event-ID' },
  needs: ['changes'],
  remedy: 'it needs the audit log (OMP_AUDIT) of a store that this gateway fills',
  feature: 'changes',
  // Only of an answer with changes.
  facts: 'own',
  async run({ user_id, scope, ...query }, access, call) {
    const filter = access.filter({ user_id, scope });
    const facts = user_id === undefined ? NO_FACTS : access.facts({ user_id, scope });
    const answering = (async () => {
      access.requireUser(user_id, scope);
      return read(access, filter, query, call);
    })();
    // An answer without a change says nothing, and there may be many of them. Those of a stream are one. Whoever leaves is told nothing.
    const isSilent = await answering.then(
      (answer) => answer.changes.length === 0 || recorded.has(call),
      () => call.aborted,
    );
    if (isSilent) return answering;
    recorded.add(call);
    return access.audited('changes', facts, call, () => answering);
  },
  id: 'readChanges',
  summary: 'Follow the changes of memories',
  description: `Changes that the caller may read, oldest first, in an order that never changes: none is missing, and none comes twice.
A change says that a memory was added, changed, deleted or imported, or that all memories of a user were erased; read the memory
to know what it is now. With \`Accept: text/event-stream\` they are sent as events, whose ids are cursors. A cursor that the log
does not reach back to is 410. Available if \`features.changes\` is true.`,
  success: {
    description: 'The changes.',
    schema: z
      .looseObject({
        changes: z.array(
          z.looseObject({
            cursor: z.string().meta({ description: 'The position after this change.' }),
            id: z.string().nullable().meta({ description: 'The memory; null: all memories of the user.' }),
            action: z.enum(AUDIT_ACTIONS).meta({ description: 'add, update, delete, import or erase.' }),
            user_id: z.string(),
            scope: z
              .string()
              .nullable()
              .meta({ description: 'Scope of the memory; of one that was moved away, the scope it had.' }),
            at: time('Time of the change, UTC.'),
            caller: z
              .string()
              .nullable()
              .meta({ description: 'Name of the key or subject of the token; null: anonymous.' }),
            memory: MemoryFields.optional().meta({
              description: 'With `include=memory`, if it exists and can be read.',
            }),
          }),
        ),
        next_cursor: z.string().meta({ description: '`after` of the next request.' }),
        more: z.boolean().meta({ description: 'Whether there may be more changes already.' }),
      })
      .meta({ id: 'Changes' }),
    example: {
      changes: [
        {
          cursor: '5f0a3c1e-81201-7',
          id: memoryExample.id,
          action: 'add',
          user_id: memoryExample.user_id,
          scope: memoryExample.scope,
          at: memoryExample.created_at,
          caller: 'editor',
        },
      ],
      next_cursor: '5f0a3c1e-81244-0',
      more: false,
    },
  },
  errors: ['invalid_request', 'unsupported_capability'],
  consistent: false,
});

type Query = Omit<z.output<typeof ChangesInput>, 'user_id' | 'scope'>;

async function read(access: Reader, filter: ChangeFilter, query: Query, call: Call) {
  const { feed } = access;
  const { limit, wait, include } = query;
  const after = query.last_event_id ?? query.after;
  // Before the first read: what changes after it is then told.
  const follower = wait > 0 ? await feed.follow(filter, wait * 1_000) : undefined;
  try {
    let part = await readPart(access, filter, { after, limit }, call);
    while (follower && part.changes.length === 0 && !part.more) {
      const isWoken = await call.idle(call.unlessAborted(follower.next()));
      if (!isWoken) break;
      part = await readPart(access, filter, { after: part.next, limit }, call);
    }
    const shown = include ? await withMemories(access, part.changes, call) : part.changes.map((change) => ({ change }));
    // Memories that are too large together end the page.
    const isWhole = shown.length === part.changes.length;
    return {
      changes: shown.map((one) => toWireChange(access, filter, one)),
      next_cursor: isWhole ? part.next : (part.changes[shown.length - 1] as Change).cursor,
      more: part.more || !isWhole,
    };
  } finally {
    follower?.close();
  }
}

/** Looks on until there is a match. Followers are woken together, and many ask for the same. */
async function readPart(
  { store, shares }: Reader,
  filter: ChangeFilter,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
  call: Call,
): Promise<ChangePart> {
  const ask = (from: string | undefined): Promise<ChangePart> => {
    const query = { ...filter, limit, left_scopes: 'first', after: from } as const;
    return shares.shared(store.name, JSON.stringify(query), call, () => store.changes(query, call));
  };
  let part = await ask(after);
  for (let parts = 1; part.changes.length === 0 && part.more && parts < MAX_PARTS; parts++) part = await ask(part.next);
  return part;
}

interface Shown {
  readonly change: Change;
  /** As it is now; undefined: not asked for, absent, or not readable. */
  readonly memory?: Memory | undefined;
}

/** The changes with their memories, as many as an answer may hold. */
function withMemories(access: Access, changes: readonly Change[], call: Call): Promise<Shown[]> {
  const { store, shares, bounds } = access;
  const memoryOf = async ({ id, user_id }: Change): Promise<Memory | undefined> => {
    if (id === null) return undefined;
    const ref = access.ref({ id, user_id }, 'read');
    const memory = await (store.mounts?.find(ref, call) ?? store.get(ref, call));
    return memory && access.readable(memory, user_id);
  };
  return shares.records(changes.length, call, async () => {
    const result: Shown[] = [];
    let bytes = 0;
    for (let start = 0; start < changes.length && bytes < bounds.max_bytes; start += TOGETHER) {
      const some = changes.slice(start, start + TOGETHER);
      const memories = await Promise.all(some.map(memoryOf));
      for (const [i, change] of some.entries()) {
        const memory = memories[i];
        bytes += CHANGE_BYTES + (memory ? recordBytes(memory) : 0);
        if (bytes > bounds.max_bytes && result.length > 0) break;
        result.push({ change, memory });
      }
    }
    return { result, count: result.length, bytes };
  });
}

/** A scope that the caller may not read is not shown: the change is that a memory was moved there. */
function toWireChange(access: Access, filter: ChangeFilter, { change, memory }: Shown) {
  if (!access.mayAccess(change.user_id) || !changeMatcher(filter)(change)) throw access.mismatch();
  const { left_scopes: _, key: __, ...rest } = change;
  return { ...rest, scope: shownScope(change, access.admitsRead), ...(memory && { memory: toWire(memory) }) };
}
