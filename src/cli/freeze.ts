import type { MoveRequest } from './move-arguments.ts';
import type { Run } from './move-run.ts';
import { printable } from './terminal.ts';

/** `omp-gateway freeze` and `omp-gateway unfreeze`. Returns the exit status. */
export async function runFreeze({ command, names, values }: MoveRequest, run: Run): Promise<number> {
  const store = await run.open(names[0] ?? 'config', 'from');
  const { name, client, capabilities } = store;
  if (!capabilities.features.freeze) throw new Error(`${name} cannot be frozen (features.freeze is not true)`);
  const { signal } = run;
  const state = await (command === 'freeze' ? client.freeze({ signal }) : client.unfreeze({ signal }));
  const { stdout } = run.terminal;
  if (values.json) stdout.write(`${JSON.stringify(state)}\n`);
  else if (state.since === null) stdout.write(`${name} was not frozen.\n`);
  else {
    const since = `since ${state.since}, by ${printable(String(state.by))}`;
    stdout.write(
      command === 'freeze'
        ? `${name} takes no changes ${since}.\n`
        : `${name} takes changes again; it was frozen ${since}.\n`,
    );
  }
  return 0;
}
