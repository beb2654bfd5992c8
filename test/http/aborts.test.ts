import { afterEach, describe, expect, it } from 'vitest';
import type { Call, Provider } from '#contract';
import { expectError } from '../support/expect-error.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { connectRaw, exchange, jsonRequest, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/**
 * The memory provider answers at once, so a backend that is slow cannot be had from it: this one takes `get`
 * as long as the test wants. Everything else stays real.
 */
const slowGet =
  (work: (call: Call) => Promise<void>) =>
  (provider: Provider): Provider => ({
    ...provider,
    get: async (ref, call) => {
      await work(call);
      return provider.get(ref, call);
    },
  });
const never = () => new Promise<void>(() => {});
/** A deadline that passes when a test says so. */
const HELD_MS = 3_599_999;

describe('aborts and deadlines', () => {
  let server: RunningServer | undefined;
  afterEach(() => server?.close());
  const start = async (...options: Parameters<typeof startServer>): Promise<RunningServer> => {
    server = await startServer(...options);
    return server;
  };
  const healthy = async ({ port }: RunningServer) => {
    expect((await exchange(port, request('GET', '/healthz'))).status).toBe(200);
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    expect((await exchange(port, jsonRequest('POST', '/memories', body))).status).toBe(201);
  };

  it('[Decision 16] a client that leaves while the backend works aborts the work', async () => {
    const calls: Call[] = [];
    let begin = (_call: Call): void => {};
    const begun = new Promise<Call>((resolve) => {
      begin = resolve;
    });
    const running = await start({
      alter: slowGet(async (call) => {
        calls.push(call);
        begin(call);
        await aborted(call.signal);
      }),
    });
    const connection = connectRaw(running.port);
    connection.write(request('GET', '/memories/mem_x', ['X-Request-Id: leaver']));
    const call = await begun;
    expect(call.requestId).toBe('leaver');
    expect(call.signal.aborted).toBe(false);
    connection.destroy();
    await aborted(call.signal);
    expect(calls).toHaveLength(1);
    await healthy(running);
  });

  it('[Decision 16] a request that is served to its end is never aborted', async () => {
    const seen: Call[] = [];
    const running = await start({ alter: slowGet(async (call) => void seen.push(call)) });
    const connection = connectRaw(running.port);
    for (let i = 0; i < 3; i++) {
      connection.write(request('GET', '/memories/mem_x'));
      expectError(await connection.next(), 'not_found');
    }
    connection.destroy();
    await connection.closed();
    await healthy(running);
    expect(seen.map((call) => call.signal.aborted)).toEqual([false, false, false]);
  });

  it('[Decision 16] a client that leaves in the middle of its body harms nobody', async () => {
    const running = await start();
    for (const half of ['', '{', '{"content":"x","user_id":"half']) {
      const connection = connectRaw(running.port);
      connection.write(request('POST', '/memories', ['Content-Type: application/json', 'Content-Length: 5000'], half));
      // An answer on a second connection shows that the server has had the first one's bytes.
      await exchange(running.port, request('GET', '/healthz'));
      connection.destroy();
      await connection.closed();
    }
    await healthy(running);
    const listed = await running.client.list({ user_id: 'half' });
    expect(listed.items).toEqual([]);
  });

  it('[SPEC Errors provider_error] [Decision 16] a backend slower than the deadline is a 502, whether it listens to the signal or not', async () => {
    const deadlines = holdTimers(HELD_MS);
    for (const work of [(call: Call) => aborted(call.signal), never]) {
      const running = await start({ alter: slowGet(work), request_timeout_ms: HELD_MS });
      const asked = exchange(running.port, request('GET', '/memories/mem_x'));
      expectError(await deadlines.passUntil(asked), 'provider_error');
      await healthy(running);
      await running.close();
      server = undefined;
    }
  });

  it('[SPEC Errors provider] [Decision 16] the deadline names the backend', async () => {
    const deadlines = holdTimers(HELD_MS);
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const alter = slowGet(() => {
      begin();
      return never();
    });
    const running = await start({ alter, request_timeout_ms: HELD_MS });
    const asked = exchange(running.port, request('GET', '/memories/mem_x'));
    await begun;
    deadlines.pass();
    const error = expectError(await asked, 'provider_error');
    expect(error.provider).toBe('memory');
  });

  it("[SPEC Errors invalid_request] [Decision 16] a body that does not arrive in time is the sender's fault", async () => {
    const deadlines = holdTimers(HELD_MS);
    const running = await start({ request_timeout_ms: HELD_MS });
    const connection = connectRaw(running.port);
    connection.write(request('POST', '/memories', ['Content-Type: application/json', 'Content-Length: 5000'], '{'));
    const error = expectError(await deadlines.passUntil(connection.next()), 'invalid_request');
    expect(error).not.toHaveProperty('provider');
    connection.destroy();
    await healthy(running);
  });
});
