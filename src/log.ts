import { type Logger, pino } from 'pino';
import { type PrettyOptions, prettyFactory } from 'pino-pretty';
import { openStandardOutput } from './standard-output.ts';

/** Structured lines on standard output; readable ones when that is a terminal. */
export function createLog(level: string): Logger {
  const output = openStandardOutput((lost) => log.warn({ lost }, 'log lines are lost: nobody took them'));
  const pretty = process.stdout.isTTY ? prettyFactory(PRETTY) : undefined;
  const log = pino({ level, base: null }, pretty ? { write: (line) => output.write(pretty(line)) } : output);
  return log;
}

const PRETTY: PrettyOptions = { translateTime: 'HH:MM:ss', ignore: 'pid,hostname', singleLine: true };
