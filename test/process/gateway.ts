import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { serve } from '../../src/serve.ts';
import { type Client, clientOf } from '../support/client.ts';
import { copyEmptyPostgres } from '../support/empty-postgres.ts';
import { FULL, SHORT_LIVED } from '../support/full.ts';
import { recordingLog } from '../support/gateway.ts';
import { type Sample, samplesOf } from '../telemetry/exposition.ts';

/** Built before the tests. */
const MAIN = resolve('dist/src/main.js');

/** Options of Node: it does not optimise our code either. */
export const FAST_START: readonly string[] = FULL ? [] : [...SHORT_LIVED, '--no-opt'];

type Environment = Readonly<Record<string, string>>;

export interface ProgramOptions {
  readonly args?: readonly string[];
  readonly env?: Environment;
  /** A copy of the built program to run instead. */
  readonly main?: string;
  /** By default there is no standard input. */
  readonly stdin?: 'pipe';
  /** By default a folder of its own. */
  readonly cwd?: string;
}

export interface Ending {
  /** null when a signal ended the process. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<Ending>;
  /** Resolves with the match once standard output has it; rejects when the process ends first. */
  output(pattern: RegExp): Promise<RegExpExecArray>;
  /** Standard output so far. */
  printed(): string;
}

export interface RunningGateway extends Program {
  readonly url: string;
  readonly client: Client;
  /** Sends SIGTERM; resolves when the process has ended. */
  stop(): Promise<Ending>;
  /** SIGKILL: no handler runs, nothing is flushed. */
  kill(): Promise<Ending>;
}

/** A folder, removed after the test. Its path is short, because that of a unix socket has at most about 100 characters. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'omp-t-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A data folder with an empty database, which starts faster than a new one; removed after the test. */
export async function dataFolder(): Promise<string> {
  const folder = temporaryFolder();
  await copyEmptyPostgres(folder);
  return folder;
}

/** Starts the program with only PATH from this environment. It is killed after the test. */
export function startProgram({ args = [], env = {}, main = MAIN, stdin, cwd }: ProgramOptions = {}): Program {
  const folder = temporaryFolder();
  const child = spawn(process.execPath, [...FAST_START, main, ...args], {
    cwd: cwd ?? folder,
    env: { PATH: process.env.PATH, TMPDIR: folder, OMP_DATA_DIR: folder, OMP_PORT: '0', ...env },
    stdio: [stdin ?? 'ignore', 'pipe', 'pipe'],
  });
  return watch(child);
}

/** Records the output of a child process and kills it after the test. */
export function watch(child: ChildProcess): Program {
  const texts = { stdout: '', stderr: '' };
  let done = false;
  const watchers = new Set<() => void>();
  const changed = () => {
    for (const look of watchers) look();
  };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
      changed();
    });
  }
  const ended = once(child, 'close').then(([status, signal]): Ending => {
    done = true;
    changed();
    return { status, signal, ...texts };
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const output = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((found, failed) => {
      const look = () => {
        const match = pattern.exec(texts.stdout);
        if (!match && !done) return;
        watchers.delete(look);
        if (match) found(match);
        else failed(new Error(`the process ended without printing ${pattern}:\n${texts.stdout}${texts.stderr}`));
      };
      watchers.add(look);
      look();
    });
  return { child, ended, output, printed: () => texts.stdout };
}

/** A gateway that listens. By default with keyword search, which loads no model. */
export async function startGateway({ env, ...options }: ProgramOptions = {}): Promise<RunningGateway> {
  const program = startProgram({ ...options, env: { OMP_SEARCH_MODE: 'keyword', ...env } });
  const [, url = ''] = await program.output(/ listens on (http:\/\/[^"\s]+)/);
  const end = (signal: NodeJS.Signals) => {
    program.child.kill(signal);
    return program.ended;
  };
  return {
    ...program,
    url,
    client: clientOf((path, init) => fetch(url + path, init)),
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

/** Runs the program to its end. */
export const runProgram = (options: ProgramOptions): Promise<Ending> => startProgram(options).ended;

/** A gateway in this process, for which another would compute a second; by default on memory with keyword search. */
export async function serveHere(env: Environment = {}) {
  const log = recordingLog();
  const own = { OMP_PROVIDER: 'memory', OMP_PORT: '0', OMP_SEARCH_MODE: 'keyword', ...env };
  const gateway = await serve(loadConfig({ env: own }).config, log);
  onTestFinished(gateway.close);
  const url = `http://${gateway.host}:${gateway.port}`;
  return { ...gateway, url, log, client: clientOf((path, init) => fetch(url + path, init)) };
}

export interface MeasuredGateway extends RunningGateway {
  readonly metricsUrl: string;
  text(): Promise<string>;
  samples(): Promise<Sample[]>;
}

/** A gateway with metrics. */
export async function startMeasuredGateway(env: Readonly<Record<string, string>> = {}): Promise<MeasuredGateway> {
  const gateway = await startGateway({ env: { OMP_METRICS_PORT: '0', ...env } });
  const [, port] = await gateway.output(/"port":(\d+),"msg":"the port for metrics is open"/);
  const metricsUrl = `http://127.0.0.1:${port}/metrics`;
  const text = async () => (await fetch(metricsUrl)).text();
  return { ...gateway, metricsUrl, text, samples: async () => samplesOf(await text()) };
}
