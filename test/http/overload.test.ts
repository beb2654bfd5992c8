import { afterEach, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import { ALL_GRANTS } from '../../src/core/grants.ts';
import type { Authenticator } from '../../src/core/principal.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { until } from '../postgres/store.ts';
import { expectError } from '../support/expect-error.ts';
import { type RunningServer, startServer } from '../support/server.ts';

describe('more requests at once than allowed', () => {
  let server: RunningServer | undefined;
  afterEach(() => server?.close());

  it('[SPEC Errors rate_limited] [Decision 29] are refused at once, and health is told all the same', async () => {
    const { opened, open: goOn } = gate();
    let working = 0;
    /** The memory provider answers at once, so a backend that is slow cannot be had from it. */
    const alter = (provider: Provider): Provider => ({
      ...provider,
      get: async (ref, call) => {
        working++;
        await opened;
        return provider.get(ref, call);
      },
    });
    server = await startServer({ alter, max_requests: 3, max_requests_per_caller: 3 });
    const { client } = server;
    const slow = Array.from({ length: 3 }, () => client.ask('/memories/mem_x'));
    await until(async () => working === 3);
    for (const path of ['/memories/mem_x', '/memories?user_id=u', '/nowhere', '/capabilities']) {
      const refused = await client.ask(path);
      expect(expectError(refused, 'rate_limited')).not.toHaveProperty('provider');
      expect(refused.headers.get('retry-after')).toBe('1');
    }
    expect((await client.ask('/healthz')).status).toBe(200);
    expect(working).toBe(3);
    goOn();
    for (const reply of await Promise.all(slow)) expectError(reply, 'not_found');
    // Nobody who was refused, or has been answered, takes a place.
    for (let i = 0; i < 5; i++) expectError(await client.ask('/memories/mem_x'), 'not_found');
  });

  it('[SPEC Errors rate_limited] [Decision 29] of one caller are refused beyond its share, and others are served', async () => {
    const { opened, open: goOn } = gate();
    let working = 0;
    const alter = (provider: Provider): Provider => ({
      ...provider,
      get: async (ref, call) => {
        working++;
        if (call.caller.id === 'key:one') await opened;
        return provider.get(ref, call);
      },
    });
    const authenticator: Authenticator = {
      authenticate: async (credential) => ({ id: `key:${credential}`, app: null, users: null, grants: ALL_GRANTS }),
    };
    server = await startServer({ alter, authenticator, max_requests: 7 });
    const { client } = server;
    const ask = (key: string) => client.ask('/memories/mem_x', {}, { 'x-api-key': key });
    // Half of seven, rounded up.
    const slow = Array.from({ length: 4 }, () => ask('one'));
    await until(async () => working === 4);
    for (let i = 0; i < 5; i++) {
      const refused = await ask('one');
      expect(expectError(refused, 'rate_limited')).not.toHaveProperty('provider');
      expect(refused.headers.get('retry-after')).toBe('1');
      expectError(await ask('other'), 'not_found');
    }
    goOn();
    for (const reply of await Promise.all(slow)) expectError(reply, 'not_found');
    for (let i = 0; i < 10; i++) expectError(await ask('one'), 'not_found');
  });

  it('[Decision 29] whose clients have gone give their place back', async () => {
    const { opened, open: goOn } = gate();
    let working = 0;
    const alter = (provider: Provider): Provider => ({
      ...provider,
      get: async (ref, call) => {
        working++;
        await opened;
        return provider.get(ref, call);
      },
    });
    server = await startServer({ alter, max_requests_per_caller: 2 });
    const { client, url } = server;
    const going = new AbortController();
    const left = [1, 2].map(() => fetch(`${url}/memories/mem_x`, { signal: going.signal }).catch(() => undefined));
    await until(async () => working === 2);
    expectError(await client.ask('/memories/mem_x'), 'rate_limited');
    going.abort();
    await Promise.all(left);
    goOn();
    await until(async () => (await client.ask('/memories/mem_x')).status === 404);
    for (let i = 0; i < 5; i++) expectError(await client.ask('/memories/mem_x'), 'not_found');
  });
});
