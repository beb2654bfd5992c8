import { Hono } from 'hono';
import { afterEach, expect, it } from 'vitest';
import type { Call, Consistency, Provider } from '#contract';
import { consistencyOf } from '../../src/http/request.ts';
import { openSubject, type Subject } from '../support/subject.ts';

const subjects: Subject[] = [];
afterEach(async () => {
  for (const subject of subjects.splice(0)) await subject.close();
});

/** A gateway whose backend has something to say about consistency with every get and add. */
async function open(say: (consistency: Consistency) => void, consistency_tokens = true): Promise<Subject> {
  const tell = ({ consistency }: Call) => consistency && say(consistency);
  const alter = (all: Provider): Provider => {
    const provider = all as Required<Provider>;
    return {
      ...provider,
      capabilities: { ...provider.capabilities, consistency_tokens },
      get: (ref, call) => {
        tell(call);
        return provider.get(ref, call);
      },
      add: (input, vector, call) => {
        tell(call);
        return provider.add(input, vector, call);
      },
    };
  };
  const subject = await openSubject({ provider: 'memory', options: {}, alter });
  subjects.push(subject);
  return subject;
}

const INPUT = { content: 'x', user_id: 'u' };
const headersOf = ({ headers }: { headers: Headers }) => [
  headers.get('x-consistency-token'),
  headers.get('x-consistency'),
];

it('[Decision 23] what the backend gives as a token goes out with the answer', async () => {
  const { client } = await open(({ answer }) => answer('a-token_1'));
  const added = await client.tell('POST', '/memories', INPUT);
  expect([added.status, ...headersOf(added)]).toEqual([201, 'a-token_1', null]);
});

it('[Decision 23] the token of a request reaches the backend as it is', async () => {
  const seen: unknown[] = [];
  const { as } = await open(({ token }) => seen.push(token));
  for (const token of ['an-opaque_token', '', 'x'.repeat(1_024), 'not one of ours!']) {
    await as({ 'x-consistency-token': token }).tell('POST', '/memories', INPUT);
  }
  expect(seen).toEqual(['an-opaque_token', '', 'x'.repeat(1_024), 'not one of ours!']);
});

it('[Decision 23] without a token, or with one that is too long to be ours, there is none', async () => {
  const seen: unknown[] = [];
  const { client, as } = await open(({ token }) => seen.push(token));
  const plain = await client.tell('POST', '/memories', INPUT);
  const long = await as({ 'x-consistency-token': 'x'.repeat(1_025) }).tell('POST', '/memories', INPUT);
  expect(seen).toEqual([undefined, undefined]);
  expect([plain.status, long.status]).toEqual([201, 201]);
});

it('[Decision 23] an answer that may lack something says so, an error too', async () => {
  const { client } = await open(({ behind }) => behind());
  const missing = await client.ask('/memories/mem_x');
  expect([missing.status, ...headersOf(missing)]).toEqual([404, null, 'behind']);
});

it('[Decision 23] where the backend has no use for tokens, nothing is asked and nothing said', async () => {
  const heard: unknown[] = [];
  const { as } = await open((consistency) => heard.push(consistency), false);
  const reply = await as({ 'x-consistency-token': 'a-token' }).tell('POST', '/memories', INPUT);
  expect(heard).toEqual([]);
  expect([reply.status, ...headersOf(reply)]).toEqual([201, null, null]);
});

it('[Decision 23] what is told after the answer has gone is lost, and does no harm', async () => {
  let late: Consistency | undefined;
  const app = new Hono()
    .use((_, next) => next())
    .get('/', (c) => {
      late = consistencyOf(c);
      return c.text('gone');
    });
  const reader = (await app.request('/')).body?.getReader();
  // The answer is being sent.
  late?.answer('a-token');
  late?.behind();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('gone');
});
