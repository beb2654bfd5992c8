#!/usr/bin/env node
import type { Arguments } from './cli/arguments.ts';
import type { OpenStore } from './cli/command.ts';
import { loadCommand } from './cli/commands.ts';
import type { Flags } from './cli/options.ts';
import { explainError, report, terminalOf } from './cli/terminal.ts';

// `mcp` answers its client before it has loaded the store.
const openStore: OpenStore = async (...args) => (await import('./serve.ts')).openStore(...args);
const terminal = {
  ...terminalOf(process),
  // Opened by the commands that read it alone.
  get stdin() {
    return process.stdin;
  },
  cwd: () => process.cwd(),
};
const asked = await parsed(process.argv.slice(2));
if (asked.action === 'help') terminal.stdout.write((await import('./cli/arguments.ts')).helpText());
else if (asked.action === 'version') terminal.stdout.write(`${(await import('./package.ts')).version()}\n`);
else if (asked.action === 'mistake') fail(asked.message, asked.status);
else if (asked.action === 'serve') await start(asked.flags);
else process.exitCode = await (await loadCommand(asked.name))(asked.argv, terminal, openStore, asked.name);

async function parsed([first, ...argv]: readonly string[]): Promise<Arguments> {
  // Parsing the rest needs all settings, and a client waits for a hook with every prompt.
  if (first === 'hooks') return { action: 'command', name: first, argv };
  return (await import('./cli/arguments.ts')).parseArguments(process.argv.slice(2));
}

async function start(flags: Flags): Promise<void> {
  const [{ loadConfig }, { createLog }, { version }, { serve }, { runUntilSignal }] = await Promise.all([
    import('./config/load.ts'),
    import('./log.ts'),
    import('./package.ts'),
    import('./serve.ts'),
    import('./shutdown.ts'),
  ]);
  try {
    const { config, warnings } = loadConfig({ flags, env: process.env });
    const log = createLog(config.log_level);
    for (const warning of warnings) log.warn(warning);
    const gateway = await runUntilSignal((stopped) => serve(config, log, stopped), log);
    const address = gateway.host.includes(':') ? `[${gateway.host}]` : gateway.host;
    const url = `http://${address}:${gateway.port}`;
    if (terminal.stdout.isTTY) {
      const { welcomeText } = await import('./cli/welcome.ts');
      terminal.stdout.write(welcomeText({ ...gateway, version: version(), url }, config));
      return;
    }
    const access = gateway.open ? 'open: no key is needed' : 'closed: a key is needed';
    log.info(
      { provider: gateway.provider, search: gateway.search },
      `omp-gateway ${version()} listens on ${url} (${access})`,
    );
  } catch (error) {
    fail(explainError(error));
  }
}

function fail(message: string, status = 1): void {
  report(terminal, message);
  process.exitCode = status;
}
