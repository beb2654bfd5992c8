import { request } from 'node:http';
import { expect, test } from 'vitest';
import { dataFolder } from '../process/gateway.ts';
import { socketsOf } from './processes.ts';
import { startSubject } from './subject.ts';
import { survive } from './survive.ts';

const CLIENTS = 200;
const REQUESTS_EACH = 15;

/** One request whose connection is destroyed at a random moment: before, amid or after its body, or amid the answer. */
function abortedRequest(url: string, user_id: string): Promise<void> {
  return new Promise((gone) => {
    const adds = Math.random() < 0.6;
    const body = JSON.stringify({ user_id, content: `an aborted memory ${'x'.repeat(Math.random() * 20_000)}` });
    const path = adds ? '/memories' : `/memories/search?${new URLSearchParams({ user_id, q: 'aborted memory' })}`;
    const sent = request(url + path, {
      method: adds ? 'POST' : 'GET',
      agent: false,
      headers: adds ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } : {},
    });
    sent.on('error', () => {});
    sent.on('response', (answer) => answer.on('error', () => {}).resume());
    sent.on('close', gone);
    if (adds && Math.random() < 0.5) sent.write(body.slice(0, body.length * Math.random()));
    else sent.end(adds ? body : undefined);
    setTimeout(() => sent.destroy(), Math.random() * 40);
  });
}

test('200 clients that abort at random moments affect no other client and leave nothing behind', async () => {
  const OMP_DATA_DIR = await dataFolder();
  const { load, gateway } = await startSubject({
    env: { OMP_DATA_DIR, OMP_REQUEST_TIMEOUT_MS: '10000' },
    clients: 8,
    impatience: 0,
  });
  await load.more('succeeded', 100);
  const pid = gateway.child.pid as number;
  const before = socketsOf(pid);
  await survive(load, {
    name: `clients: ${CLIENTS} that abort at random, ${CLIENTS * REQUESTS_EACH} requests`,
    async strike() {
      const client = async (number: number) => {
        for (let i = 0; i < REQUESTS_EACH; i++) await abortedRequest(gateway.url, `aborting client ${number}`);
      };
      await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
    },
  });
  // The server notices the last ones a moment later.
  while (socketsOf(pid) > before + 4) await load.during(20);
  expect(load.count.refused).toBe(0);
  await load.pause();
  expect((await gateway.stop()).status).toBe(0);
});
