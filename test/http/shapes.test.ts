import { afterAll, describe, expect, it } from 'vitest';
import { type KeyStore, MAX_BATCH_SIZE } from '#contract';
import { ALL_GRANTS } from '../../src/core/grants.ts';
import { mem0Routes } from '../../src/http/mem0-routes.ts';
import { MAX_MESSAGE_VALUES, TOOL_NAMES } from '../../src/mcp/names.ts';
import { requireBounds } from '../../src/verbs/fields.ts';
import { type Document, endpointsOf, fetchDocument, resolve, type Schema } from '../description/document.ts';
import { FULL } from '../support/full.ts';
import { costOf } from '../support/hold.ts';
import { exchange, jsonRequest } from '../support/raw-http.ts';
import { startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

/*
 * No shape of JSON in any place of a body costs much more work than a harmless body of its size, or gets a long error. The
 * places come from the OpenAPI document, the schemas of the tools and the routes of mem0: a new field, tool or route is
 * covered, or fails a test until it has an example.
 */

/** Of a body. All shapes at their limits fit. */
const BYTES = 300_000;
/** A body may cost this many times as much as a harmless one and its own shape in an ignored field together. */
const MOST = 3;
const ATTEMPTS = 4;
const MAX_ERROR_LENGTH = 12_000;

const keys = {
  create: async (key: object) => ({ ...key, created_at: '', revoked_at: null, last_used_at: null }),
} as unknown as KeyStore;
const principal = { id: 'key', app: null, users: null, grants: { ...ALL_GRANTS, admin: true } };
const server = await startServer({
  alter: (provider) => ({ ...provider, keys }),
  authenticator: { authenticate: async () => principal },
  mcp: { enabled: 'on', tools: TOOL_NAMES },
  compat: { interface: 'mem0', infer: 'verbatim' },
});
afterAll(() => server.close());

/** As many as fit into a body, or `most`, filled up with spaces to the size of a body. */
const filled = (open: string, one: (i: number) => string, close: string, most = Number.POSITIVE_INFINITY): string => {
  const count = Math.min(most, Math.floor(BYTES / (one(99_999).length + 1)));
  const space = ' '.repeat(Math.max(0, Math.floor(BYTES / count) - one(99_999).length - 1));
  return `${open}${Array.from({ length: count }, (_, i) => one(i) + space).join(',')}${close}`;
};
const wide = (limit: string, most?: number) => ({
  [`numbers${limit}`]: filled('[', () => '0', ']', most),
  [`empty objects${limit}`]: filled('[', () => '{}', ']', most),
  [`texts${limit}`]: filled('[', () => '"x"', ']', most),
  [`keys${limit}`]: filled('{', (i) => `"k${i}":0`, '}', most),
});
const nested = (open: string, close: string, levels: number) => open.repeat(levels) + close.repeat(levels);
/** Values as JSON, as many as fit into a body, and as many as just pass the limits of a body and of a message of MCP. */
const ALL_SHAPES: Readonly<Record<string, string>> = {
  ...wide(''),
  ...wide(' within the limit of a body', 90_000),
  ...wide(' within the limit of a message', 450),
  'nested lists': nested('[', ']', BYTES / 2),
  'nested objects': `${'{"a":'.repeat(BYTES / 6)}0${'}'.repeat(BYTES / 6)}`,
  'nested lists within the limit': nested('[', ']', 50),
  'a long text': JSON.stringify('x'.repeat(BYTES)),
  'a long name': `{${JSON.stringify('x'.repeat(BYTES))}:0}`,
};
/** Each once: some that fill a body are within its limit. */
const SHAPES = Object.entries(ALL_SHAPES).filter(
  ([, one], i, all) => all.findIndex(([, other]) => other === one) === i,
);
/** Those that are rejected before anything reads what stands where: they are tried in the place of a body and of an unknown field only. */
const rejectedWith = (most?: number): ReadonlySet<string> =>
  new Set(SHAPES.flatMap(([name, shape]) => (isRejected(JSON.parse(shape), most) ? [name] : [])));
const isRejected = (json: unknown, most?: number): boolean => {
  try {
    requireBounds(json, most);
    return false;
  } catch {
    return true;
  }
};
const REJECTED = { body: rejectedWith(), message: rejectedWith(MAX_MESSAGE_VALUES) };
const ANYWHERE = /^body(?:\.unknown)?$/;

interface Example {
  readonly name: string;
  readonly method: string;
  /** With `$user` for a user of its own, as in the body. */
  readonly path: string;
  readonly headers?: readonly string[];
  readonly body: unknown;
}

interface Described extends Schema {
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly patternProperties?: object;
}
/** Every field of a schema; a list of objects has `MAX_BATCH_SIZE`. */
function exampleOf(document: Document, given: Schema): unknown {
  const schema: Described = { ...resolve(document, given), ...given };
  const { properties, items, anyOf, examples, format, patternProperties, type, minimum = 1 } = schema;
  if (properties) {
    const fields = Object.entries(properties).map(([name, inner]) => [name, exampleOf(document, inner)]);
    return { ...Object.fromEntries(fields), ...(patternProperties && { 'x-own': { a: ['b'] } }) };
  }
  if (items) {
    const one = exampleOf(document, items);
    return typeof one === 'object' ? Array(MAX_BATCH_SIZE).fill(one) : [one];
  }
  if (anyOf) return exampleOf(document, anyOf[0] as Schema);
  if (format === 'date-time') return '2030-01-01T00:00:00Z';
  return examples?.[0] ?? schema.enum?.[0] ?? (/number|integer/.test(String(type)) ? minimum : 'x');
}

const document = await fetchDocument(server.client);
const routes: Example[] = endpointsOf(document).flatMap(({ method, path, operation }) => {
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (!schema) return [];
  const body = JSON.stringify(exampleOf(document, schema)).replaceAll('"u1"', '"$user"');
  return [{ name: `${method} ${path}`, method, path: path.replace('{id}', 'mem_x'), body: JSON.parse(body) }];
});

const OWNER = { user_id: '$user', agent_id: 'a', run_id: 'r' };
const FILTERS = { filters: { AND: [{ user_id: '$user' }], agent_id: 'a' } };
const MEM0: Readonly<Record<string, object>> = {
  'POST /memories': {
    ...OWNER,
    messages: Array(MAX_BATCH_SIZE).fill({ role: 'user', content: [{ type: 'text', text: 'a' }] }),
    metadata: { a: 'b' },
    infer: false,
  },
  'POST /search': { ...FILTERS, query: 'tea', top_k: 1, limit: 1, threshold: 0 },
  'POST /v3/memories/': FILTERS,
  'PUT /memories/:id': { text: 'a', data: 'a', metadata: { a: 'b' } },
};
/** Other paths of the same routes. */
const SAME: Readonly<Record<string, string>> = {
  'POST /v3/memories/add/': 'POST /memories',
  'POST /v3/memories/search/': 'POST /search',
  'PUT /v1/memories/:id/': 'PUT /memories/:id',
};
const mem0: Example[] = Object.entries(MEM0).map(([name, body]) => {
  const [method = '', path = ''] = name.split(' ');
  return { name: `mem0 ${name}`, method, path: `/compat/mem0${path.replace(':id', 'mem_x')}`, body };
});

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'agent', version: '1', icons: [{ src: 'https://a.example/' }] },
  'io.modelcontextprotocol/clientCapabilities': { experimental: {}, elicitation: {} },
};
const info = ENVELOPE['io.modelcontextprotocol/clientInfo'];
const capabilities = ENVELOPE['io.modelcontextprotocol/clientCapabilities'];
const ACCEPT = 'Accept: application/json, text/event-stream';
/** A message in both generations of the protocol. */
const messages = (method: string, params: Readonly<Record<string, unknown>>): Example[] => {
  const name = `MCP ${method} ${params.name ?? ''}`;
  const [path, message] = ['/mcp/$user', { jsonrpc: '2.0', id: 1, method }];
  const standard = [`Mcp-Method: ${method}`, ...(params.name === undefined ? [] : [`Mcp-Name: ${params.name}`])];
  return [
    { name, method: 'POST', path, headers: [ACCEPT], body: { ...message, params: { _meta: {}, ...params } } },
    {
      ...{ name: `${name} of 2026-07-28`, method: 'POST', path },
      headers: [ACCEPT, 'MCP-Protocol-Version: 2026-07-28', ...standard],
      body: { ...message, params: { ...params, _meta: ENVELOPE } },
    },
  ];
};
const listed = async (method: string) => {
  const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method });
  const { text } = await exchange(server.port, jsonRequest('POST', '/mcp/u', message, [ACCEPT]));
  return JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)).result;
};
interface Listed {
  readonly tools: readonly { readonly name: string; readonly inputSchema: Schema }[];
  readonly prompts: readonly { readonly name: string; readonly arguments: readonly { readonly name: string }[] }[];
}
const { tools } = (await listed('tools/list')) as Listed;
const { prompts } = (await listed('prompts/list')) as Listed;
const mcp: Example[] = [
  ...messages('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo: info }),
  ...tools.flatMap(({ name, inputSchema }) =>
    messages('tools/call', { name, arguments: exampleOf(document, inputSchema) }),
  ),
  ...prompts.flatMap(({ name, arguments: all }) =>
    messages('prompts/get', { name, arguments: Object.fromEntries(all.map((one) => [one.name, 'tea'])) }),
  ),
  ...messages('resources/read', { uri: 'memory://profile' }),
  ...['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'].flatMap((method) =>
    messages(method, { cursor: 'x' }),
  ),
  ...messages('completion/complete', {
    ref: { type: 'ref/prompt', name: 'recall' },
    argument: { name: 'task', value: 'x' },
  }),
  ...['ping', 'server/discover', 'unknown', 'notifications/cancelled', 'subscriptions/listen'].flatMap((method) =>
    messages(method, {}),
  ),
];

const MARK = '@@';
/** The body with `MARK` in the place of each of its values, and as one more field of each of its objects. */
function* marked(value: unknown, place = 'body'): Generator<{ place: string; body: unknown }> {
  yield { place, body: MARK };
  if (typeof value !== 'object' || value === null) return;
  // The other elements of a list are the same.
  const parts = Array.isArray(value) ? [['0', value[0]] as const] : [...Object.entries(value), ['unknown', 0] as const];
  for (const [name, part] of parts) {
    for (const { place: inner, body } of marked(part, `${place}.${name}`)) {
      yield { place: inner, body: Array.isArray(value) ? [body, ...value.slice(1)] : { ...value, [name]: body } };
    }
  }
}

/** The same field of several routes, tools or prompts has the same schema: `known` is what they share. */
const placesIn = (examples: readonly Example[], known: (example: Example, place: string, field: string) => string) => {
  const all = examples.flatMap((example) =>
    [...marked(example.body)].map(({ place, body }) => ({
      name: `${example.name}, ${place}`,
      place,
      kind: known(example, place, /[^.]+(?:\.0)?$/.exec(place)?.[0] ?? ''),
      example,
      template: JSON.stringify(body),
    })),
  );
  return FULL ? all : all.filter(({ kind }, i) => all.findIndex((other) => other.kind === kind) === i);
};
const PLACES = [
  ...placesIn(routes, ({ name }, place, field) => (ANYWHERE.test(place) ? `${name} ${place}` : field)),
  ...placesIn(mem0, ({ name }, place) => `${name} ${place}`),
  ...placesIn(mcp, ({ name }, place, field) =>
    /params(?!\._meta)/.test(place) ? `${name.split(' ')[1]} ${field}` : field,
  ),
];

async function send({ method, path, headers }: Omit<Example, 'name' | 'body'>, body: string) {
  const user = freshUser();
  const bytes = jsonRequest(method, path.replace('$user', user), body.replaceAll('$user', user), headers);
  let reply = { status: 0, text: '' };
  const cost = await costOf(async () => {
    reply = await exchange(server.port, bytes);
  });
  return { ...reply, cost };
}

const PROSE = 'The user likes green tea in the morning, and coffee after lunch. ';
const HARMLESS = JSON.stringify({
  memories: Array(MAX_BATCH_SIZE).fill({
    content: PROSE.repeat(BYTES / MAX_BATCH_SIZE / PROSE.length - 3),
    ...{ user_id: '$user', tags: ['tea', 'drinks'], source: { app: 'notes', type: 'explicit' } },
    'x-topic': { drinks: ['tea', 'coffee'], times: 2 },
  }),
});
const IGNORED = JSON.stringify({ content: 'tea', user_id: '$user', ignored: MARK });
const withShape = (template: string, shape: string) => template.replaceAll(`"${MARK}"`, () => shape);

/** Processor time of the cheaper of two requests: one may collect the garbage of earlier ones. */
const least = async (method: string, path: string, body: string): Promise<number> => {
  const costs = [await send({ method, path }, body), await send({ method, path }, body)];
  return Math.min(...costs.map(({ cost }) => cost));
};
await least('POST', '/memories/batch', HARMLESS);
const usual = await least('POST', '/memories/batch', HARMLESS);
const allowed: Record<string, number> = {};
for (const [name, shape] of SHAPES) {
  allowed[name] = MOST * (usual + (await least('POST', '/memories', withShape(IGNORED, shape))));
}

/** The cheapest of a few attempts must be within what is allowed; every answer must be short. */
async function expectLittleWork({ example, template }: (typeof PLACES)[number], name: string, shape: string) {
  const body = withShape(template, shape);
  const most = allowed[name] as number;
  let cost = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && cost > most; attempt++) {
    const reply = await send(example, body);
    cost = Math.min(cost, reply.cost);
    // JSON-RPC repeats the id.
    const { length } = reply.text.replace(shape, '');
    const failed = reply.status >= 400 || (/^\/mcp/.test(example.path) && /"error":\{|"isError":true/.test(reply.text));
    expect(reply.status, name).toBeLessThan(500);
    expect(length, name).toBeLessThan(failed ? MAX_ERROR_LENGTH : 2 * body.length + MAX_ERROR_LENGTH);
  }
  expect(cost / most, name).toBeLessThan(1);
}

describe('no shape of JSON multiplies work', () => {
  it('[Decision 29] the examples have every route with a body, every tool and a prompt', () => {
    const withBody = mem0Routes({} as never, 0, { infer: 'reject' }).routes.filter(({ method }) => /^P/.test(method));
    const names = withBody.map(({ method, path }) => `${method} ${path}`);
    expect(names.map((name) => SAME[name] ?? name).filter((name) => !(name in MEM0))).toEqual([]);
    expect(tools.map(({ name }) => name)).toEqual(TOOL_NAMES);
    expect(prompts).not.toEqual([]);
    expect(routes.map(({ name }) => name)).toEqual(expect.arrayContaining(['POST /keys', 'POST /import']));
  });

  it.each(PLACES.map((place) => [place.name, place] as const))('[Decision 29] %s', async (_, place) => {
    const rejected = /^\/mcp/.test(place.example.path) ? REJECTED.message : REJECTED.body;
    for (const [name, shape] of SHAPES)
      if (FULL || ANYWHERE.test(place.place) || !rejected.has(name)) await expectLittleWork(place, name, shape);
  });
});
