import { z } from 'zod';
import { type Call, MAX_BATCH_SIZE, type Memory, type NewMemory, OmpError } from '#contract';
import { recordBytes, recordTooLarge } from '#toolbox';
import { type Access, denied, withTrust } from '../core/access.ts';
import { currentHits } from '../core/current-memories.ts';
import type { RequestKey } from '../core/idempotency.ts';
import type { Store } from '../core/store.ts';
import { ErrorFields, readIdempotencyKey, score, trueOrFalse, upToMany } from './fields.ts';
import { canSearch, searchAllowed } from './search.ts';
import { verb } from './verb.ts';
import {
  CreateBody,
  MemoryFields,
  memoryExample,
  newMemoryExample,
  readAll,
  readNewMemory,
  toWire,
  type WireMemory,
} from './wire-memory.ts';

const mayAdd = (access: Access, { user_id, scope }: NewMemory): boolean =>
  access.mayAccess(user_id) && access.admitsWrite(scope);

/** The key of a request as the stores of its memories take it. Throws if one takes none. */
function requestKey(
  access: Access,
  key: ReturnType<typeof readIdempotencyKey>,
  inputs: readonly (NewMemory | undefined)[],
): RequestKey {
  for (const input of inputs) {
    const store = input && access.storeAt(input.scope);
    if (store?.idempotent === false) throw access.unsupported('Idempotency-Key', store);
  }
  return { caller: access.principal.id, ...key };
}

const idempotency_key = z.string().optional();
const KEY_HEADER = { idempotency_key: 'Idempotency-Key' };

/** The key in the answer of an add. Reserved, so that a client that sends the memory back does not store it. */
export const SIMILAR = 'x-omp-similar';

const AddedFields = MemoryFields.extend({
  [SIMILAR]: z
    .array(z.looseObject({ id: z.string(), content: z.string(), score }))
    .optional()
    .meta({
      description:
        'Other memories that say nearly the same, best first, at most 3; absent: not known, or not asked for.',
    }),
}).meta({ id: 'AddedMemory', patternProperties: { '^x-': { description: 'Custom keys, as stored.' } } });

/** A new memory in an answer. */
export type AddedMemory = WireMemory & {
  readonly [SIMILAR]?: readonly { readonly id: string; readonly content: string; readonly score: number }[];
};

/** SPEC, POST /memories. Idempotent with a key. */
export const add = verb({
  name: 'add',
  method: 'POST',
  path: '/memories',
  input: z.object({
    memory: z.unknown(),
    idempotency_key,
    similar: trueOrFalse.meta({
      description: `Whether the answer has \`${SIMILAR}\`. Needs \`features.similar\`.`,
      type: 'boolean',
    }),
  }),
  headers: KEY_HEADER,
  body: { field: 'memory', schema: CreateBody, example: newMemoryExample },
  needs: ['add'],
  writes: true,
  read({ memory: body, idempotency_key, similar }, { storeAt, max_record_bytes }, call) {
    const input = readNewMemory(body, storeAt, call);
    if (recordBytes(input) > max_record_bytes) throw recordTooLarge(max_record_bytes);
    const key = idempotency_key === undefined ? undefined : readIdempotencyKey(idempotency_key, input);
    return { input, key, similar };
  },
  facts: ({ input }, access) => access.facts(input),
  async run({ input, key, similar }, access, call): Promise<AddedMemory> {
    if (!mayAdd(access, input)) throw denied();
    const memory = await access.store.add({ input, key: key && requestKey(access, key, [input]) }, call);
    const added = access.writable(memory, input.user_id);
    const others = similar ? await similarTo(added, access, call) : undefined;
    return others ? { ...toWire(added), [SIMILAR]: others } : toWire(added);
  },
  id: 'addMemory',
  summary: 'Create a memory',
  description: 'Optional fields given as null count as omitted. Unknown fields are ignored.',
  success: {
    status: 201,
    description: 'The created memory.',
    schema: AddedFields,
    example: memoryExample,
    tagged: true,
  },
});

/** Most memories in `SIMILAR`, and hits that are looked through for them. */
const MOST_SIMILAR = 3;
const HITS = 10;

/**
 * The least score of a memory that says nearly the same (Decision 58), measured on eval/data/restatements.json with the bundled
 * embedder: of facts said in other words, and of facts that changed since, at least 95 % and 82 % reach it; of the other facts
 * of a user, none for 72 % to 83 % of them.
 */
export const leastSimilar = ({ vector_search, keyword_search }: Store['capabilities']): number => {
  if (!keyword_search) return 0.7;
  return vector_search ? 0.5 : 0.3;
};

/**
 * What the caller may read that says nearly the same, and is current. Undefined: the store cannot search, or the search failed. Does
 * not throw, because the memory is added.
 */
async function similarTo(memory: Memory, access: Access, call: Call): Promise<AddedMemory[typeof SIMILAR]> {
  const { id, user_id, content: text } = memory;
  if (!canSearch(access) || !access.reaches(user_id)) return undefined;
  const query = { user_id, text, tags: [], limit: HITS, written: access.writtenOf(undefined, false) };
  try {
    const { items } = await access.audited('search', access.facts({ user_id }), call, () =>
      searchAllowed(access, query, call),
    );
    const others = withTrust(items, false, (hit) => hit.memory).filter((hit) => hit.memory.id !== id);
    const least = leastSimilar(access.store.capabilities);
    // The memory may supersede some of them.
    return currentHits([{ memory, score: 0 }, ...others], { now: new Date(), untrusted: false })
      .filter((hit) => hit.score >= least)
      .slice(0, MOST_SIMILAR)
      .map((hit) => ({ id: hit.memory.id, content: hit.memory.content, score: hit.score }));
  } catch (err) {
    access.log.warn({ request_id: call.requestId, err }, 'what is similar to a new memory is not known');
    return undefined;
  }
}

const memoriesError = `must hold 1 to ${MAX_BATCH_SIZE} memories`;
/** Each memory is parsed by itself, so that an invalid one does not fail the others. */
export const memoryBodies = upToMany(z.unknown(), MAX_BATCH_SIZE, memoriesError).refine(
  (all) => all.length > 0,
  memoriesError,
);

/** Decision 35. Outcomes in the order of the request: each memory, or why it was not added. */
export const batch = verb({
  name: 'batch',
  method: 'POST',
  path: '/memories/batch',
  input: z.object({ memories: memoryBodies, idempotency_key }),
  headers: KEY_HEADER,
  body: {
    schema: z
      .object({ memories: z.array(CreateBody).min(1).max(MAX_BATCH_SIZE) })
      .meta({ id: 'NewMemories', description: 'An invalid memory does not fail the others.' }),
    example: { memories: [newMemoryExample, { user_id: 'u1', content: 'user works from Lisbon' }] },
  },
  needs: ['batch'],
  writes: true,
  feature: 'batch',
  // One for each memory.
  facts: 'own',
  async run({ memories, idempotency_key }, access, call) {
    const { max_record_bytes } = access;
    const read = (body: unknown) => readNewMemory(body, access.storeAt, call);
    const inputs = await readAll(memories, read, recordBytes, max_record_bytes);
    // An invalid memory has no other form than its own.
    const forms = inputs.map((one, place) => (one instanceof OmpError ? memories[place] : one));
    const key = idempotency_key === undefined ? undefined : readIdempotencyKey(idempotency_key, forms);
    const outcomes = await addAll(access, { inputs, key }, call);
    return {
      results: outcomes.map((outcome) =>
        outcome instanceof OmpError ? { error: outcome } : { memory: toWire(outcome) },
      ),
    };
  },
  id: 'addMemories',
  summary: 'Create several memories',
  description: `Each memory is added, or has an error in its place. Where the backend has transactions, a failure adds none and
answers one error. \`Idempotency-Key\` covers the whole batch. Counts as one request.`,
  success: {
    description: 'The results, in the order of the request.',
    schema: z
      .looseObject({
        results: z
          .array(z.union([z.looseObject({ memory: MemoryFields }), z.looseObject({ error: ErrorFields })]))
          .meta({ description: 'In the order of the request: the created memory, or why it was not created.' }),
      })
      .meta({ id: 'BatchResults' }),
    example: {
      results: [
        { memory: memoryExample },
        { error: { code: 'invalid_request', message: 'content: must not be blank', type: 'invalid' } },
      ],
    },
  },
  denies: false,
});

interface AddAll {
  readonly inputs: readonly (NewMemory | OmpError)[];
  readonly key: ReturnType<typeof readIdempotencyKey> | undefined;
}

/** Adds what the caller may add. Each memory has an audit entry. Throws if the backend failed and nothing was added. */
async function addAll(
  access: Access & { readonly store: Required<Pick<Store, 'batch'>> },
  { inputs, key }: AddAll,
  call: Call,
): Promise<(Memory | OmpError)[]> {
  const allowedInputs = inputs.map((input) =>
    input instanceof OmpError || !mayAdd(access, input) ? undefined : input,
  );
  const adding = (async () =>
    allowedInputs.some(Boolean)
      ? access.store.batch({ inputs: allowedInputs, key: key && requestKey(access, key, allowedInputs) }, call)
      : [])();
  const outcomes = await Promise.allSettled(
    inputs.map(async (input, place) => {
      if (input instanceof OmpError) throw input;
      return access.audited('add', access.facts(input), call, async () => {
        if (!allowedInputs[place]) {
          // The audit entries of failures always follow those of the added memories.
          await adding.catch(() => {});
          throw denied();
        }
        const outcome = (await adding)[place];
        if (outcome instanceof OmpError) throw outcome;
        return access.writable(outcome as Memory, input.user_id);
      });
    }),
  );
  await adding;
  return outcomes.map((outcome) => {
    if (outcome.status === 'fulfilled') return outcome.value;
    if (outcome.reason instanceof OmpError) return outcome.reason;
    throw outcome.reason;
  });
}
