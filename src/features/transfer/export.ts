import { z } from 'zod';
import {
  type Call,
  type ExportedMemory,
  invalidRequest,
  MAX_BATCH_SIZE,
  type Memory,
  type MemoryVersion,
  OmpError,
  UNTRUSTED,
} from '#contract';
import { isSameRecord, recordBytes } from '#toolbox';
import type { Access } from '../../core/access.ts';
import { NO_FACTS } from '../../core/audit-queue.ts';
import { idCursor } from '../../core/cursor.ts';
import { MAX_ANSWER_BYTES } from '../../core/read-shares.ts';
import type { Store } from '../../core/store.ts';
import { storedAmong } from '../../core/with-origin.ts';
import { memoryBodies } from '../../verbs/add.ts';
import {
  cursor,
  dateTime,
  ErrorFields,
  leftOut,
  MAX_VERSION,
  memoryId,
  next_cursor,
  parse,
  queryDate,
  trueOrFalse,
  upToMany,
  userId,
  wholeNumber,
  wholeVersion,
} from '../../verbs/fields.ts';
import { verb } from '../../verbs/verb.ts';
import {
  CreateBody,
  MemoryFields,
  memoryExample,
  readAll,
  readNewMemory,
  readStated,
  toWire,
} from '../../verbs/wire-memory.ts';

/*
 * Memories with their ids and times, out of a store and into it (Decision 43).
 */

const MAX_IDS = 100;
/** Versions of one memory in an import. */
const MAX_VERSIONS = 10_000;
/** Versions that are checked in one turn of the event loop: a request has room for thousands, and 100 take some 10 ms. */
const VERSIONS_PER_TURN = 100;
/** Far below `MAX_VERSION`, so that every number that a memory counts on to can be read. */
const importedNumber = wholeVersion(MAX_VERSION / 2);

const ExportInput = z.object({
  id: upToMany(memoryId, MAX_IDS, `must be at most ${MAX_IDS} ids`)
    .optional()
    .meta({ description: 'Only these memories.', param: { style: 'form', explode: true } }),
  user_id: userId.optional().meta({ description: 'Only memories of this user.' }),
  since: queryDate.optional().meta({ description: 'Only memories changed at or after this time.' }),
  vectors: trueOrFalse.meta({ description: 'Whether each memory has its `vector`.', type: 'boolean' }),
  versions: trueOrFalse.meta({
    description: 'Whether each memory has its `version` and `versions`, if its store has versions.',
    type: 'boolean',
  }),
  limit: wholeNumber('Maximum memories per page', 1, 500).default(100),
  cursor,
});

const ExportCursor = idCursor('export');

export const exportMemories = verb({
  name: 'export',
  method: 'GET',
  path: '/export',
  input: ExportInput,
  needs: ['export'],
  feature: 'export',
  demands: { read: 'all', users: { in: 'user_id' } },
  facts: ({ user_id }, access) => (user_id === undefined ? NO_FACTS : access.facts({ user_id })),
  async run({ cursor, limit, id: ids, user_id, since, vectors, versions }, access, call) {
    const { store, shares } = access;
    const filters = { ids, user_id, since };
    const after = ExportCursor.read(cursor, filters);
    const query = { after, ids, user_id, since, vectors, versions, limit, max_bytes: MAX_ANSWER_BYTES };
    const { items, next } = await shares.alone(call, () => store.export(query, call));
    requireExported(items, access, user_id);
    if (ids && items.some(({ memory }) => !ids.includes(memory.id))) throw access.mismatch();
    return {
      memories: items.map(({ memory, vector, version, versions, versions_left_out: left = 0 }) => ({
        ...toWire(memory),
        ...(vector && { vector: encodeVector(vector) }),
        ...(versions && { version, versions: versions.map((one) => ({ ...one, memory: toWire(one.memory) })) }),
        ...(left > 0 && { versions_left_out: left }),
      })),
      next_cursor: ExportCursor.write(next, filters),
    };
  },
  id: 'exportMemories',
  summary: 'Read all memories of the store',
  description: `In a fixed order, with all fields, to move them elsewhere. A page may have fewer memories than \`limit\`, even none, although there are more: \`next_cursor\` is then not
null. Available if \`features.export\` is true.`,
  success: {
    description: 'One page.',
    schema: z
      .looseObject({
        memories: z.array(
          MemoryFields.extend({
            vector: z.string().optional().meta({ description: 'With `vectors`: base64 of little-endian float32.' }),
            version: z.int().min(1).optional().meta({ description: 'With `versions`: the number of this version.' }),
            versions: z
              .array(z.looseObject({ version: z.int().min(1), memory: MemoryFields }))
              .optional()
              .meta({
                description: `With \`versions\`: those before it, newest first; of more than ${MAX_ANSWER_BYTES} bytes, the newest.`,
              }),
            versions_left_out: z
              .int()
              .min(1)
              .optional()
              .meta({ description: 'How many older ones `versions` lacks; absent: none.' }),
          }).meta({ id: 'ExportedMemory', patternProperties: { '^x-': { description: 'Custom keys, as stored.' } } }),
        ),
        next_cursor,
        ...leftOut,
      })
      .meta({ id: 'ExportPage' }),
    example: { memories: [memoryExample], next_cursor: null },
  },
});

const MAX_DIMENSIONS = 16_000;

const ON_CONFLICT = z.enum(['skip', 'replace']).default('skip').meta({
  description: 'What happens to a memory whose id is stored already, if it is of the same user.',
});

/** No request can read `/memories/{id}` of these: clients resolve segments of dots, and `/memories/search` is the search. */
const UNREACHABLE = ['.', '..', 'search'];

/** The fields that `CreateBody` lacks. */
const Identity = z.object({
  id: memoryId
    .refine((id) => !UNREACHABLE.includes(id), 'must not be ".", ".." or "search": no path can name such a memory')
    .meta({ not: { enum: UNREACHABLE } }),
  created_at: dateTime,
  updated_at: dateTime.nullish(),
  embedding_model: z.string().max(1_024).nullish(),
  vector: z
    .string()
    .max(MAX_DIMENSIONS * 6)
    .nullish()
    .meta({
      description: 'Base64 of little-endian float32. Taken over if `embedding_model` is the one of the gateway.',
    }),
  version: importedNumber
    .nullish()
    .meta({ description: 'The number of this version; unset: above all of `versions`.' }),
  versions: upToMany(z.unknown(), MAX_VERSIONS, `must hold at most ${MAX_VERSIONS} versions`)
    .nullish()
    .meta({
      description: 'Versions before it, with the same `id` and `user_id`. Taken over if the store has versions.',
      items: {
        type: 'object',
        properties: { version: { type: 'integer' }, memory: { type: 'object' } },
        required: ['version', 'memory'],
      },
    }),
});
/** A version as it is imported. */
const Version = z.object({ version: importedNumber, memory: z.unknown() });

/** `unchanged`: it is stored already, as it is; `exists`: its id is, with other fields, or of another user. */
type ImportOutcome = 'stored' | 'unchanged' | 'exists';

const { embedding_model: _, status: __, ...exportedExample } = memoryExample;

/** Outcomes in the order of the request. */
export const importMemories = verb({
  name: 'import',
  method: 'POST',
  path: '/import',
  input: z.object({ memories: memoryBodies, on_conflict: ON_CONFLICT }),
  body: {
    schema: z
      .object({
        memories: z
          .array(
            z.object({ ...CreateBody.shape, ...Identity.shape }).meta({
              id: 'NewExportedMemory',
              patternProperties: { '^x-': { description: 'Custom keys, stored and returned.' } },
            }),
          )
          .min(1)
          .max(MAX_BATCH_SIZE),
        on_conflict: ON_CONFLICT.optional(),
      })
      .meta({ id: 'ExportedMemories', description: 'An invalid memory does not fail the others.' }),
    example: { memories: [exportedExample], on_conflict: 'skip' },
  },
  needs: ['import'],
  writes: true,
  feature: 'import',
  // A caller of some users would learn which ids others have.
  demands: { write: 'all', users: 'all' },
  facts: () => NO_FACTS,
  async run({ memories, on_conflict }, access, call) {
    const { max_record_bytes, shares } = access;
    let versions = 0;
    const beforeVersion = async () => {
      if (++versions % VERSIONS_PER_TURN === 0) await shares.turn();
    };
    const read = (body: unknown) => readExported(body, access, call, beforeVersion);
    const inputs = await readAll(memories, read, bytesOf, max_record_bytes);
    const items = inputs.filter((one) => !(one instanceof OmpError)) as ExportedMemory[];
    if (new Set(items.map(({ memory }) => memory.id)).size < items.length) {
      throw invalidRequest('memories: two have the same id');
    }
    const outcomes = (items.length > 0 ? await importAll(access, items, on_conflict === 'replace', call) : []).values();
    return {
      results: inputs.map((input) => {
        const outcome = input instanceof OmpError ? input : (outcomes.next().value as ImportOutcome | OmpError);
        return outcome instanceof OmpError ? { error: outcome } : { outcome };
      }),
    };
  },
  id: 'importMemories',
  summary: 'Store memories with their ids and times',
  description: `Each memory is stored, or has an error in its place. Repeating a
request changes nothing more. Available if \`features.import\` is true.`,
  success: {
    description: 'What became of each memory.',
    schema: z
      .looseObject({
        results: z
          .array(
            z.union([
              z.looseObject({ outcome: z.enum(['stored', 'unchanged', 'exists']) }),
              z.looseObject({ error: ErrorFields }),
            ]),
          )
          .meta({
            description:
              'In the order of the request. `unchanged`: the memory is stored already, as it is; `exists`: its id is, with other fields, or of another user.',
          }),
      })
      .meta({ id: 'ImportResults' }),
    example: { results: [{ outcome: 'stored' }] },
  },
});

async function importAll(
  access: Access & { readonly store: Required<Pick<Store, 'import'>> },
  items: readonly ExportedMemory[],
  replace: boolean,
  call: Call,
): Promise<(ImportOutcome | OmpError)[]> {
  const { store, principal } = access;
  const outcomes = await store.import({ items, replace }, call);
  const ids = items.flatMap(({ memory }, i) => (outcomes[i] === false ? [memory.id] : []));
  const present = await storedAmong(store, ids, call);
  const mark = principal.untrusted && { [UNTRUSTED]: true };
  return outcomes.map((outcome, i) => {
    if (outcome !== false) return outcome === true ? 'stored' : outcome;
    const { memory } = items[i] as ExportedMemory;
    const stored = present.get(memory.id);
    const isSame = isSameRecord({ ...memory, extensions: { ...memory.extensions, ...mark } }, stored);
    // Whoever may not read it must not learn that a guess is right.
    if (stored && !access.admitsRead(stored.scope)) return isSame && replace ? 'stored' : 'exists';
    return isSame ? 'unchanged' : 'exists';
  });
}

/** Checks what a store has exported, of a user: that the caller may read it, and that the versions are of their memory. */
export function requireExported(items: readonly ExportedMemory[], access: Access, user_id?: string): void {
  for (const { memory, versions = [] } of items) {
    access.readable(memory, user_id);
    if (versions.some((one) => !isVersionOf(one.memory, memory))) throw access.mismatch();
  }
}

const bytesOf = ({ memory, versions = [] }: ExportedMemory): number =>
  [memory, ...versions.map((one) => one.memory)].reduce((sum, one) => sum + recordBytes(one), 0);

const isVersionOf = (one: Memory, { id, user_id }: Memory): boolean => one.id === id && one.user_id === user_id;

async function readExported(
  body: unknown,
  access: Access,
  call: Call,
  beforeVersion: () => Promise<void>,
): Promise<ExportedMemory> {
  const { vector, version, versions, ...identity } = parse(Identity, body);
  const memory = readImported(body, identity, access);
  const item = { memory, vector: vector == null ? null : decodeVector(vector) };
  if (version == null && versions == null) return item;
  if (!access.storeAt(memory.scope).versions) {
    call.ignored('versions');
    return item;
  }
  const before: MemoryVersion[] = [];
  for (const one of versions ?? []) {
    await beforeVersion();
    before.push(readImportedVersion(one, memory, access));
  }
  before.sort((a, b) => b.version - a.version);
  const latest = before[0]?.version ?? 0;
  if (new Set(before.map((one) => one.version)).size < before.length || (version ?? latest + 1) <= latest)
    throw invalidRequest('versions: their numbers must be distinct, and below `version`');
  return { ...item, version: version ?? latest + 1, versions: before };
}

function readImportedVersion(body: unknown, current: Memory, access: Access): MemoryVersion {
  const { version, memory: inner } = parse(Version, body);
  const memory = { ...readImported(inner, parse(Identity, inner), access), embedding_model: null };
  if (isVersionOf(memory, current)) return { version, memory };
  throw invalidRequest('versions: must have the id and the user of their memory');
}

/** How far the clock of another gateway may be ahead: every later change of a memory gets a later time. */
const MAX_AHEAD_MS = 86_400_000;
const TOO_LATE = 'updated_at: must not be more than a day ahead of the clock of the gateway';

function readImported(
  body: unknown,
  { id, created_at, updated_at, embedding_model }: Omit<z.output<typeof Identity>, 'vector' | 'version' | 'versions'>,
  { storeAt }: Access,
): Memory {
  const input = readNewMemory(body, storeAt);
  const changed_at = updated_at ?? created_at;
  if (Date.parse(changed_at) > Date.now() + MAX_AHEAD_MS) throw invalidRequest(TOO_LATE);
  return {
    id,
    created_at,
    updated_at: changed_at,
    ...input,
    extensions: { ...input.extensions, ...readStated(body as object) },
    embedding_model: embedding_model ?? null,
    status: null,
  };
}

/** Base64 of little-endian float32. */
function encodeVector(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4);
  return bytes.toString('base64');
}

function decodeVector(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64');
  const vector = Float32Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readFloatLE(i * 4));
  if (bytes.length % 4 === 0 && bytes.length > 0 && vector.every(Number.isFinite)) return vector;
  throw invalidRequest('vector: must be base64 of little-endian float32 numbers');
}
