import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type RunningGateway, runProgram, startGateway, startProgram, temporaryFolder } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { anyOf, brokenConnection, downOf, type Excuse, openLedger } from '../support/ledger.ts';
import { startLoad } from '../support/load.ts';
import type { WireCapabilities } from '../support/wire.ts';

type Environment = Readonly<Record<string, string>>;

/** A gateway that is killed and started again at the same address. */
export interface Moving {
  readonly name: string;
  readonly url: string;
  restart(): Promise<void>;
}

export async function startMoving(name: string, env: Environment): Promise<Moving> {
  const OMP_PORT = String(await freePort());
  const begin = () => startGateway({ env: { ...env, OMP_PORT } });
  let gateway: RunningGateway = await begin();
  return {
    name,
    url: gateway.url,
    async restart() {
      await gateway.kill();
      gateway = await begin();
    },
  };
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Of a frozen store, with the time to come back. */
const frozen: Excuse = (reply) => reply?.status === 503 && reply.headers.get('retry-after') === '2';

export interface MoveOptions {
  /** Memories besides those of the clients. */
  readonly memories: number;
  readonly clients: number;
  /** Of the source, the target and the command, each time in turn. */
  readonly kills: number;
}

/**
 * Moves a store through all of the places, one after the other, while clients go on. Fails if a read is answered with an error, if a write is
 * while nothing is frozen, or if a ledger differs from what the last place holds.
 */
export async function moveUnderLoad(
  places: readonly Moving[],
  { memories, clients, kills }: MoveOptions,
): Promise<void> {
  const folder = temporaryFolder();
  let current = places[0] as Moving;
  let isFreezing = false;
  const wrong: string[] = [];
  const client = clientOf(async (path, init) => {
    const response = await fetch(current.url + path, init);
    const isRead = (init?.method ?? 'GET') === 'GET';
    if (response.status >= 500 && (isRead || !isFreezing)) {
      wrong.push(`${init?.method ?? 'GET'} ${path.split('?')[0]}: ${response.status} ${await response.clone().text()}`);
    }
    return response;
  });
  for (let at = 0; at < memories; at += 100) {
    const batch = Array.from({ length: Math.min(100, memories - at) }, (_, i) => ({
      ...{ user_id: `user ${(at + i) % 97}`, content: `note ${at + i}`, scope: `s/${i % 7}`, tags: [`t${i % 5}`] },
    }));
    await client.batch(batch);
  }
  // A gateway that is killed does not answer; one whose backend restarts says so.
  const excuse = anyOf(brokenConnection, frozen, downOf('postgres', 'pinecone', 'chroma'));
  const ledgers = Array.from({ length: clients }, () => openLedger(client, { excuse, keys: false }));
  const load = startLoad(ledgers);
  for (const [i, next] of places.slice(1).entries()) {
    const [a, b] = [places[i] as Moving, next];
    const report = join(folder, 'report.json');
    // One for both directions.
    const place = join(folder, [a.name, b.name].sort().join('-'));
    const args = ['migrate', a.url, b.url, '--progress', place, '--report', report];
    // A store that was moved before is frozen, and needs an empty start only the first time.
    if (places.slice(0, i + 1).includes(b)) expect((await runProgram({ args: ['unfreeze', b.url] })).status).toBe(0);
    const follow = () => startProgram({ args: [...args, '--follow'] });
    let follower = follow();
    for (let kill = 0; kill < kills; kill++) {
      await load.more('added', clients);
      await sleep(Math.random() * 500);
      if (kill % 3 === 0) await b.restart();
      else if (kill % 3 === 1) await a.restart();
      else {
        follower.child.kill('SIGKILL');
        await follower.ended;
        follower = follow();
      }
    }
    await load.more('added', clients);
    follower.child.kill('SIGINT');
    await follower.ended;
    const before = { ...load.codes };
    isFreezing = true;
    // What cannot be frozen must not be written, as the command says before it starts.
    const { features } = ((await client.ask('/capabilities')).body ?? {}) as WireCapabilities;
    if (!features.freeze) await load.pause();
    const { status, stdout, stderr } = await runProgram({ args: [...args, '--cutover'] });
    expect(status, stdout + stderr).toBe(0);
    expect(stderr.includes('It cannot be frozen: stop everything that writes')).toBe(!features.freeze);
    await load.pause();
    current = b;
    isFreezing = false;
    const kept = await load.check();
    load.resume();
    const { freeze, frozen: compared, queries } = JSON.parse(readFileSync(report, 'utf8'));
    const rejected = (load.codes.provider_error ?? 0) - (before.provider_error ?? 0);
    console.log(
      `${a.name} to ${b.name}: ${memories} memories and ${kept} of clients, ${load.count.written} writes so far; ` +
        `frozen for ${freeze?.milliseconds ?? '-'} ms with ${freeze?.changes_applied ?? '-'} changes left, ${compared.counts[0]} compared in the end, ` +
        `${rejected} writes rejected meanwhile, overlap ${queries.overlap}`,
    );
  }
  await load.more('added', clients);
  await load.pause();
  await load.check();
  for (const ledger of ledgers) await ledger.searchOwn(3);
  expect(wrong).toEqual([]);
}
