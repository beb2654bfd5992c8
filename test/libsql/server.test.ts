import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClient } from '@libsql/client';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Call, type Memory, type Provider } from '#contract';
import libsql from '../../providers/collections/libsql.ts';
import { recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, listOf, memoryOf, refTo } from '../support/requests.ts';
import { NO_SQLD, openSqld, tokenKeys } from './server.ts';

const context = {
  embedder: hashingEmbedder(),
  ranking: { mode: 'vector', keyword_weight: 0 } as const,
  audit: undefined,
  data_dir: '.',
  log: recordingLog(),
};
const open = async (options: object): Promise<Required<Provider>> => {
  const provider = (await libsql.open(options, context)) as Required<Provider>;
  onTestFinished(() => provider.close());
  return provider;
};
const add = async (provider: Required<Provider>, content = 'tea') => {
  const vector = new Float32Array(64).fill(1);
  return (await provider.add({ input: memoryOf('ana', content), vector }, call)) as Memory;
};

it('[SPEC Errors provider_error] what is no answer of libSQL is told', async () => {
  const answers = ['<html>sign in</html>', '{"baton":null,"base_url":null,"results":"none"}'];
  for (const answer of answers) {
    const proxy = createServer((_, response) => response.end(answer)).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    onTestFinished(() => void proxy.close());
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    await expect(open({ url }), answer).rejects.toMatchObject({
      message: 'libSQL, or what stands before it, answered what cannot be read',
      ...{ retry: 'reads', down: true },
    });
  }
});

describe.skipIf(NO_SQLD !== '')(`a libSQL server${NO_SQLD && ` (${NO_SQLD})`}`, () => {
  let server: Awaited<ReturnType<typeof openSqld>>;
  beforeAll(async () => {
    server = await openSqld();
  });
  afterAll(() => server?.close());
  /** A table of its own. */
  const fresh = () => open({ url: server.url, table: `t_${randomUUID().replaceAll('-', '')}` });

  it('[SPEC Errors provider_error] that is down is told, until it answers again with what was stored', async () => {
    const provider = await fresh();
    const memory = await add(provider);
    await server.kill();
    const down = { code: 'provider_error', message: 'libSQL cannot be reached', down: true, retry: 'safe' };
    const away = [
      () => provider.get(refTo(memory.id), call),
      () => provider.delete(refTo(memory.id), call),
      () => add(provider),
      () => provider.ping(call),
    ];
    for (const work of away) await expect(work()).rejects.toMatchObject(down);
    await server.start();
    expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
  });

  it('[Decision 64] takes tokens: none, an expired one and one that may only read are refused', async () => {
    const keys = tokenKeys();
    const { url, close } = await openSqld({ key: keys.pem });
    onTestFinished(close);
    const exp = 4_000_000_000;
    const provider = await open({ url, auth_token: keys.token({ exp }) });
    const { id } = await add(provider);
    const rejected = { code: 'provider_error', message: 'libSQL rejected the key of the gateway', down: false };
    for (const auth_token of [undefined, keys.token({ exp: 1 }), tokenKeys().token({ exp })])
      await expect(open({ url, ...(auth_token && { auth_token }) })).rejects.toMatchObject(rejected);
    // The table is there, so the start writes nothing that is missing.
    await expect(open({ url, auth_token: keys.token({ exp, a: 'ro' }) })).rejects.toMatchObject({
      message: 'libSQL does not allow this to the key of the gateway',
    });
    expect(await provider.get(refTo(id), call)).toMatchObject({ id });
  });

  it('[Decision 64] [Decision 29] answers pages of more than its 10 MB, and takes the largest record', async () => {
    const provider = await fresh();
    const added: Memory[] = [];
    for (let n = 0; n < 4; n++) added.push(await add(provider, `${n}${'x'.repeat(4_500_000)}`));
    const page = await provider.list({ ...listOf('ana'), limit: 10, max_bytes: 100_000_000 }, call);
    expect(page.map(({ id, content }) => [id, content[0]])).toEqual(
      added.reverse().map(({ id, content }) => [id, content[0]]),
    );
    await expect(add(provider, 'x'.repeat(4_950_000))).rejects.toMatchObject({ code: 'payload_too_large' });
  });

  it('[Decision 64] goes on with writes when another client holds a transaction open', async () => {
    const provider = await fresh();
    const { id } = await add(provider);
    const other = createClient({ url: server.url });
    onTestFinished(() => other.close());
    const held = await other.transaction('write');
    await held.execute('CREATE TABLE IF NOT EXISTS other (a)');
    // The server takes the lock away after five seconds.
    expect(await provider.delete(refTo(id), call)).toBe(true);
    await expect(held.commit()).rejects.toThrow();
  });

  it('[Decision 27] no request outlives its call', async () => {
    const provider = await fresh();
    server.freeze();
    const abort = new AbortController();
    const slow = provider.ping(new Call('slow', undefined, abort.signal));
    abort.abort(new Error('too late'));
    await expect(slow).rejects.toThrow('too late');
    await server.kill();
    await server.start();
  });
});
