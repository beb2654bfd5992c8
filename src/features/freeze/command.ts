import type { Commands } from '../../cli/command.ts';
import type { Run } from '../../cli/move-run.ts';
import { END, STORES, type StoreRequest } from '../../cli/store-arguments.ts';
import { storeCommand } from '../../cli/store-command.ts';
import { printable } from '../../cli/terminal.ts';

async function runFreeze({ command, names, values }: StoreRequest, run: Run): Promise<number> {
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

/** `what` it does, in lines of at most 80 characters. */
const command = (name: string, what: string) =>
  storeCommand({
    usage: `Usage: omp-gateway ${name} [STORE] [options]

${what}

${STORES}
                      Its key needs the grant admin:*

Options:
${END}`,
    options: {},
    positionals: ['STORE'],
    optional: true,
    run: runFreeze,
  });

export const commands: Commands = {
  freeze: command(
    'freeze',
    `Stops all changes of memories on every gateway of a store: they answer 503 until
"omp-gateway unfreeze". Reads go on.`,
  ),
  unfreeze: command('unfreeze', 'Allows changes of memories again, whoever has frozen the store.'),
};
