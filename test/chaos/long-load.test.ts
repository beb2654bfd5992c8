import { expect, test } from 'vitest';
import { dataFolder } from '../process/gateway.ts';
import { freePort } from '../process/postgres-cluster.ts';
import { descriptorsOf, residentMegabytes } from './processes.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { writeRow } from './survive.ts';

const DURATION_MS = 60_000;
const SAMPLES = 80;
/** Ignored at the start, while caches fill and memory grows to its normal size. */
const WARM = 10;

interface Sample {
  readonly resident: number;
  readonly heap: number;
  readonly descriptors: number;
  readonly lag: number;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

test('an hour of load in minutes: memory, descriptors and the lag of the event loop do not grow', async () => {
  const OMP_DATA_DIR = await dataFolder();
  const service = await startEmbedding();
  const port = await freePort();
  const { load, ledgers, gateway } = await startSubject({
    env: {
      OMP_DATA_DIR,
      OMP_METRICS_PORT: String(port),
      ...embeddedBy(service.base_url),
      // No request may fail, however busy the machine is.
      OMP_REQUEST_TIMEOUT_MS: '30000',
      OMP_EMBEDDING_TIMEOUT_MS: '30000',
    },
    clients: 24,
    // The gateway must free the work of aborted requests.
    impatience: 0.02,
    mostMemories: 40,
  });
  const pid = gateway.child.pid as number;
  const measure = async (name: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
  };
  const samples: Sample[] = [];
  for (let n = 0; n < SAMPLES; n++) {
    await load.during(DURATION_MS / SAMPLES);
    const asked = performance.now();
    await gateway.client.ask('/capabilities');
    const lag = performance.now() - asked;
    service.received.length = 0;
    const heap = await measure('nodejs_heap_size_used_bytes');
    samples.push({ resident: residentMegabytes(pid), heap: heap / 2 ** 20, descriptors: descriptorsOf(pid), lag });
  }
  await load.pause();
  const kept = await load.check();
  for (const ledger of ledgers) await ledger.searchOwn(2);

  const steady = samples.slice(WARM);
  const third = Math.floor(steady.length / 3);
  const thirds = [steady.slice(0, third), steady.slice(-third)] as const;
  const of = (what: keyof Sample) => thirds.map((part) => mean(part.map((sample) => sample[what]))) as [number, number];
  const told = (['resident', 'heap', 'descriptors', 'lag'] as const).map((what) => {
    const [first, last] = of(what);
    return `${what} ${first.toFixed(1)} → ${last.toFixed(1)}`;
  });
  const { requests, written } = load.count;
  console.log(`long load: ${requests} requests; first third against last: ${told.join(', ')}`);
  writeRow({
    fault: `an hour of load in ${DURATION_MS / 1_000} s`,
    requests,
    written,
    failed: load.codes,
    first_ms: null,
    all_ms: null,
    kept,
  });

  const grown = (what: keyof Sample) => of(what)[1] - of(what)[0];
  expect(grown('resident')).toBeLessThan(64);
  expect(grown('heap')).toBeLessThan(32);
  expect(grown('descriptors')).toBeLessThan(8);
  expect((await gateway.stop()).status).toBe(0);
});
