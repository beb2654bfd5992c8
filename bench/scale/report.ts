import { cpus, release, totalmem } from 'node:os';
import type { Crossing, Recall } from './measure.ts';
import { quantile, ratio, type Times } from './timing.ts';

export interface Results {
  readonly server: string;
  readonly memories: number;
  readonly users: number;
  readonly smallMemories: number;
  readonly rounds: number;
  readonly largeUserRows: number;
  readonly indexed: number;
  readonly verbs: readonly Times[];
  readonly stores: readonly { readonly name: string; readonly large: Times; readonly small: Times }[];
  readonly crossings: readonly Crossing[];
  readonly recalls: readonly Recall[];
}

const count = (value: number): string => value.toLocaleString('en');
const ms = (times: Times, share: number): string => {
  const value = quantile(times.rounds, share);
  return value.toFixed(value < 10 ? 2 : 1);
};

/** All of it as Markdown. */
export function report(results: Results): string {
  const { server, memories, users, smallMemories, rounds, largeUserRows, indexed } = results;
  return [
    '# A million memories',
    '',
    'Written by `npm run bench:scale`; the script is in the same folder.',
    '',
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform} ${release()}, Node ${process.version}; ${server}.`,
    `${count(memories)} memories of ${count(users)} users, the second store ${count(smallMemories)}. Medians of ${rounds} interleaved rounds, in milliseconds, one request at a time,`,
    'from the provider (no HTTP, query vectors computed beforehand). Each memory is two of 4,000 sentences; its vector is the sum of',
    "the bundled embedder's vectors for both, with noise of 0.4 of their length, rounded as the gateway does. Questions ask in other words",
    `for what the sentences say. Users of more than ${count(largeUserRows)} memories are in the vector and keyword indexes, ${count(indexed)} rows in all.`,
    '',
    '## Verbs',
    '',
    table(
      ['', 'p50', 'p95'],
      results.verbs.map((times) => [times.name, ms(times, 0.5), ms(times, 0.95)]),
    ),
    '',
    `## The same user of 100 memories among ${count(memories)} and among ${count(smallMemories)}`,
    '',
    table(
      ['', `p50 of ${count(memories)}`, `p50 of ${count(smallMemories)}`, 'ratio'],
      results.stores.map(({ name, large, small }) => [
        name,
        ms(large, 0.5),
        ms(small, 0.5),
        `${ratio(large, small).toFixed(2)}×`,
      ]),
    ),
    '',
    ...crossingsOf(results),
    '## Recall',
    '',
    'The share of the ten best of an exact search that the provider finds.',
    '',
    table(
      ['memories of the user', 'hybrid', 'vectors only', 'scores differ by'],
      results.recalls.map(({ user, hybrid, vector, difference }) => [
        count(user.memories),
        hybrid.toFixed(4),
        vector.toFixed(4),
        difference.toFixed(6),
      ]),
    ),
    '',
  ].join('\n');
}

/** The ways of a search are compared on a single server only. */
const crossingsOf = ({ crossings }: Results): string[] =>
  crossings.length === 0
    ? []
    : [
        '## Exact search, or search through the indexes',
        '',
        'Hybrid search, top 10. The words of a query are counted once a minute before a search through the indexes.',
        '',
        table(
          ['memories of the user', 'exact', 'through the indexes', 'ratio', 'counting'],
          crossings.map(({ user, exact, indexed, count: counting }) => [
            count(user.memories),
            ms(exact, 0.5),
            ms(indexed, 0.5),
            `${ratio(indexed, exact).toFixed(2)}×`,
            ms(counting, 0.5),
          ]),
        ),
        '',
      ];

const table = (headings: readonly string[], rows: readonly (readonly string[])[]): string =>
  [headings, headings.map((_, index) => (index === 0 ? '---' : '---:')), ...rows]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');
