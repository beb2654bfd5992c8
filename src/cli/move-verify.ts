import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import { readFile } from '../move/export-file.ts';
import { differenceText } from '../move/follow.ts';
import { type Filters, matcherOf, pagesOf } from '../move/store.ts';
import { type Side, type Verification, verify } from '../move/verify.ts';
import { isStoreName, PAGE, type Run } from './move-run.ts';
import { memories, number } from './progress.ts';
import type { StoreRequest } from './store-arguments.ts';
import { printable } from './terminal.ts';

/** `omp-gateway verify`. Returns the exit status. */
export async function runVerify(request: StoreRequest, run: Run): Promise<number> {
  const { names, filters, queries, overlap: least, values } = request;
  let done = 0;
  run.onStop(() => `${memories(done)} read; nothing is changed`);
  const sides: Side[] = [];
  for (const [i, name] of names.entries()) sides.push(await sideOf(name, i === 0 ? 'from' : 'to', filters, run));
  const result = await verify(sides[0] as Side, sides[1] as Side, queries, () => {
    run.signal.throwIfAborted();
    if (++done % PAGE === 0) run.progress({ done });
  });
  run.end();
  const isSame = result.different === 0 && (result.overlap === null || result.overlap >= least);
  const text = values.json ? JSON.stringify(result, null, 2) : verificationText(result, names, least);
  run.terminal.stdout.write(`${text}\n`);
  return isSame ? 0 : 1;
}

async function sideOf(name: string, key: 'from' | 'to', filters: Filters, run: Run): Promise<Side> {
  if (!isStoreName(name)) {
    const matches = matcherOf(filters);
    return {
      name,
      store: undefined,
      async *memories() {
        for await (const line of readFile(name)) {
          const memory = line as unknown as ExportedMemory;
          if (matches(memory)) yield memory;
        }
      },
    };
  }
  const store = await run.open(name, key);
  return {
    name: store.name,
    store,
    async *memories() {
      for await (const { memories: page } of pagesOf(store, filters)) yield* page;
    },
  };
}

function verificationText(result: Verification, [a = '', b = '']: readonly string[], least: number): string {
  const [x, y] = result.counts;
  const lines = [`${a}: ${memories(x)}. ${b}: ${memories(y)}.`];
  for (const { id, user_id, ...how } of result.differences) {
    lines.push(`${printable(id)} of ${printable(user_id)}: ${printable(differenceText(how))}`);
  }
  if (result.different > result.differences.length) {
    lines.push(`and ${number(result.different - result.differences.length)} more`);
  }
  for (const { user_id, difference } of result.users) {
    lines.push(
      `user ${printable(user_id)}: ${number(Math.abs(difference))} ${difference > 0 ? 'more' : 'fewer'} in ${b}`,
    );
  }
  if (result.overlap !== null) {
    const share = `${(100 * result.overlap).toFixed(1)} %`;
    lines.push(`${share} of the ten best of ${result.queries} queries are the same (at least ${100 * least} %).`);
  }
  lines.push(result.different === 0 ? 'No memory differs.' : `Different: ${memories(result.different)}.`);
  return lines.join('\n');
}
