import { join } from 'node:path';
import { expect, it } from 'vitest';
import { freePort } from '../chaos/moves.ts';
import { blocks, read } from '../docs/markdown.ts';
import { dataFolder, type Program, startGateway, startProgram, temporaryFolder } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { openLedger } from '../support/ledger.ts';
import { startLoad } from '../support/load.ts';
import { all } from './all.ts';

const SECTION = '## Change the database under a running application';

it('[Decision 53] the database changes under a running application, as docs/moving.md says', async () => {
  const text = read('docs/moving.md').split(SECTION)[1]?.split('\n## ')[0] ?? '';
  const steps = blocks(text).map(({ code }) => code.trim());
  expect(steps).toHaveLength(5);
  const [start, follow, cutOver, thaw, back] = steps as [string, string, string, string, string];

  const old = await startGateway({ env: { OMP_DATA_DIR: await dataFolder() } });
  const port = String(await freePort());
  const folder = temporaryFolder();
  // On a shared server, transactions of other tests would hold the feed back.
  const store = { OMP_DATA_DIR: await dataFolder() };
  /** Runs a step, on this machine's ports and database. */
  const run = (step: string): Program => {
    const [, args = ''] = /^(?:DATABASE_URL=\S+ )?omp-gateway (.+)$/.exec(step) ?? [];
    const own = args.replaceAll('http://127.0.0.1:8080', old.url).replaceAll('8081', port).split(' ');
    const files = args.startsWith('migrate')
      ? ['--progress', join(folder, 'place'), '--report', join(folder, 'report')]
      : [];
    return startProgram({
      args: [...own, ...files],
      env: step === start ? { OMP_SEARCH_MODE: 'keyword', ...store } : {},
    });
  };
  const stop = (program: Program) => {
    program.child.kill('SIGINT');
    return program.ended;
  };

  // The application goes on; it comes again when it is told to.
  let url = old.url;
  const client = clientOf(async (path, init) => {
    for (;;) {
      const response = await fetch(url + path, init);
      if (response.status !== 503) return response;
      expect(response.headers.get('retry-after')).toBe('2');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  const ledgers = [1, 2].map(() => openLedger(client, { excuse: () => false, impatience: 0, keys: false }));
  const load = startLoad(ledgers);

  const started = run(start);
  await started.output(/ listens on /);
  const following = run(follow);
  await load.more('added', 20);
  await eventually(async () => {
    const { body } = await clientOf((path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)).ask('/export');
    expect((body as { memories: unknown[] }).memories.length).toBeGreaterThan(10);
  });
  await stop(following);
  const { status, stdout, stderr } = await run(cutOver).ended;
  expect(status, stderr).toBe(0);
  expect(stdout).toContain(`Now start the gateways with http://127.0.0.1:${port}.`);
  url = `http://127.0.0.1:${port}`;
  await load.more('added', 10);
  await load.pause();
  await load.check();
  load.resume();

  expect((await run(thaw).ended).status).toBe(0);
  const returning = run(back);
  await load.more('added', 10);
  await load.pause();
  // What the new store has is in the old one too.
  const moved = { client: clientOf((path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)) };
  await eventually(async () => expect(await all(old)).toEqual(await all(moved)));
  expect((await stop(returning)).stderr).toContain('the same command goes on there');
  url = old.url;
  await load.check();
});
