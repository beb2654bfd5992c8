import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import type { Reply } from '../support/client.ts';
import { clientOf } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { connectRaw } from '../support/raw-http.ts';
import { freshUser } from '../support/subject.ts';
import { type RunningGateway, startGateway, temporaryFolder } from './gateway.ts';
import { type Attempt, attempts } from './malformed-requests.ts';

/** Set OMP_TEST_SEED to look elsewhere or to repeat what a failure printed, OMP_TEST_RUNS for a longer search. */
const SEED = Number(process.env.OMP_TEST_SEED ?? 20_250_101);
const RUNS = Number(process.env.OMP_TEST_RUNS ?? 10_000);
const AT_ONCE = 64;
/** What half of the requests may leave behind, memories and compiled code included. */
const MAX_KEPT_BYTES = Math.max(5_000_000, (RUNS / 2) * 1_000);

/** Makes the gateway report memory in use after garbage collection, and open sockets, on SIGUSR2. */
const REPORTER = `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  let reports = 0;
  process.on('SIGUSR2', () => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    const sockets = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    console.log('report ' + ++reports + ': ' + (heapUsed + external) + ' bytes, ' + sockets + ' sockets.');
  });`;

async function startWatched(): Promise<{ gateway: RunningGateway; key: string; report: () => Promise<Report> }> {
  const fresh = newKey();
  const folder = temporaryFolder();
  const reporter = join(folder, 'reporter.mjs');
  writeFileSync(reporter, REPORTER);
  const gateway = await startGateway({
    env: {
      NODE_OPTIONS: `--import ${pathToFileURL(reporter)}`,
      OMP_PROVIDER: 'memory',
      // Answers without waiting, so that only what never ends runs into a deadline.
      OMP_SEARCH_MODE: 'keyword',
      // With the lines of probes.
      OMP_LOG_LEVEL: 'debug',
      OMP_AUTH_KEYS: JSON.stringify([{ name: 'fuzz', key: toHashedKey(fresh), grants: ['*:*'] }]),
      OMP_AUTH_FAILURES_PER_MINUTE: '0',
      OMP_REQUEST_TIMEOUT_MS: '500',
    },
  });
  let asked = 0;
  const report = async () => {
    gateway.child.kill('SIGUSR2');
    const [, bytes, sockets] = await gateway.output(new RegExp(`report ${++asked}: (\\d+) bytes, (\\d+) sockets\\.`));
    return { bytes: Number(bytes), sockets: Number(sockets) };
  };
  return { gateway, key: fresh.key, report };
}

interface Report {
  /** Kept after garbage collection. */
  readonly bytes: number;
  /** Connections that are open. */
  readonly sockets: number;
}

/** Sends the bytes and returns the responses until the server closes. */
async function attempt(port: number, { bytes, cut, then, head }: Attempt): Promise<Reply[]> {
  const connection = connectRaw(port);
  connection.write(bytes.subarray(0, cut));
  connection.write(bytes.subarray(cut));
  const replies: Reply[] = [];
  if (then === 'half-close') connection.socket.end();
  if (then === 'vanish') {
    connection.socket.end(() => connection.destroy());
    await connection.closed();
    return replies;
  }
  try {
    for (;;) {
      replies.push(await connection.next({ head }));
      connection.socket.end();
    }
  } catch (error) {
    // The end of the connection, at which nothing may be left over that is no whole answer. What is no HTTP is no HEAD
    // either: its refusal has a body, after which the connection ends.
    const refused = head && replies.at(-1)?.headers.get('connection') === 'close';
    expect((error as Error).message).toMatch(refused ? /so far it sent "(\{.*\})?"$/ : /so far it sent ""$/);
    return replies;
  }
}

const TOO_LATE = 'the request took longer than this gateway allows';

/** An answer the protocol knows: a success, or the envelope. The backend fails nothing; a busy machine may miss the deadline. */
function expectAnswer(reply: Reply, head: boolean): void {
  expect(reply.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  if (head) expect([200, 400, 401, 404, 413]).toContain(reply.status);
  else if (reply.status >= 400) {
    const { code, message } = (reply.body as { error: { code: Parameters<typeof expectError>[1]; message: string } })
      .error;
    expectError(reply, code);
    if (code === 'provider_error') expect(message).toBe(TOO_LATE);
  } else expect([200, 201, 204]).toContain(reply.status);
}

test(`${RUNS} malformed requests each get a response of the protocol or a closed connection, and leave nothing behind`, async () => {
  console.log(`fuzz.test.ts: OMP_TEST_SEED=${SEED}`);
  const { gateway, key, report } = await startWatched();
  const port = Number(new URL(gateway.url).port);
  const client = clientOf((path, init) =>
    fetch(gateway.url + path, { ...init, headers: { authorization: `Bearer ${key}`, ...init?.headers } }),
  );
  const seen: Record<string, number> = {};
  const ids: string[] = [];

  const run = async (all: readonly Attempt[]) => {
    const queue = all.entries();
    const lane = async () => {
      for (const [number, one] of queue) {
        try {
          const replies = await attempt(port, one);
          for (const reply of replies) {
            expectAnswer(reply, one.head);
            ids.push(reply.headers.get('x-request-id') as string);
            seen[reply.status] = (seen[reply.status] ?? 0) + 1;
          }
          if (replies.length === 0) seen.none = (seen.none ?? 0) + 1;
        } catch (cause) {
          const shown = one.bytes.subarray(0, 2_000).toString('latin1');
          throw new Error(`seed ${SEED}, attempt ${number}: ${JSON.stringify({ ...one, bytes: shown })}`, { cause });
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  };
  const settled = async () => {
    await expect.poll(async () => (await report()).sockets).toBe(0);
    return report();
  };

  const all = fc.sample(attempts(key), { numRuns: RUNS, seed: SEED });
  const half = Math.ceil(RUNS / 2);
  await run(all.slice(0, half));
  const between = await settled();
  await run(all.slice(half));
  const after = await settled();
  console.log(JSON.stringify({ seen, between, after }));

  // Enough of every kind: the attempts are not all rejected at once.
  for (const status of [200, 201, 400, 401, 404]) expect(seen[status], `${status}`).toBeGreaterThan(RUNS / 500);
  expect(after.bytes - between.bytes).toBeLessThan(MAX_KEPT_BYTES);

  const { id } = await client.add({ content: 'afterwards', user_id: freshUser() });
  expect((await client.get(id)).content).toBe('afterwards');
  const { status, stdout, stderr } = await gateway.stop();
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const lines = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { level: number; msg: string; request_id?: string; reason?: string });
  const unexpected = lines.filter(
    ({ level, msg, reason }) => level >= 40 && msg !== 'not authenticated' && reason !== TOO_LATE,
  );
  expect(unexpected.slice(0, 3)).toEqual([]);
  // Every response is in the log.
  const logged = new Set(lines.map(({ request_id }) => request_id));
  expect(ids.filter((id) => !logged.has(id)).slice(0, 3)).toEqual([]);
});
