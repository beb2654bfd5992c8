import { inspect } from 'node:util';
import type { Setting } from './settings.ts';

/** One value that somebody wrote, before the schema has judged it. */
export interface Given {
  /** Undefined: it cannot be known, and the mistake behind that is already reported. */
  readonly value: unknown;
  /** Where it was written, in the user's words: `--port`, `OMP_PORT`, `port in gateway.yaml`. */
  readonly name: string;
  /** As it was written, references unresolved: what they stand for may be secret. */
  readonly written: unknown;
  readonly origin: 'command line' | 'environment' | 'file';
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** What every source needs, and the list that all of them add to. */
export interface Reading {
  readonly env: Environment;
  readonly readFile: (path: string) => string;
  readonly mistakes: string[];
  /** Variables that the file refers to. */
  readonly referenced: Set<string>;
}

/** Thrown at boot; `message` lists every mistake on its own line and holds no secret. */
export class ConfigError extends Error {
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    const count = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`;
    super(`The configuration has ${count}:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`);
    this.name = 'ConfigError';
    this.mistakes = mistakes;
  }
}

const LONGEST_SHOWN = 80;

/** What the schema says of a value: `path` leads to the fault within it, and `message` quotes nothing of it. */
export interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Says what is wrong with a value; of a list or a mapping only where. */
export function refusal(setting: Setting, { name, written }: Given, { path, message }: Fault): string {
  const must = `${name} must be ${setting.allowed}`;
  const place = path.map((step) => (typeof step === 'number' ? `entry ${step + 1}` : String(step))).join(', ');
  if (setting.type === 'json' && place !== '') return `${name}: ${place}: ${message}`;
  if (setting.secret) return `${must} (its value is secret and not shown)`;
  if (place !== '' && typeof written !== 'string') return `${must}; ${place} is not`;
  const shown = inspect(written, { depth: -1, maxStringLength: LONGEST_SHOWN });
  // Somebody may take OMP_AUTH for the place of a key.
  return `${must}, not ${shown.replace(/omp_[a-z0-9]{12}_[\w-]+/g, 'a key')}`;
}

/** Why a file could not be read, without the path, which the caller names. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'permission denied';
  return code === 'EISDIR' ? 'it is a folder' : (code ?? message);
}
