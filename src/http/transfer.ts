import { Hono } from 'hono';
import { z } from 'zod';
import {
  type Call,
  invalidRequest,
  MAX_BATCH_SIZE,
  type Memory,
  type MovedMemory,
  type NewMemory,
  OmpError,
} from '#contract';
import { recordBytes } from '#toolbox';
import type { Verbs } from '../core/access.ts';
import { decodeCursor, encodeCursor } from '../core/cursor.ts';
import type { Gate } from '../core/gate.ts';
import { itemError } from './errors.ts';
import { parse, parseQuery, readJson } from './input.ts';
import { createReaders, NO_TIME, readAll, supportedBy, toWire } from './operations.ts';
import type { Env } from './request.ts';
import { BatchBody, CreateBody, dateTime, ExportParameters, memoryId } from './schemas.ts';

const MAX_DIMENSIONS = 16_000;

const ON_CONFLICT = z.enum(['skip', 'replace']).default('skip').meta({
  description: 'What happens to a memory whose id is stored already, if it is of the same user.',
});
const ImportBody = z.object({ ...BatchBody.shape, on_conflict: ON_CONFLICT });

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
});

/** For the OpenAPI document: `ImportBody` leaves each memory to be parsed by itself. */
export const MovedMemories = z
  .object({
    memories: z
      .array(
        z.object({ ...CreateBody.shape, ...Identity.shape }).meta({
          id: 'NewMovedMemory',
          patternProperties: { '^x-': { description: 'Custom keys, stored and returned.' } },
        }),
      )
      .min(1)
      .max(MAX_BATCH_SIZE),
    on_conflict: ON_CONFLICT.optional(),
  })
  .meta({ id: 'MovedMemories', description: 'An invalid memory does not fail the others.' });

/** `GET /export` and `POST /import` (Decision 43). */
export function createTransfer({ provider, capabilities }: Pick<Gate, 'provider' | 'capabilities'>, maxBytes: number) {
  const { newMemory } = createReaders(capabilities);
  const supported = supportedBy(provider);
  return {
    async export(verbs: Verbs, url: string, call: Call) {
      const scan = supported(verbs, 'export');
      const { cursor, limit, user_id, since, vectors } = parseQuery(ExportParameters, url, call);
      const filters = { of: 'export', user_id, since };
      const after = cursor === undefined ? undefined : decodeCursor(cursor, filters).id;
      const { items, next } = await scan({ after, user_id, since, vectors, limit }, call);
      return {
        memories: items.map(({ memory, vector }) =>
          vector ? { ...toWire(memory), vector: encodeVector(vector) } : toWire(memory),
        ),
        next_cursor: next === undefined ? null : encodeCursor({ created_at: NO_TIME, id: next }, filters),
      };
    },
    /** In the order of the request: what became of each memory, or why it was rejected. */
    async import(verbs: Verbs, body: unknown, call: Call) {
      const store = supported(verbs, 'import');
      const { memories, on_conflict } = parse(ImportBody, body);
      const given = readAll(
        memories,
        (one) => movedMemory(one, newMemory),
        ({ memory }) => recordBytes(memory),
        maxBytes,
      );
      const moved = given.filter((one) => !(one instanceof OmpError)) as MovedMemory[];
      if (new Set(moved.map(({ memory }) => memory.id)).size < moved.length) {
        throw invalidRequest('memories: two have the same id');
      }
      const stored = moved.length > 0 ? await store(moved, on_conflict === 'replace', call) : [];
      const outcomes = stored.values();
      return given.map((one) => (one instanceof OmpError ? one : (outcomes.next().value as (typeof stored)[number])));
    },
  };
}

export type TransferOperations = ReturnType<typeof createTransfer>;

export const exportRoutes = (operations: TransferOperations): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => c.json(await operations.export(c.get('verbs'), c.req.url, c.get('call'))));

export const importRoutes = (operations: TransferOperations, maxRequestBytes: number): Hono<Env> =>
  new Hono<Env>().post('/', async (c) => {
    const body = await readJson(c, maxRequestBytes);
    const results = await operations.import(c.get('verbs'), body, c.get('call'));
    return c.json({
      results: results.map((one) => (one instanceof OmpError ? { error: itemError(one, c) } : { outcome: one })),
    });
  });

function movedMemory(line: unknown, newMemory: (body: unknown) => NewMemory): MovedMemory {
  const { id, created_at, updated_at, embedding_model, vector } = parse(Identity, line);
  const memory: Memory = {
    id,
    created_at,
    updated_at: updated_at ?? created_at,
    ...newMemory(line),
    embedding_model: embedding_model ?? null,
    status: null,
  };
  return { memory, vector: vector == null ? null : decodeVector(vector) };
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
