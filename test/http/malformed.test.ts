import type { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import { listen } from '../../src/http/listen.ts';
import type { Env } from '../../src/http/request.ts';
import { expectError } from '../support/expect-error.ts';
import { connectRaw, exchange, jsonRequest, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser, recordingLog } from '../support/subject.ts';

const GARBAGE = Buffer.from('GARBAGE\r\n\r\n');

describe('what no parser takes', () => {
  let server: RunningServer | undefined;
  afterEach(() => server?.close());
  const start = async (...options: Parameters<typeof startServer>): Promise<RunningServer> => {
    server = await startServer(...options);
    return server;
  };

  it('[SPEC Service one envelope] [Decision 16] is refused after the answers to what came before it', async () => {
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    // The memory provider answers at once; this one when the test says so.
    const slow = (provider: Provider): Provider => ({
      ...provider,
      get: async (ref, call) => {
        begin();
        await released;
        return provider.get(ref, call);
      },
    });
    const running = await start({ alter: slow });
    const connection = connectRaw(running.port);
    const get = (id: string) => request('GET', '/memories/mem_x', [`X-Request-Id: ${id}`]);
    connection.write(Buffer.concat([get('one'), get('two'), GARBAGE, get('three')]));
    await begun;
    release();
    expect(expectError(await connection.next(), 'not_found').request_id).toBe('one');
    expect(expectError(await connection.next(), 'not_found').request_id).toBe('two');
    expectError(await connection.next(), 'invalid_request');
    await expect(connection.next()).rejects.toThrow(/so far it sent ""/);
  });

  it('[SPEC Errors invalid_request] [Decision 16] in the body of a request that was answered gets no second answer', async () => {
    const running = await start();
    const connection = connectRaw(running.port);
    connection.write(request('GET', '/healthz', ['Transfer-Encoding: chunked']));
    expect((await connection.next()).status).toBe(200);
    connection.write('no chunk\r\n');
    await expect(connection.next()).rejects.toThrow(/so far it sent ""/);
  });

  it('[Decision 16] CONNECT and unknown expectations get the envelope, too', async () => {
    const running = await start();
    expectError(await exchange(running.port, request('CONNECT', 'gateway:80')), 'not_found');
    expectError(await exchange(running.port, request('GET', '/nowhere', ['Expect: wonders'])), 'not_found');
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    const expecting = jsonRequest('POST', '/memories', body, ['Expect: 200-ok']);
    expect((await exchange(running.port, expecting)).status).toBe(201);
    const upgrading = request('GET', '/healthz', ['Connection: Upgrade', 'Upgrade: h2c']);
    expect((await exchange(running.port, upgrading)).status).toBe(200);
  });

  it('[SPEC Errors request_id] has its line in the log, without a word of what came', async () => {
    const running = await start();
    for (const bytes of [GARBAGE, Buffer.from('GET /garbage HTTP/1.1\r\n\r\n')]) {
      const { request_id } = expectError(await exchange(running.port, bytes), 'invalid_request');
      expect(running.lines).toContainEqual({
        level: 'info',
        message: 'malformed request',
        fields: { request_id, reason: expect.any(String) },
      });
    }
    expect(JSON.stringify(running.lines)).not.toMatch(/garbage/i);
  });
});

it('[SPEC Errors provider_error] [Decision 16] what the app itself throws is told as ours and logged in full', async () => {
  const cause = new Error('secret detail');
  const failures: readonly (() => Promise<never>)[] = [
    () => Promise.reject(cause),
    () => {
      throw cause;
    },
  ];
  for (const fetch of failures) {
    const log = recordingLog();
    // The app catches whatever its handlers throw, so for this one nothing is left of it.
    const listener = await listen({ fetch } as unknown as Hono<Env>, { host: '127.0.0.1', port: 0, log });
    const reply = await exchange(listener.port, request('GET', '/memories'));
    const { request_id } = expectError(reply, 'provider_error');
    expect(reply.text).not.toContain('secret');
    expect(log.lines).toEqual([{ level: 'error', message: 'request failed', fields: { request_id, err: cause } }]);
    await listener.close();
  }
});
