import { afterEach, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
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
    server = await startServer({ alter, max_requests: 3 });
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
});
