import { createHash } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { invalidRequest, MAX_BATCH_SIZE, OmpError } from '#contract';
import { jsonBytes, mem0Prefix, mem0Scope } from '#toolbox';
import { isStorable, parse, upToMany } from '../verbs/fields.ts';
import type { Gate } from '../verbs/gate.ts';
import { VERB_TABLE } from '../verbs/index.ts';
import { batchTooLarge, type WireMemory } from '../verbs/wire-memory.ts';
import { toEnvelope } from './error-envelope.ts';
import {
  countOf,
  deleteAllOf,
  type Entity,
  isMarked,
  isOf,
  linkedTo,
  MAX_PAGE_JSON_BYTES,
  partsOf,
  readPage,
  run,
  UNMARKED,
  unlessAbsent,
} from './mem0-memories.ts';
import { type Env, readJson } from './request.ts';

export interface Mem0Options {
  /** What happens to an add that leaves it to mem0 to extract facts (`infer`, its default). */
  readonly infer: 'reject' | 'verbatim';
}

/** For mem0, `*` is any. Taken for a name it would find nothing, and deleting "all" would say that it had. */
const Id = z
  .union([z.string(), z.number().transform(String)])
  .refine((id) => id !== '' && isStorable(id), 'must not be empty or contain NUL or lone surrogates')
  .refine((id) => id !== '*', 'must be a name: this gateway does not take "*" for any')
  .nullish();
const Owner = z.object({ user_id: Id, agent_id: Id, run_id: Id });
/** Texts of one message. */
const MAX_PARTS = 100;
const partsError = `must be a text, or a list of at most ${MAX_PARTS} parts of the type "text"; this gateway stores text only`;
const TextPart = z.object({ type: z.literal('text'), text: z.string() });
const Content = z.union([z.string(), upToMany(TextPart, MAX_PARTS, partsError)], { error: partsError });
const messagesError = `must be a text, or a list of 1 to ${MAX_BATCH_SIZE} messages with a role and a content of text`;
const Message = z.object({ role: z.string(), content: Content.nullish() });
const Messages = z.union(
  [z.string(), upToMany(Message, MAX_BATCH_SIZE, messagesError).refine((all) => all.length > 0)],
  { error: messagesError },
);
const Metadata = z.record(z.string(), z.unknown()).nullish();
const AddBody = Owner.extend({ messages: Messages, metadata: Metadata, infer: z.boolean().nullish() });
const UpdateBody = z.object({ text: z.string().nullish(), data: z.string().nullish(), metadata: Metadata });
const most = z.int().min(1).max(100).nullish();
const Filters = z.record(z.string(), z.unknown()).nullish();
const SearchBody = Owner.extend({
  query: z.string().nullish(),
  filters: Filters,
  top_k: most,
  limit: most,
  threshold: z.number().min(0).max(1).nullish(),
});
const PageBody = Owner.extend({ filters: Filters });
/** A number in a query string. */
const number = z
  .string()
  .regex(/^0*[1-9]\d{0,3}$/, 'must be a whole number from 1 to 9999')
  .transform(Number)
  .optional();
const PageQuery = z.object({ page: number, page_size: number });
const ListQuery = Owner.extend({ limit: number, top_k: number });
const DeleteQuery = z.object({ delete_linked: z.stringbool({ truthy: ['true'], falsy: ['false'] }).optional() });
/** Fields that steer mem0's extraction, ranking and output. They have no effect here. */
const WITHOUT_EFFECT = new Set(
  'output_format version source rerank async_mode prompt memory_type custom_instructions agent_custom_instructions custom_categories'.split(
    ' ',
  ),
);

/**
 * mem0's interface: the routes of its self-hosted server and those of its hosted service that the official clients call.
 * Every call is one of the protocol's verbs. Agent and run become a scope.
 */
export function mem0Routes(
  gate: Pick<Gate, 'max_record_bytes' | 'description'>,
  maxRequestBytes: number,
  { infer }: Mem0Options,
): Hono<Env> {
  const { max_record_bytes } = gate;
  const body = <Schema extends z.ZodObject>(c: Context<Env>, schema: Schema) =>
    readJson(c, maxRequestBytes).then((json) => parseKnown(schema, json));

  const add = async (c: Context<Env>) => {
    const { messages: input, metadata, infer: extracts = true, ...owner } = await body(c, AddBody);
    if (extracts !== false && infer === 'reject') throw invalidRequest(NO_INFERENCE);
    const entity = entityOf(owner);
    const { user_id } = entity;
    const scope = mem0Scope(entity);
    const all = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
    const messages = all
      .map(({ role, content }) => ({ role, content: textOf(content) }))
      // As in mem0, instructions are no memory, and neither is a call of a tool, which has no text.
      .filter(({ role, content }) => role !== 'system' && /\S/.test(content));
    const own = { 'x-mem0-metadata': metadata ?? {} };
    // Each memory gets a copy.
    if (messages.length * jsonBytes(own) > max_record_bytes) throw batchTooLarge(max_record_bytes);
    const memories = messages.map(({ role, content }) => ({ content, user_id, scope, 'x-mem0-role': role, ...own }));
    const outcomes = memories.length === 0 ? [] : (await run(c, VERB_TABLE.batch, { memories })).results;
    const results = outcomes.map(({ memory, error }, n) => {
      if (!memory) throw withRest(error, n, outcomes.length - outcomes.filter((one) => one.error).length);
      return { id: memory.id, memory: memory.content, event: 'ADD', role: messages[n]?.role };
    });
    return c.json({ results });
  };
  const find = async (c: Context<Env>) => {
    const memory = await run(c, VERB_TABLE.get, target(c));
    if (isMarked(memory)) throw new OmpError('not_found', MARKED);
    return memory;
  };
  const get = async (c: Context<Env>) => c.json(toMem0(await find(c)));
  const update = async (c: Context<Env>) => {
    const { text, data, metadata } = await body(c, UpdateBody);
    const content = text ?? data;
    const patch = { ...(content != null && { content }), ...(metadata && { 'x-mem0-metadata': metadata }) };
    // The answer has the text: without a new one, that of another.
    if (content == null) await find(c);
    const memory = await run(c, VERB_TABLE.update, { ...target(c), patch });
    return c.json({ ...toMem0(memory), message: 'Memory updated successfully!' });
  };
  const remove = async (c: Context<Env>) => {
    const { delete_linked } = parseKnown(DeleteQuery, queryOf(c));
    const { id } = target(c);
    const linked = delete_linked ? await linkedTo(c, id) : [];
    for (const one of linked) await unlessAbsent(run(c, VERB_TABLE.delete, { id: one }));
    await run(c, VERB_TABLE.delete, { id });
    return c.json({ message: 'Memory deleted successfully!' });
  };
  const history = async (c: Context<Env>) => {
    try {
      return c.json(toHistory((await allVersions(c)).filter(({ memory }) => !isMarked(memory))));
    } catch (error) {
      if (!(error instanceof OmpError) || error.code !== 'unsupported_capability') throw error;
      // Earlier texts are not kept.
      await find(c);
      return c.json([]);
    }
  };
  const search = async (c: Context<Env>) => {
    const { query, filters, top_k, limit, threshold, ...owner } = await body(c, SearchBody);
    const entity = entityOf(owner, filters);
    const most = top_k ?? limit ?? 10;
    const { agent, run: run_id } = entity;
    const { results } = await run(c, VERB_TABLE.search, {
      q: query ?? '',
      user_id: [entity.user_id],
      min_score: threshold ?? 0,
      // mem0 keeps no outdated memories.
      current: true,
      ...UNMARKED,
      ...(agent !== undefined && { scope: `${mem0Prefix(agent)}/` }),
      // A run without its agent is no prefix: the gateway looks for it among the best results.
      limit: run_id === undefined ? most : 100,
    });
    const hits = results.filter(({ memory }) => isOf(entity, memory)).slice(0, most);
    return answer(c, { results: hits.map(({ memory, score }) => ({ ...toMem0(memory), score })) });
  };
  const getAll = async (c: Context<Env>) => {
    const { limit, top_k, ...owner } = parseKnown(ListQuery, queryOf(c));
    const { items } = await readPage(c, entityOf(owner), { skip: 0, most: limit ?? top_k ?? 100 });
    return answer(c, { results: items.map(toMem0) });
  };
  const getPage = async (c: Context<Env>) => {
    const { filters, ...owner } = await body(c, PageBody);
    const { page = 1, page_size: size = 100 } = parseKnown(PageQuery, queryOf(c));
    const entity = entityOf(owner, filters);
    const skip = (page - 1) * size;
    const { items, more } = await readPage(c, entity, { skip, most: size });
    const isLast = !more && (items.length > 0 || skip === 0);
    const at = (number: number) => `?page=${number}&page_size=${size}`;
    return answer(c, {
      count: isLast ? skip + items.length : await countOf(c, entity, gate),
      next: more ? at(page + 1) : null,
      previous: page > 1 ? at(page - 1) : null,
      results: items.map(toMem0),
    });
  };
  const deleteAll = async (c: Context<Env>) => {
    const entity = entityOf(parseKnown(Owner, queryOf(c)));
    await deleteAllOf(c, entity, gate);
    return c.json({ message: 'Memories deleted successfully!' });
  };

  const app = new Hono<Env>();
  // The Python client does not begin without the ids of an organization and a project, of which a gateway is one.
  app.get('/v1/ping/', (c) => c.json({ status: 'ok', org_id: 'omp-gateway', project_id: 'omp-gateway' }));
  app.post('/memories', add).post('/v3/memories/add/', add);
  app.get('/memories', getAll).post('/v3/memories/', getPage);
  app.post('/search', search).post('/v3/memories/search/', search);
  app.delete('/memories', deleteAll).delete('/v1/memories/', deleteAll);
  for (const path of ['/memories/:id', '/v1/memories/:id/']) app.get(path, get).put(path, update).delete(path, remove);
  app.get('/memories/:id/history', history).get('/v1/memories/:id/history/', history);
  // Of 404, mem0's clients say that there is no such memory.
  return app.all('*', (c) => {
    const error = new OmpError('unsupported_capability', NO_ROUTE);
    return c.json({ detail: NO_ROUTE, ...toEnvelope(error, c.get('call').requestId) }, 501);
  });
}

const NO_ROUTE =
  'this gateway does not serve this call of mem0; docs/integrations/mem0-api.md lists those that it serves, and what to use instead of the others';

/** Says in the body too which stores the answer lacks (Decision 49). */
const answer = (c: Context<Env>, body: object): Response => c.json({ ...body, ...c.get('call').leftOut });

const MARKED = 'an untrusted key wrote this memory, which this interface cannot say; GET /memories/{id} shows it';

/** Newest first. */
type WireVersion = Awaited<ReturnType<typeof VERB_TABLE.versions.run>>['items'][number];

async function allVersions(c: Context<Env>): Promise<WireVersion[]> {
  const found: WireVersion[] = [];
  let bytes = 0;
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { items, next_cursor } = await run(c, VERB_TABLE.versions, { ...target(c), limit: 100, cursor });
    found.push(...items);
    bytes += JSON.stringify(items).length;
    if (bytes > MAX_PAGE_JSON_BYTES)
      throw invalidRequest(`the history takes more than ${MAX_PAGE_JSON_BYTES} bytes; use GET /memories/{id}/versions`);
    cursor = next_cursor;
  }
  return found;
}

const NO_INFERENCE =
  'infer: this gateway stores memories as they are and extracts no facts; send "infer": false, or set OMP_COMPAT_INFER=verbatim to store the messages of such calls as they are';

const target = (c: Context<Env>) => ({ id: c.req.param('id') ?? '' });

const textOf = (content: z.output<typeof Content> | null | undefined): string =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text).join('\n');

/** The input by the schema. Rejects what has no effect here but would narrow, or change, the result in mem0. */
function parseKnown<Schema extends z.ZodObject>(schema: Schema, input: unknown): z.output<Schema> {
  for (const [name, value] of entriesOf(input, 'body')) {
    if (value == null || Object.hasOwn(schema.shape, name) || WITHOUT_EFFECT.has(name)) continue;
    throw invalidRequest(`${name.slice(0, 64)}: not supported by this gateway`);
  }
  return parse(schema, input);
}

/** The entries of an object. Throws for a text: `Object.entries` makes one of every character. */
function entriesOf(value: unknown, name: string): [name: string, value: unknown][] {
  if (typeof value === 'object' && value !== null) return Object.entries(value);
  throw invalidRequest(`${name}: must be an object`);
}

const queryOf = (c: Context<Env>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(c.req.queries()).map(([name, [value = '', ...others]]) => {
      if (others.length > 0) throw invalidRequest(`${name.slice(0, 64)}: given more than once`);
      return [name, value];
    }),
  );

/** The error of a message, which says whether others were stored. */
function withRest(error: OmpError, index: number, storedCount: number): OmpError {
  const rest = storedCount > 0 ? `; ${storedCount} other messages were stored` : '';
  return new OmpError(error.code, `messages: number ${index + 1}: ${error.message}${rest}`, error);
}

/** The entity that the fields and the filters name. Two different values are rejected. */
function entityOf(owner: z.output<typeof Owner>, filters?: object | null): Entity {
  for (const [name, value] of equalities(filters ?? {})) {
    if ((owner[name] ?? value) !== value) throw invalidRequest(`${name}: given with different values`);
    owner[name] = value;
  }
  const { user_id, agent_id, run_id } = parse(Owner, owner);
  if (user_id == null) throw invalidRequest('user_id: required; a memory of this gateway belongs to a user');
  return { user_id, agent: agent_id ?? undefined, run: run_id ?? undefined };
}

/** `{ user_id }`, or `AND` of such conditions. Anything else is rejected, because leaving it out would answer too much. */
function equalities(filters: object): [keyof z.output<typeof Owner>, string][] {
  const { AND: conditions = [], ...others } = filters as { AND?: unknown };
  return [others, ...(Array.isArray(conditions) ? conditions : [{ AND: conditions }])].flatMap((one) =>
    entriesOf(one, 'filters.AND').map(([name, value]): [keyof z.output<typeof Owner>, string] => {
      if ((name === 'user_id' || name === 'agent_id' || name === 'run_id') && typeof value === 'string')
        return [name, value];
      throw invalidRequest(
        `filters.${name.slice(0, 64)}: this gateway filters by user_id, agent_id and run_id, each equal to a text`,
      );
    }),
  );
}

/** Oldest first, as mem0 tells it. An event whose version before is not kept has no old text. */
function toHistory(versions: readonly WireVersion[]) {
  return versions
    .map(({ version, memory }, at) => {
      const { id, memory: text, user_id, metadata, created_at, updated_at } = toMem0(memory);
      const previous = versions[at + 1];
      return {
        id: `${id}:${version}`,
        memory_id: id,
        input: [],
        old_memory: previous?.version === version - 1 ? previous.memory.content : null,
        new_memory: text,
        event: version === 1 ? 'ADD' : 'UPDATE',
        ...{ user_id, metadata, created_at, updated_at, is_deleted: false },
      };
    })
    .reverse();
}

function toMem0(memory: WireMemory) {
  const { agent, run } = partsOf(memory);
  const { 'x-mem0-metadata': metadata = null } = memory as WireMemory & Record<string, unknown>;
  return {
    id: memory.id,
    memory: memory.content,
    hash: createHash('md5').update(memory.content).digest('hex'),
    metadata,
    user_id: memory.user_id,
    ...(agent !== null && { agent_id: agent }),
    ...(run !== null && { run_id: run }),
    created_at: memory.created_at,
    updated_at: memory.updated_at,
  };
}
