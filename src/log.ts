import { type Logger, pino } from 'pino';
import { type PrettyOptions, default as pretty } from 'pino-pretty';

/** Structured lines on standard output; readable ones when that is a terminal. */
export function createLog(level: string): Logger {
  const options = { level, base: null };
  return process.stdout.isTTY ? pino(options, pretty(PRETTY)) : pino(options);
}

const PRETTY: PrettyOptions = { translateTime: 'HH:MM:ss', ignore: 'pid,hostname', singleLine: true };
