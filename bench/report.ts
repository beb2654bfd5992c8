import { cpus, loadavg, release } from 'node:os';
import type { BatchResult } from './batch.ts';
import { ratio, type Series, typical } from './compare.ts';
import type { ConsoleResult } from './console.ts';
import type { Work } from './default.ts';
import { type EngineResult, SUBJECTS } from './engine.ts';
import type { BenchVerb } from './workload.ts';

const HEADINGS: Readonly<Record<BenchVerb, string>> = {
  get: 'get',
  list: 'list 50',
  search: 'search top 10',
  add: 'add',
};

/** Targets: the least throughput as a share of the base's, and the largest p99 as a multiple of the base's. */
const LEAST: Readonly<Record<BenchVerb, number>> = { get: 0.75, list: 0.8, search: 0.8, add: 0.8 };
const MAX_P99 = 1.3;
/** Largest event loop lag at p99 while the local embedder is busy, in milliseconds. */
const MAX_DELAY = 5;

/** One table per engine: requests per second, p50 and p99 of every subject, then the gateway as ratios. */
export function engineTable(title: string, { version, connections, verbs }: EngineResult): string {
  const columns = [...verbs.keys()];
  const cells = (cell: (series: readonly Series[], verb: BenchVerb) => string) =>
    columns.map((verb) => cell(verbs.get(verb) as readonly Series[], verb));
  const figures = Object.values(SUBJECTS).map((name) => [
    name,
    ...cells((all) => {
      const series = named(all, name);
      return `${count(typical(series, 'perSecond'))} (${latency(typical(series, 'p50'))} / ${latency(typical(series, 'p99'))})`;
    }),
  ]);
  const ratios = [SUBJECTS.base, SUBJECTS.plain, SUBJECTS.pipelined, SUBJECTS.constant, SUBJECTS.unaudited].map(
    (name) => [
      `gateway ÷ ${name}`,
      ...cells((all, verb) => {
        const share = ratio(named(all, SUBJECTS.gateway), named(all, name), 'perSecond');
        return name === SUBJECTS.base ? judged(share, '≥', LEAST[verb]) : `${share.toFixed(2)}×`;
      }),
    ],
  );
  const tail = [
    `p99 of the gateway ÷ ${SUBJECTS.base}`,
    ...cells((all) => judged(ratio(named(all, SUBJECTS.gateway), named(all, SUBJECTS.base), 'p99'), '≤', MAX_P99)),
  ];
  return [
    `**${title}**: ${version}, ${connections === 1 ? 'one connection' : `${connections} connections`} each. Requests per second (p50 / p99 in ms)`,
    '',
    table(['', ...columns.map((verb) => HEADINGS[verb])], [...figures, ...ratios, tail]),
  ].join('\n');
}

export function defaultTable(work: readonly Work[], clients: number): string {
  const rows = work.map(({ name, load, delay }) => [
    name,
    count(load.perSecond),
    latency(load.p50),
    latency(load.p99),
    `${latency(delay.p99)} ${delay.p99 <= MAX_DELAY ? '✓' : '✗'}`,
    latency(delay.max),
  ]);
  const headings = ['', 'per second', 'p50 ms', 'p99 ms', `event loop lag, p99 ms (at most ${MAX_DELAY})`, 'max ms'];
  return [
    `**Default configuration** (local embedder, embedded Postgres), ${clients} clients`,
    '',
    table(headings, rows),
  ].join('\n');
}

export function batchTable(results: readonly BatchResult[]): string {
  const names = results[0]?.ways.map(({ name }) => name) ?? [];
  const rows = results.map(({ name, ways }) => {
    const ratios = ways.slice(0, -1).map((way) => `${ratio(ways.at(-1) as Series, way, 'perSecond').toFixed(1)}×`);
    return [name, ...ways.map((way) => count(typical(way, 'perSecond'))), ...ratios];
  });
  const headings = ['', ...names, ...names.slice(0, -1).map((name) => `${names.at(-1)} ÷ ${name}`)];
  return `**Adding 1,000 memories**: memories per second\n\n${table(headings, rows)}`;
}

export function consoleTable({ firstScreenMs, scrolls }: ConsoleResult): string {
  const rows = scrolls.map(({ name, perSecond, late, longestMs, loaded }) => [
    name,
    count(loaded),
    perSecond.toFixed(1),
    `${(100 * late).toFixed(1)} %`,
    longestMs.toFixed(0),
  ]);
  const first = `First screen: median ${firstScreenMs[firstScreenMs.length >> 1]?.toFixed(0)} ms, slowest ${firstScreenMs.at(-1)?.toFixed(0)} ms of ${firstScreenMs.length}`;
  const headings = ['', 'memories in the list', 'frames per second', 'late frames', 'longest frame in ms'];
  return `**A list of 100,000 memories in the console.** ${first}\n\n${table(headings, rows)}`;
}

export const machine = (): string =>
  `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0]?.model.trim()}, ${process.platform} ${release()}, Node ${process.version}, load average before ${loadavg()[0]?.toFixed(1)}`;

/** A ratio beside its target. */
function judged(found: number, comparison: '≥' | '≤', wanted: number): string {
  const met = comparison === '≥' ? found >= wanted : found <= wanted;
  return `${found.toFixed(2)}× (${comparison} ${wanted} ${met ? '✓' : '✗'})`;
}

function named(all: readonly Series[], name: string): Series {
  const found = all.find((series) => series.name === name);
  if (found === undefined) throw new Error(`nothing was measured for ${name}`);
  return found;
}

/** Such a measurement has three significant digits. */
const count = (perSecond: number): string => Number(perSecond.toPrecision(3)).toLocaleString('en');
const latency = (milliseconds: number): string => milliseconds.toFixed(milliseconds < 10 ? 2 : 0);

export const table = (headings: readonly string[], rows: readonly (readonly string[])[]): string =>
  [headings, headings.map((_, index) => (index === 0 ? '---' : '---:')), ...rows]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');
