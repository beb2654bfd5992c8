import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../config/mistakes.ts';

/*
 * What the start of a session passed to the model, so that its first prompt does not pass it again. Another process runs each hook, so it
 * is a file: ids of memories and no contents.
 */

/** A context block, as `POST /context` answers it. */
export interface Block {
  readonly text: string;
  readonly citations: readonly Citation[];
}
interface Citation {
  readonly memory_id?: unknown;
  readonly 'x-copies'?: readonly unknown[];
}

/** A session without a prompt leaves its file, which is removed after this time. */
const KEPT_MS = 24 * 60 * 60_000;

/** The folder of what hooks keep on this machine. */
export const stateFolder = (env: Environment): string =>
  join(env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local/state'), 'omp-gateway/hooks');

const folderOf = (env: Environment) => join(stateFolder(env), 'sessions');
const fileOf = (session: string) => `${createHash('sha256').update(session).digest('hex').slice(0, 32)}.json`;
const idsOf = ({ memory_id, 'x-copies': copies = [] }: Citation): unknown[] => [memory_id, ...copies];

/** NaN: a line without a memory. */
const numberOf = (line = ''): number => Number(/^\[(\d+)\] /.exec(line.slice(0, 20))?.[1]);
const isNumbered = (line?: string): boolean => numberOf(line) > 0;

/** Keeps what the start of this session passes. Throws if the file cannot be written. */
export function keepPassed(session: string, { citations }: Block, env: Environment): void {
  const folder = folderOf(env);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    if (Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > KEPT_MS) rmSync(file, { force: true });
  }
  writeFileSync(join(folder, fileOf(session)), JSON.stringify(citations.flatMap(idsOf)), { mode: 0o600 });
}

/**
 * The text without the lines that the start of this session passed; empty if no line is left. Only the first
 * prompt that finds something loses lines.
 */
export function withoutPassed(session: string, { text, citations }: Block, env: Environment): string {
  const file = join(folderOf(env), fileOf(session));
  let passed: Set<unknown>;
  try {
    passed = new Set(JSON.parse(readFileSync(file, 'utf8')) as unknown[]);
    rmSync(file);
  } catch {
    return text;
  }
  const isPassed = (line: string) => {
    const citation = citations[numberOf(line) - 1];
    return citation !== undefined && idsOf(citation).some((id) => passed.has(id));
  };
  const left = text.split('\n').filter((line) => !isPassed(line));
  if (!left.some(isNumbered)) return '';
  // A heading stands above lines that end with an empty one, or with the block.
  const isBare = (i: number) =>
    i > 0 && i < left.length - 1 && left[i] !== '' && ![left[i], left[i + 1]].some(isNumbered);
  return left.filter((line, i) => !isBare(i) && !(line === '' && isBare(i - 1))).join('\n');
}
