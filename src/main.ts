#!/usr/bin/env node
import { parseArguments } from './cli/arguments.ts';
import { runDoctor } from './cli/doctor.ts';
import { explainError } from './cli/explain-error.ts';
import { helpText } from './cli/help.ts';
import { runKeys } from './cli/keys.ts';
import { runReembed } from './cli/reembed.ts';
import { version } from './cli/version.ts';
import { ConfigError } from './config/given.ts';
import { loadConfig } from './config/load.ts';
import { createLog } from './log.ts';
import { serve } from './serve.ts';
import { startUntilSignal } from './signals.ts';

const COMMANDS = { doctor: runDoctor, keys: runKeys, reembed: runReembed };

const asked = parseArguments(process.argv.slice(2));
if (asked.action === 'help') process.stdout.write(helpText());
else if (asked.action === 'version') process.stdout.write(`${version()}\n`);
else if (asked.action === 'mistake') fail(asked.message, asked.status);
else if (asked.action === 'serve') await start(asked.flags);
else process.exitCode = await COMMANDS[asked.action](asked.argv, process);

async function start(flags: Readonly<Record<string, string>>): Promise<void> {
  try {
    const { config, warnings } = loadConfig({ flags, env: process.env });
    const log = createLog(config.log_level);
    for (const warning of warnings) log.warn(warning);
    const gateway = await startUntilSignal((stopped) => serve(config, log, { stopped }), log);
    const address = gateway.host.includes(':') ? `[${gateway.host}]` : gateway.host;
    const access = gateway.open ? 'open: no key is needed' : 'closed: a key is needed';
    log.info(
      { provider: config.provider, search: gateway.search },
      `omp-gateway ${version()} listens on http://${address}:${gateway.port} (${access})`,
    );
  } catch (error) {
    // A configuration mistake is told in full by its message; anything else may need its causes.
    fail(error instanceof ConfigError ? error.message : explainError(error));
  }
}

function fail(message: string, status = 1): void {
  process.stderr.write(`omp-gateway: ${message}\n`);
  process.exitCode = status;
}
