import { z } from 'zod';
import {
  type Call,
  type Extensions,
  invalidRequest,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  OmpError,
  ORIGIN,
  type Origin,
  UNTRUSTED,
  WAYS,
} from '#contract';
import { recordTooLarge } from '#toolbox';
import type { StoreFacts, Target } from '../core/access.ts';
import {
  confidence,
  content,
  dateTime,
  fits,
  isStorable,
  LIMITS,
  optional,
  parse,
  readExtensions,
  reportIgnored,
  scope,
  sourceText,
  sourceType,
  strings,
  supersedes,
  tags,
  time,
  upTo,
  userId,
} from './fields.ts';

/*
 * A memory as clients send and get it: its `x-` keys stand beside the fields of the protocol (Decision 6).
 */

const SourceFields = z.object({
  app: optional(sourceText).meta({ description: 'Application that created the memory.' }),
  type: optional(sourceType).meta({ description: 'How the memory was created.' }),
  ref: optional(sourceText).meta({ description: 'Opaque reference, such as a session id.' }),
});

/** SPEC, POST /memories. */
export const CreateBody = z
  .object({
    content: content,
    user_id: userId,
    scope: optional(scope),
    tags: optional(tags),
    source: optional(SourceFields),
    confidence: optional(confidence),
    valid_from: optional(dateTime),
    valid_to: optional(dateTime),
    supersedes: optional(supersedes),
  })
  .meta({
    id: 'NewMemory',
    patternProperties: { '^x-': { description: 'Custom keys, stored and returned.' } },
  });

/** SPEC, PATCH /memories/{id}. Only `valid_to` and `x-` keys may be null. */
export const PatchBody = z
  .object({
    content: content.optional(),
    scope: scope.optional(),
    tags: tags.optional(),
    confidence: confidence.optional(),
    valid_to: dateTime.nullish().meta({ description: 'New expiry; null removes it.' }),
    supersedes: supersedes.optional(),
  })
  .meta({
    id: 'MemoryPatch',
    description: 'Only the given fields are changed.',
    patternProperties: { '^x-': { description: 'Custom keys, merged one by one; null removes a key.' } },
  });

/** A change of a memory, as a file of an import states it. */
const StatedOrigin = z.object({
  key: upTo(LIMITS.userId).refine(isStorable).optional(),
  via: z.enum(WAYS),
  at: dateTime.optional(),
});

/** `Origin` in an answer. */
const OriginFields = z
  .looseObject({
    key: z
      .string()
      .optional()
      .meta({ description: 'Name of the API key, or subject of the token; absent: anonymous.' }),
    via: z.enum([...WAYS, 'unknown']).meta({
      description: '`unknown`: the memory is older than origins, or another application wrote it.',
    }),
    version: z.int().optional().meta({ description: 'The version that a restore or a rollback has brought back.' }),
    at: time('Time of an import, whose `updated_at` comes from a file.').optional(),
    replaced: z.boolean().optional().meta({ description: 'An import that replaced a memory, or may have.' }),
    from: z
      .looseObject({ key: z.string().optional(), via: z.enum(WAYS), at: time('As stated.').optional() })
      .optional()
      .meta({ description: 'The first origin that the file of an import states.' }),
  })
  .meta({ description: 'The last change; its time is `updated_at`. Set by the gateway, ignored in input.' });

/** A memory in an answer (SPEC, Resources). */
export const MemoryFields = z
  .looseObject({
    id: z.string().meta({ description: 'Assigned by the provider; opaque.' }),
    content: z.string().meta({ description: 'The stored text.' }),
    user_id: z.string().meta({ description: 'User the memory belongs to.' }),
    created_at: time('Creation time, UTC.'),
    updated_at: time('Time of the last change, UTC.').nullish(),
    scope: z.string().nullish().meta({ description: 'Slash-delimited hierarchical namespace.' }),
    tags: strings.nullish().meta({ description: 'Free-form labels.' }),
    source: z
      .looseObject({
        app: z.string().nullish().meta({ description: 'Application that created the memory.' }),
        type: sourceType.nullish().meta({ description: 'How the memory was created.' }),
        ref: z.string().nullish().meta({ description: 'Opaque reference, such as a session id.' }),
      })
      .nullish()
      .meta({ description: 'Origin of the memory.' }),
    confidence: z.number().min(0).max(1).nullish().meta({ description: 'Null if omitted at creation.' }),
    valid_from: time('Start of validity.').nullish(),
    valid_to: time('End of validity; null: none.').nullish(),
    supersedes: strings.nullish().meta({ description: 'Ids of the memories that this one replaces.' }),
    embedding_model: z.string().nullish().meta({ description: 'Model of the vector, if any.' }),
    status: z
      .enum(['queued', 'indexing', 'done', 'failed'])
      .nullish()
      .meta({ description: 'Ingestion state; absent or null: not tracked.' }),
    [ORIGIN]: OriginFields.optional(),
    [UNTRUSTED]: z.literal(true).optional().meta({
      description: 'A caller with an untrusted key wrote the text. Set by the gateway, ignored in input.',
    }),
  })
  .meta({
    id: 'Memory',
    patternProperties: { '^x-': { description: 'Custom keys, as stored.' } },
  });

/** Input fields that name one memory. */
export const memoryTarget = {
  id: z.string().meta({ description: 'Id of the memory.' }),
  user_id: z.string().optional(),
};

/** A memory in an answer: its `x-` keys are beside the protocol's fields. */
export type WireMemory = Omit<Memory, 'extensions'> & {
  readonly [ORIGIN]: Origin | typeof UNKNOWN;
  readonly [UNTRUSTED]?: true;
};

const UNKNOWN = { via: 'unknown' } as const;

/** Not a spread: see docs/performance-notes.md. */
export function toWire(memory: Memory): WireMemory {
  return {
    id: memory.id,
    content: memory.content,
    user_id: memory.user_id,
    created_at: memory.created_at,
    updated_at: memory.updated_at,
    scope: memory.scope,
    tags: memory.tags,
    source: memory.source,
    confidence: memory.confidence,
    valid_from: memory.valid_from,
    valid_to: memory.valid_to,
    supersedes: memory.supersedes,
    embedding_model: memory.embedding_model,
    status: memory.status,
    [ORIGIN]: UNKNOWN,
    ...memory.extensions,
  };
}

/** What a file of an import says about its memory: the first origin, and the mark, which only lowers trust. */
export function readStated(body: object): Extensions {
  const { [ORIGIN]: origin, [UNTRUSTED]: untrusted } = body as {
    [ORIGIN]?: Partial<Origin> | null;
    [UNTRUSTED]?: unknown;
  };
  const { data: stated } = StatedOrigin.safeParse(origin?.from ?? origin);
  return { ...(stated && { [ORIGIN]: stated }), ...(untrusted === true && { [UNTRUSTED]: true }) };
}

/**
 * A new memory, for the store of its scope. Throws `invalid_request` that names every invalid field. Its fields always have this order, as the fingerprint
 * of an idempotency key needs.
 */
export function readNewMemory(body: unknown, storeAt: (scope: string | null) => StoreFacts, call?: Call): NewMemory {
  const input = parse(CreateBody, body);
  if (call) reportIgnored(call, CreateBody, body as object);
  if (call && input.source) reportIgnored(call, SourceFields, (body as { source: object }).source, 'source.');
  requireLength(input.content, storeAt(input.scope ?? null));
  return {
    content: input.content,
    user_id: input.user_id,
    scope: input.scope ?? null,
    tags: distinct(input.tags ?? []),
    source: input.source ? withoutNulls(input.source) : null,
    confidence: input.confidence ?? null,
    valid_from: input.valid_from ?? null,
    valid_to: input.valid_to ?? null,
    supersedes: distinct(input.supersedes ?? []),
    extensions: readExtensions(body as object, 'omit'),
  };
}

/** A change of a memory in this store. Throws `invalid_request` that names every invalid field. */
export function readPatch(body: unknown, store: StoreFacts, call: Call): MemoryPatch {
  const input = parse(PatchBody, body);
  reportIgnored(call, PatchBody, body as object);
  if (input.content !== undefined) requireLength(input.content, store);
  const extensions = readExtensions(body as object, 'keep');
  return {
    ...(withoutUndefined(input) as MemoryPatch),
    ...(input.tags && { tags: distinct(input.tags) }),
    ...(input.supersedes && { supersedes: distinct(input.supersedes) }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  };
}

function requireLength(text: string, { capabilities: { max_content_length: max } }: StoreFacts): void {
  if (max !== null && !fits(text, max)) throw invalidRequest(`content: must be at most ${max} characters`);
}

/**
 * Each memory of a body, or its error if it is invalid. Throws `payload_too_large` as soon as they take more than `maxBytes`
 * together.
 */
export async function readAll<Result>(
  bodies: readonly unknown[],
  read: (body: unknown) => Result | Promise<Result>,
  bytesOf: (result: Result) => number,
  maxBytes: number,
): Promise<(Result | OmpError)[]> {
  let bytes = 0;
  const results: (Result | OmpError)[] = [];
  for (const body of bodies) {
    try {
      const result = await read(body);
      bytes += bytesOf(result);
      results.push(result);
    } catch (error) {
      if (!(error instanceof OmpError)) throw error;
      results.push(error);
    }
    if (bytes > maxBytes) throw bodies.length === 1 ? recordTooLarge(maxBytes) : batchTooLarge(maxBytes);
  }
  return results;
}

export const batchTooLarge = (maxBytes: number) =>
  new OmpError('payload_too_large', `the memories take more than ${maxBytes} bytes; send them in several batches`);

/*
 * Entity tags of memories (Decision 36): the `updated_at` in quotes, so that a client can also make one from a listed memory.
 */

/** While a memory is not indexed, its status is part of the tag: it changes without `updated_at`. */
export const etagOf = ({ updated_at, status }: Pick<Memory, 'updated_at' | 'status'>): string =>
  `"${updated_at}${status === null || status === 'done' ? '' : `-${status}`}"`;

/** Whether `If-None-Match` names this tag. Malformed parts match nothing, since the client only gets more than it needs. */
export const namesEtag = (header: string, etag: string): boolean =>
  header.trim() === '*' || tagsIn(header).some(({ value }) => `"${value}"` === etag);

/**
 * The versions (`updated_at`) that `If-Match` admits; undefined: any. A weak tag admits none, and so does a tag that this
 * gateway cannot have sent. Throws `invalid_request` if the header is malformed.
 */
export function versionsIn(header: string): string[] | undefined {
  if (header.trim() === '*') return undefined;
  const tags = tagsIn(header);
  if (tags.length === 0 || tags.at(-1)?.end !== header.length) {
    throw invalidRequest('If-Match: must be "*" or a list of entity tags in double quotes');
  }
  return tags.flatMap(({ value, weak }) => {
    const version = weak ? undefined : VERSION.exec(value)?.[1];
    return version !== undefined && isMoment(version) ? [version] : [];
  });
}

const VERSION = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(?:-[a-z]+)?$/;

/** Backends reject impossible dates. */
const isMoment = (text: string): boolean => {
  const date = new Date(text);
  return !Number.isNaN(date.getTime()) && date.toISOString() === text && !text.startsWith('0000');
};

const TAG = /\s*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)/gy;

/** The entity tags from the start of a list, up to where it is malformed. `end`: where the next one begins. */
const tagsIn = (header: string) =>
  [...header.matchAll(TAG)].map(({ 0: text, 1: weak, 2: value = '', index }) => ({
    value,
    weak: weak !== undefined,
    end: index + text.length,
  }));

/** Throws `not_found` for an id or a user that no memory can have; some backends reject the query. */
export function readTarget({ id, user_id }: Target): Target {
  if (!isStorable(id) || id.length > LIMITS.id || (user_id !== undefined && !fits(user_id, LIMITS.userId))) {
    throw new OmpError('not_found', 'no memory has this id');
  }
  return { id, user_id };
}

const distinct = (values: readonly string[]): string[] => [...new Set(values)];

type NonNullFields<Fields> = { [Key in keyof Fields]?: NonNullable<Fields[Key]> };
const withoutNulls = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as NonNullFields<Fields>;

/** The fields with a value. */
export const withoutUndefined = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Fields]: Exclude<Fields[Key], undefined>;
  };

/** The example of the OpenAPI document. */
export const newMemoryExample = {
  content: 'user prefers pnpm over npm for nodejs projects',
  user_id: 'u1',
  scope: 'coding/preferences',
  tags: ['tooling'],
  source: { app: 'claude-code', type: 'explicit' },
  confidence: 0.9,
};

export const memoryExample = {
  id: 'mem_01JD3ZK8Q0V5W9E6T2Y4R7N1XA',
  ...newMemoryExample,
  created_at: '2026-03-01T09:30:00.000Z',
  updated_at: '2026-03-01T09:30:00.000Z',
  valid_from: null,
  valid_to: null,
  supersedes: [],
  embedding_model: 'universal-sentence-encoder-lite-en',
  status: 'done',
};
