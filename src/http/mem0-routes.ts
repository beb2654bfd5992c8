import { createHash } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { invalidRequest, MAX_BATCH_SIZE, OmpError } from '#contract';
import { errorResponse } from './errors.ts';
import { parse, readJson } from './input.ts';
import type { Operations, WireMemory } from './operations.ts';
import type { Env } from './request.ts';

export interface Mem0Options {
  /** What happens to an add that leaves it to mem0 to extract facts (`infer`, its default). */
  readonly infer: 'reject' | 'verbatim';
}

const Id = z.union([z.string(), z.number().transform(String)]).nullish();
const Owner = z.object({ user_id: Id, agent_id: Id, run_id: Id });
const Content = z.union([
  z.string(),
  z.array(z.object({ type: z.literal('text', 'this gateway stores text only'), text: z.string() })),
]);
const Messages = z.union([
  z.string(),
  z
    .array(z.object({ role: z.string(), content: Content }))
    .min(1)
    .max(MAX_BATCH_SIZE),
]);
const Metadata = z.record(z.string(), z.unknown()).nullish();
const AddBody = Owner.extend({ messages: Messages, metadata: Metadata, infer: z.boolean().nullish() });
const UpdateBody = z.object({ text: z.string().nullish(), data: z.string().nullish(), metadata: Metadata });
const QueryBody = Owner.extend({
  query: z.string().nullish(),
  filters: z.record(z.string(), z.unknown()).nullish(),
  top_k: z.int().min(1).max(100).nullish(),
  limit: z.int().min(1).max(100).nullish(),
  threshold: z.number().min(0).max(1).nullish(),
});

/** Memories that one list reads: a page of mem0 has a number, ours continues where the last one ended. */
const MAX_LISTED = 10_000;
const PAGE = 500;

/** Whose memories. */
interface Entity {
  readonly user_id: string;
  readonly agent: string | undefined;
  readonly run: string | undefined;
}

/**
 * mem0's interface: the routes of its self-hosted server and those of its hosted service that the official clients call.
 * Every call is one of the protocol's verbs. Agent and run become a scope. Errors have mem0's `detail` beside the envelope.
 */
export function mem0Routes(operations: Operations, maxRequestBytes: number, { infer }: Mem0Options): Hono<Env> {
  const body = <Schema extends z.ZodType>(c: Context<Env>, schema: Schema) =>
    readJson(c, maxRequestBytes).then((json) => parse(schema, json));

  const add = async (c: Context<Env>) => {
    const { messages, metadata, infer: wanted = true, ...owner } = await body(c, AddBody);
    if (wanted !== false && infer === 'reject') throw invalidRequest(NO_INFERENCE);
    const entity = entityOf(owner);
    const { user_id } = entity;
    const scope = isWhole(entity) ? null : scopeOf(entity, '-');
    const given = typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages;
    // As in mem0, instructions are no memory.
    const told = given.filter(({ role }) => role !== 'system');
    const memories = told.map(({ role, content }) => ({
      content: typeof content === 'string' ? content : content.map((part) => part.text).join('\n'),
      user_id,
      scope,
      'x-mem0-role': role,
      'x-mem0-metadata': metadata ?? {},
    }));
    const added =
      memories.length === 0 ? [] : await operations.batch(c.get('verbs'), { memories }, undefined, c.get('call'));
    const results = added.map((memory, n) => {
      if (memory instanceof OmpError) throw memory;
      return { id: memory.id, memory: memory.content, event: 'ADD', role: told[n]?.role };
    });
    return c.json({ results });
  };
  const get = async (c: Context<Env>) => c.json(toMem0(await operations.get(c.get('verbs'), target(c), c.get('call'))));
  const update = async (c: Context<Env>) => {
    const { text, data, metadata } = await body(c, UpdateBody);
    const content = text ?? data;
    const patch = { ...(content != null && { content }), ...(metadata && { 'x-mem0-metadata': metadata }) };
    const memory = await operations.update(c.get('verbs'), target(c), patch, c.get('call'));
    return c.json({ ...toMem0(memory), message: 'Memory updated successfully!' });
  };
  const remove = async (c: Context<Env>) => {
    await operations.delete(c.get('verbs'), target(c), c.get('call'));
    return c.json({ message: 'Memory deleted successfully!' });
  };
  const history = async (c: Context<Env>) => {
    await operations.get(c.get('verbs'), target(c), c.get('call'));
    // Earlier texts are not kept.
    return c.json([]);
  };
  const search = async (c: Context<Env>) => {
    const { query, filters, top_k, limit, threshold, ...owner } = await body(c, QueryBody);
    const entity = entityOf({ ...owner, ...equalities(filters ?? {}) });
    const most = top_k ?? limit ?? 10;
    const { agent, run } = entity;
    const parameters = new URLSearchParams({
      q: query ?? '',
      user_id: entity.user_id,
      min_score: String(threshold ?? 0),
    });
    if (agent !== undefined) parameters.set('scope', `${prefixOf(segment(agent))}/`);
    // A run without its agent is no prefix: the gateway looks for it among the best results.
    parameters.set('limit', String(run === undefined ? most : 100));
    const { results } = await operations.search(c.get('verbs'), `?${parameters}`, c.get('call'));
    const found = results.filter(({ memory }) => isOf(entity, memory)).slice(0, most);
    return c.json({ results: found.map(({ memory, score }) => ({ ...toMem0(memory), score })) });
  };
  /** The memories from `skip` on, at most `most`, and whether there are more. */
  const listed = async (c: Context<Env>, entity: Entity, skip: number, most: number) => {
    if (skip + most > MAX_LISTED)
      throw invalidRequest(`page: only the newest ${MAX_LISTED} memories have pages; use /memories`);
    const found: WireMemory[] = [];
    const parameters = new URLSearchParams({ user_id: entity.user_id, limit: String(PAGE) });
    if (!isWhole(entity)) parameters.set('scope', scopeOf(entity, '*'));
    do {
      const { items, next_cursor } = await operations.list(c.get('verbs'), `?${parameters}`, c.get('call'));
      found.push(...items);
      parameters.set('cursor', next_cursor ?? '');
    } while (parameters.get('cursor') !== '' && found.length <= skip + most);
    return { items: found.slice(skip, skip + most), more: found.length > skip + most };
  };
  const getAll = async (c: Context<Env>) => {
    const entity = entityOf(parse(Owner, c.req.query()));
    const { items } = await listed(c, entity, 0, numberOf(c, 'limit', numberOf(c, 'top_k', 100)));
    return c.json({ results: items.map(toMem0) });
  };
  const getPage = async (c: Context<Env>) => {
    const { filters, ...owner } = await body(c, QueryBody);
    const [page, size] = [numberOf(c, 'page', 1), numberOf(c, 'page_size', 100)];
    const entity = entityOf({ ...owner, ...equalities(filters ?? {}) });
    const { items, more } = await listed(c, entity, (page - 1) * size, size);
    return c.json({ next: more ? `?page=${page + 1}&page_size=${size}` : null, results: items.map(toMem0) });
  };
  const deleteAll = async (c: Context<Env>) => {
    const entity = entityOf(parse(Owner, c.req.query()));
    for (let more = true; more; ) {
      const page = await listed(c, entity, 0, PAGE);
      for (const { id } of page.items) await operations.delete(c.get('verbs'), { id }, c.get('call'));
      more = page.more;
    }
    return c.json({ message: 'Memories deleted successfully!' });
  };

  const app = new Hono<Env>();
  app.onError(async (error, c) => {
    const response = errorResponse(error, c);
    const envelope = (await response.json()) as { error: { message: string } };
    return c.json({ detail: envelope.error.message, ...envelope }, response.status as 400);
  });
  app.get('/v1/ping/', (c) => c.json({ status: 'ok' }));
  app.post('/memories', add).post('/v3/memories/add/', add);
  app.get('/memories', getAll).post('/v3/memories/', getPage);
  app.post('/search', search).post('/v3/memories/search/', search);
  app.delete('/memories', deleteAll).delete('/v1/memories/', deleteAll);
  for (const path of ['/memories/:id', '/v1/memories/:id/']) app.get(path, get).put(path, update).delete(path, remove);
  return app.get('/memories/:id/history', history).get('/v1/memories/:id/history/', history);
}

const NO_INFERENCE =
  'infer: this gateway stores memories as they are and extracts no facts; send "infer": false, or set OMP_COMPAT_INFER=verbatim to store the messages of such calls as they are';

const target = (c: Context<Env>) => ({ id: c.req.param('id') ?? '' });

function entityOf({ user_id, agent_id, run_id }: z.output<typeof Owner>): Entity {
  if (user_id == null) throw invalidRequest('user_id: required; a memory of this gateway belongs to a user');
  return { user_id, agent: agent_id ?? undefined, run: run_id ?? undefined };
}

/** `{ user_id }`, or `AND` of such conditions. Anything else is rejected, because leaving it out would answer too much. */
function equalities(filters: object): Record<string, string> {
  const entries = Object.entries(filters).flatMap(([name, value]): [string, string][] => {
    if (name === 'AND' && Array.isArray(value)) return value.flatMap((one) => Object.entries(equalities(Object(one))));
    if (['user_id', 'agent_id', 'run_id'].includes(name) && typeof value === 'string') return [[name, value]];
    throw invalidRequest(
      `filters.${name.slice(0, 64)}: this gateway filters by user_id, agent_id and run_id, each equal to a text`,
    );
  });
  return Object.fromEntries(entries);
}

/** Any text as one segment of a scope. `-` stands for none, so that every memory of an agent is below its segment. */
const segment = (id: string): string => (id === '-' ? '%2D' : encodeURIComponent(id).replaceAll('*', '%2A'));
const prefixOf = (agent: string) => `mem0/agent/${agent}`;
/** The scope of these, or with `*` for what is not given, the glob of all that have them. */
const scopeOf = ({ agent, run }: Entity, absent: '-' | '*'): string => {
  const part = (id: string | undefined) => (id === undefined ? absent : segment(id));
  return `${prefixOf(part(agent))}/run/${part(run)}`;
};

const isWhole = ({ agent, run }: Entity): boolean => agent === undefined && run === undefined;

const SCOPE = /^mem0\/agent\/([^/]+)\/run\/([^/]+)$/;
function partsOf({ scope }: WireMemory): { agent: string | null; run: string | null } {
  const [, agent = '-', run = '-'] = SCOPE.exec(scope ?? '') ?? [];
  const decode = (text: string) => (text === '-' ? null : decodeURIComponent(text));
  return { agent: decode(agent), run: decode(run) };
}

function isOf({ agent, run }: Entity, memory: WireMemory): boolean {
  const parts = partsOf(memory);
  return (agent === undefined || parts.agent === agent) && (run === undefined || parts.run === run);
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

function numberOf(c: Context<Env>, name: string, otherwise: number): number {
  const text = c.req.query(name);
  if (text === undefined) return otherwise;
  if (!/^\d{1,4}$/.test(text) || text === '0') throw invalidRequest(`${name}: must be a whole number from 1 to 9999`);
  return Number(text);
}
