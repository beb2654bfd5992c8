import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { NO_CHROMA, openChroma } from '../chroma/start.ts';
import { all } from '../move/all.ts';
import { startPinecone } from '../pinecone-server/start.ts';
import { HAS_CITUS, startCitus } from '../process/citus-cluster.ts';
import { dataFolder, startGateway, startProgram, temporaryFolder } from '../process/gateway.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { clientOf } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { openLedger } from '../support/ledger.ts';
import { startLoad } from '../support/load.ts';
import { type Moving, moveUnderLoad, startMoving } from './moves.ts';
import { embeddedBy, startEmbedding } from './subject.ts';

const WHOLE = { memories: 20_000, clients: 8, kills: 6 } as const;

async function server(): Promise<string> {
  const cluster = await createCluster();
  await cluster.start();
  return cluster.url;
}

test('embedded to a server, to Citus and back: nothing acknowledged is lost, reads never fail, writes only while frozen', async ({
  skip,
}) => {
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  const vectors = embeddedBy((await startEmbedding()).base_url);
  const places: Moving[] = [
    await startMoving('embedded', { OMP_DATA_DIR: await dataFolder(), ...vectors }),
    await startMoving('a server', { DATABASE_URL: await server(), ...vectors }),
  ];
  if (HAS_CITUS) {
    const env = { DATABASE_URL: (await startCitus()).url, OMP_POSTGRES_DISTRIBUTED: 'citus', ...vectors };
    places.push(await startMoving('Citus', env));
  }
  await moveUnderLoad([...places, ...places.slice(0, -1).reverse()], WHOLE);
});

test('a server to Pinecone and back: nothing acknowledged is lost, reads never fail, writes only while frozen', async ({
  skip,
}) => {
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  const pinecone = await startPinecone();
  await moveToVectors('Pinecone', {
    OMP_PROVIDER: 'pinecone',
    PINECONE_API_KEY: 'test',
    PINECONE_INDEX_HOST: pinecone.url,
  });
  await expect(pinecone.close()).resolves.toBeUndefined();
});

test('a server to Chroma and back: nothing acknowledged is lost, reads never fail, writes only while frozen', async ({
  skip,
}) => {
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  skip(NO_CHROMA !== '', NO_CHROMA);
  const chroma = await openChroma();
  onTestFinished(chroma.close);
  await moveToVectors('Chroma', { OMP_PROVIDER: 'chroma', OMP_CHROMA_URL: chroma.url });
});

async function moveToVectors(name: string, env: Readonly<Record<string, string>>): Promise<void> {
  const vectors = { ...embeddedBy((await startEmbedding()).base_url), OMP_SEARCH_MODE: 'vector' };
  const first = await startMoving('a server', { DATABASE_URL: await server(), ...vectors });
  // Fewer clients: more would write faster than these stores take it, while all share two cores.
  await moveUnderLoad([first, await startMoving(name, { ...env, ...vectors }), first], { ...WHOLE, clients: 3 });
}

test('a follower that was stopped while 20,000 changes were made applies each of them once', async ({ skip }) => {
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  const source = await startGateway({ env: { DATABASE_URL: await server(), OMP_SEARCH_MODE: 'keyword' } });
  const target = await startGateway({ env: { OMP_PROVIDER: 'memory' } });
  const progress = join(temporaryFolder(), 'place.json');
  const follow = () => startProgram({ args: ['migrate', source.url, target.url, '--follow', '--progress', progress] });
  const same = () => eventually(async () => expect(await all(target)).toEqual(await all(source)));
  const load = startLoad(
    Array.from({ length: 8 }, () =>
      openLedger(
        clientOf((path, init) => fetch(source.url + path, init)),
        { keys: false, mostMemories: 500 },
      ),
    ),
  );
  const first = follow();
  await load.more('written', 500);
  await load.pause();
  await same();
  first.child.kill('SIGKILL');
  await first.ended;
  const { cursor: after } = JSON.parse(readFileSync(progress, 'utf8')).state;
  load.resume();
  await load.more('written', 20_000);
  const second = follow();
  // It catches up with clients that go on.
  await load.more('written', 2_000);
  await load.pause();
  await load.check();
  await same();
  second.child.kill('SIGINT');
  const [, applied = ''] = /, ([\d,]+) changes applied/.exec((await second.ended).stderr) ?? [];
  const cursors: string[] = [];
  for (let cursor: string = after; ; ) {
    const { body } = await source.client.ask('/changes', { after: cursor, limit: 500 });
    const { changes, more, next_cursor } = body as {
      changes: { cursor: string }[];
      more: boolean;
      next_cursor: string;
    };
    cursors.push(...changes.map(({ cursor }) => cursor));
    if (!more) break;
    cursor = next_cursor;
  }
  console.log(`a stopped follower: ${applied} changes applied, ${load.count.written} writes acknowledged`);
  expect(new Set(cursors).size).toBe(cursors.length);
  expect(applied.replaceAll(',', '')).toBe(String(cursors.length));
});
