import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startGateway, startProgram, temporaryFolder } from '../process/gateway.ts';
import { FULL } from '../support/full.ts';
import { writeRow } from './survive.ts';

const ROUNDS = FULL ? 20 : 6;
/** Duration of a first start on a slow machine. */
const LONGEST_MS = 6_000;

test(`killed ${ROUNDS} times at random moments of a first start, the gateway starts again with everything acknowledged`, async () => {
  let kept = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const env = { OMP_DATA_DIR: temporaryFolder(), TMPDIR: temporaryFolder(), OMP_SEARCH_MODE: 'keyword' };
    const first = startProgram({ env });
    const content = `round ${round}`;
    const acknowledged: string[] = [];
    const use = async () => {
      const [, url = ''] = await first.output(/ listens on (http:\/\/[^"\s]+)/);
      for (;;) {
        const body = JSON.stringify({ user_id: 'ana', content });
        const headers = { 'content-type': 'application/json' };
        const answer = await fetch(`${url}/memories`, { method: 'POST', headers, body });
        acknowledged.push(((await answer.json()) as { id: string }).id);
      }
    };
    const used = use().catch(() => {});
    await sleep((LONGEST_MS * (round + Math.random())) / ROUNDS);
    first.child.kill('SIGKILL');
    await first.ended;
    await used;
    const second = await startGateway({ env });
    for (const id of acknowledged) expect((await second.client.get(id)).content).toBe(content);
    kept += acknowledged.length;
    expect((await second.stop()).status).toBe(0);
    expect(readdirSync(env.OMP_DATA_DIR).sort()).toEqual(['lock', 'omp-gateway.json', 'postgres']);
  }
  writeRow({
    fault: `embedded: ${ROUNDS} first starts killed (-9)`,
    first_ms: Number.NaN,
    all_ms: Number.NaN,
    kept,
    requests: kept,
    written: kept,
    failed: {},
  });
});
