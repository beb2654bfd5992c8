import { inspect } from 'node:util';

/** One value that a source gives, before the schema has checked it. */
export interface Input {
  /** Undefined: unknown, and the mistake behind it is already reported. */
  readonly value: unknown;
  /** Where it was written, in the user's words: `--port`, `OMP_PORT`, `port in gateway.yaml`. */
  readonly name: string;
  /** As it was written, references unresolved: they may stand for secrets. */
  readonly written: unknown;
  readonly origin: 'command line' | 'environment' | 'file';
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** What every source needs, and the list of mistakes that all of them extend. */
export interface Reading {
  readonly env: Environment;
  readonly readFile: (path: string) => string;
  readonly mistakes: string[];
  /** Variables that the file refers to. */
  readonly referenced: Set<string>;
}

/** Thrown at start; `message` lists every mistake on its own line and contains no secret. */
export class ConfigError extends Error {
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    const count = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`;
    super(`The configuration has ${count}:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`);
    this.name = 'ConfigError';
    this.mistakes = mistakes;
  }
}

const MAX_SHOWN = 80;

/** What the schema says about a value: `path` leads to the fault within it, and `message` quotes nothing of it. */
export interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

interface Allowed {
  readonly allowed: string;
  readonly type: string;
  readonly secret: boolean;
}

/** What is wrong with a value. For a list or an object only the position, not the contents. */
export function faultMessage(setting: Allowed, { name, written }: Input, { path, message }: Fault): string {
  const must = `${name} must be ${setting.allowed}`;
  const position = path.map((step) => (typeof step === 'number' ? `entry ${step + 1}` : String(step))).join(', ');
  if (setting.type === 'json' && position !== '') return `${name}: ${position}: ${message}`;
  if (setting.secret) return `${must} (its value is secret and not shown)`;
  if (position !== '' && typeof written !== 'string') return `${must}; ${position} is not`;
  const shown = inspect(written, { depth: -1, maxStringLength: MAX_SHOWN });
  // OMP_AUTH may hold a key by mistake.
  return `${must}, not ${shown.replace(/omp_[a-z0-9]{12}_[\w-]+/g, 'a key')}`;
}

/** Why a file could not be read, without its path. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'permission denied';
  return code === 'EISDIR' ? 'it is a folder' : (code ?? message);
}

/** The fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  let above: number[] = [];
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] as number) + (a[i] === b[j] ? 0 : 1);
      const swapped = a[i] === b[j - 1] && a[i - 1] === b[j] ? (above[j - 1] as number) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replaced, swapped, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    above = row;
    row = next;
  }
  return row.at(-1) as number;
}

export interface Near {
  readonly name: string;
  /** Edits between the word and the spelling that it is near to. */
  readonly edits: number;
}

/** The candidate nearest to `word`, each given as a spelling and the name to suggest for it. At most a third may differ. */
export function nearest(word: string, candidates: Iterable<readonly [spelling: string, name: string]>) {
  const lowerCased = word.toLowerCase();
  let best: Near | undefined;
  for (const [spelling, name] of candidates) {
    const edits = distance(lowerCased, spelling.toLowerCase());
    if (edits <= spelling.length / 3 && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { name, edits };
  }
  return best;
}

/** `; did you mean X?` or nothing, ready to append. */
export const suggested = (near: Near | undefined): string => (near ? `; did you mean ${near.name}?` : '');

export const didYouMean = (word: string, candidates: Parameters<typeof nearest>[1]): string =>
  suggested(nearest(word, candidates));
