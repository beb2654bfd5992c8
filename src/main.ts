#!/usr/bin/env node
import { type Flags, helpText, parseArguments } from './cli/arguments.ts';
import { runDoctor } from './cli/doctor.ts';
import { runKeys } from './cli/keys.ts';
import { runMcp } from './cli/mcp.ts';
import { runReembed } from './cli/reembed.ts';
import { explainError, type Terminal } from './cli/terminal.ts';
import { loadConfig } from './config/load.ts';
import { ConfigError } from './config/mistakes.ts';
import { createLog } from './log.ts';
import { version } from './package.ts';
import { openStore, serve } from './serve.ts';
import { runUntilSignal } from './shutdown.ts';

const COMMANDS = {
  doctor: runDoctor,
  keys: runKeys,
  mcp: (argv: readonly string[], terminal: Terminal) => runMcp(argv, terminal, openStore),
  reembed: runReembed,
};

const asked = parseArguments(process.argv.slice(2));
if (asked.action === 'help') process.stdout.write(helpText());
else if (asked.action === 'version') process.stdout.write(`${version()}\n`);
else if (asked.action === 'mistake') fail(asked.message, asked.status);
else if (asked.action === 'serve') await start(asked.flags);
else process.exitCode = await COMMANDS[asked.action](asked.argv, process);

async function start(flags: Flags): Promise<void> {
  try {
    const { config, warnings } = loadConfig({ flags, env: process.env });
    const log = createLog(config.log_level);
    for (const warning of warnings) log.warn(warning);
    const gateway = await runUntilSignal((stopped) => serve(config, log, stopped), log);
    const address = gateway.host.includes(':') ? `[${gateway.host}]` : gateway.host;
    const access = gateway.open ? 'open: no key is needed' : 'closed: a key is needed';
    log.info(
      { provider: config.provider, search: gateway.search },
      `omp-gateway ${version()} listens on http://${address}:${gateway.port} (${access})`,
    );
  } catch (error) {
    // The message of a configuration mistake says everything; other errors may need their causes.
    fail(error instanceof ConfigError ? error.message : explainError(error));
  }
}

function fail(message: string, status = 1): void {
  process.stderr.write(`omp-gateway: ${message}\n`);
  process.exitCode = status;
}
