import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ErrorCode, OmpError, type Provider } from '#contract';
import { createApp } from '../../src/http/app.ts';
import { type Client, clientOf, type Reply } from '../support/client.ts';
import { APP_LIMITS, openSubject, recordingLog, type Subject } from '../support/subject.ts';
import { ERRORS, MAX_BODY_BYTES, type WireContext, type WireHit, type WirePage } from '../support/wire.ts';
import {
  type Document,
  type Endpoint,
  endpointsOf,
  fetchDocument,
  type Judge,
  judgeOf,
  pointerTo,
} from './document.ts';

/** Nothing records an audit log yet, so these answers have no one to give them; the page's own are tested beside it. */
const UNREACHED = [
  'GET /audit 200',
  'GET /audit invalid_request',
  'GET /audit rate_limited',
  'GET /audit provider_error',
  'GET /docs not_found',
];

/** What can be wrong with a request, or below it. */
type Condition = 'none' | Exclude<ErrorCode, 'unauthorized' | 'scope_denied'>;
const CONDITIONS = ['none', ...Object.keys(ERRORS)].filter(
  (code): code is Condition => !['unauthorized', 'scope_denied'].includes(code),
);

describe('every answer is one the description tells of', () => {
  let subject: Subject;
  let document: Document;
  let judge: Judge;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
    document = await fetchDocument(subject.client);
    judge = await judgeOf(document, { closed: true });
  });
  afterAll(() => Promise.all([subject.close(), judge.close()]));

  /** The memory provider never fails and lacks no verb, so for some conditions it is made to. */
  const clientUnder = (condition: Condition): Client => {
    const provider = alter(subject.provider, condition);
    const app = createApp({ provider, log: recordingLog(), ...APP_LIMITS });
    return clientOf(async (path, init) => app.request(path, init, {}));
  };

  const seen = new Set<string>();
  for (const condition of CONDITIONS) {
    it(`under the condition ${condition}`, async () => {
      const client = clientUnder(condition);
      for (const endpoint of endpointsOf(document)) {
        const { id } = await subject.client.add({ content: 'prefers pnpm', user_id: 'u1' });
        const reply = await send(client, endpoint, condition, id);
        const name = `${endpoint.method} ${endpoint.path}`;
        seen.add(`${name} ${codeOf(reply) ?? reply.status}`);
        await check(reply, endpoint, name);
      }
    });
  }

  it('and every answer it tells of has now been seen', () => {
    const told = endpointsOf(document).flatMap(({ method, path, operation }) =>
      Object.entries(operation.responses).flatMap(([status, { content }]) => {
        const codes = Object.keys(content?.['application/json']?.examples ?? {});
        return (codes.length > 0 ? codes : [status]).map((answer) => `${method} ${path} ${answer}`);
      }),
    );
    expect([...seen, ...UNREACHED].sort()).toEqual(told.sort());
  });

  it('and the examples find each other', async () => {
    const { client, close } = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
    const [add, list, search, context] = ['addMemory', 'listMemories', 'searchMemories', 'buildContext'].map(
      (id) => endpointsOf(document).find(({ operation }) => operation.operationId === id) as Endpoint,
    ) as [Endpoint, Endpoint, Endpoint, Endpoint];
    const { content } = (await send(client, add, 'none', '')).body as { content: string };
    const page = (await send(client, list, 'none', '')).body as WirePage;
    const { results } = (await send(client, search, 'none', '')).body as { results: WireHit[] };
    const { text } = (await send(client, context, 'none', '')).body as WireContext;
    expect(page.items.map((memory) => memory.content)).toEqual([content]);
    expect(results.map(({ memory }) => memory.content)).toEqual([content]);
    expect(text).toBe(`[1] ${content}`);
    await close();
  });

  async function check(reply: Reply, { pointer, operation }: Endpoint, name: string): Promise<void> {
    const answer = operation.responses[reply.status];
    expect(answer, `${name} answered ${reply.status}: ${reply.text.slice(0, 300)}`).toBeDefined();
    for (const header of Object.keys(answer?.headers ?? {}))
      if (header !== 'retry-after') expect(reply.headers.get(header), `${name} ${header}`).toMatch(/\S/);
    const [type] = Object.keys(answer?.content ?? {});
    if (type === undefined) return expect(reply.text, name).toBe('');
    expect(reply.headers.get('content-type'), name).toMatch(new RegExp(`^${type}(;|$)`));
    const place = pointer + pointerTo('responses', String(reply.status), 'content', type, 'schema');
    expect(await judge.mistakes(place, reply.body ?? reply.text), `${name} ${reply.text.slice(0, 300)}`).toEqual([]);
  }
});

const codeOf = (reply: Reply): string | undefined =>
  (reply.body as { error?: { code: string } } | undefined)?.error?.code;

/** The request that the description's own examples make, with what the condition asks to be wrong about it. */
async function send(client: Client, endpoint: Endpoint, condition: Condition, id: string): Promise<Reply> {
  const { method, operation, parameters } = endpoint;
  const path = endpoint.path.replace('{id}', condition === 'not_found' ? 'mem_unknown' : id);
  const content = operation.requestBody?.content['application/json'];
  if (content) {
    const bodies = { invalid_request: 'not an object', payload_too_large: 'x'.repeat(MAX_BODY_BYTES) };
    return client.tell(method, path, condition in bodies ? bodies[condition as keyof typeof bodies] : content.example);
  }
  if (method === 'DELETE') return client.tell(method, path);
  const inQuery = parameters.filter((parameter) => parameter.in === 'query' && parameter.example !== undefined);
  const given = condition === 'invalid_request' ? inQuery.filter(({ required }) => !required) : inQuery;
  return client.ask(path, Object.fromEntries(given.map(({ name, example }) => [name, String(example)])));
}

function alter(provider: Provider, condition: Condition): Provider {
  if (condition === 'unsupported_capability') {
    const { name, capabilities, add, get, ping, close } = provider;
    return { name, capabilities, add, get, ping, close };
  }
  if (condition !== 'rate_limited' && condition !== 'provider_error') return provider;
  const fail = async () => {
    throw new OmpError(condition, 'not now', { provider: provider.name, retryAfter: 1 });
  };
  const failing = { add: fail, get: fail, update: fail, delete: fail, list: fail, search: fail };
  return { ...provider, ...failing, ...(condition === 'provider_error' && { ping: fail }) };
}
