import { createHash } from 'node:crypto';
import { type FileHandle, lstat, open, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { spokenIn } from './injected.ts';
import { MAX_BYTES, parseJson } from './json.ts';
import type { Fields } from './readers.ts';
import { maskSecrets } from './secrets.ts';
import {
  type AgentSession,
  type Json,
  type LeftOut,
  type Message,
  TRANSCRIPT_FORMATS,
  type TranscriptFormatName,
} from './transcript-formats.ts';

/** A line may hold images and the output of tools; a longer one is not kept in memory. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** Linux takes no longer path. */
const MAX_PATH_BYTES = 4_096;
/** A longer text was pasted. */
const MAX_CHARACTERS = 20_000;

/** Why texts and lines are left out, in the order in which a summary names them. */
export const REASONS = {
  working: 'texts of the assistant before it went on with a tool',
  short: 'texts of one word, or none',
  injected: 'texts that the program wrote in the name of the user',
  long: `texts longer than ${MAX_CHARACTERS.toLocaleString('en-US')} characters, or than the store takes`,
  sub_agent: 'texts of sub-agents',
  taken_back: 'texts that were taken back',
  copies: 'copies of texts, in forks of a session or taken over from another agent',
  unreadable: 'lines that are no JSON object, or texts without a time',
  denied: 'folders and files that may not be read',
  long_lines: `lines longer than ${MAX_LINE_BYTES / 1024 / 1024} MiB`,
  files: 'files that are compressed (decompress them first), or in a form that is not known',
} as const;

export type Reason = keyof typeof REASONS;

export interface Summary {
  /** Those of which something is kept. */
  sessions: number;
  messages: number;
  masked: number;
  readonly left_out: Record<Reason, number>;
  /** Paths of the first `files` that are left out. */
  readonly not_read: string[];
}

interface TranscriptOptions {
  readonly format: TranscriptFormatName;
  /** Files, or folders that are searched for files of the format. */
  readonly paths: readonly string[];
  readonly user_id: string;
  /** The folder that scopes are relative to. */
  readonly home: string;
  /** Most characters of a content; null: no limit. */
  readonly max_content_length: number | null;
}

interface File {
  readonly path: string;
  /** Changes if the file grows or is replaced. */
  readonly state: string;
  readonly born: number;
}

/** Files that are not read, of which a summary says the path. */
const MAX_NAMED = 10;
/** Files that are followed without being read from the beginning again. */
const MAX_OPEN = 64;

/**
 * Reads the sessions of a coding agent as memories. `read` yields those of all files, the oldest file first; `changed` those that came
 * since then, and only answers of the assistant that are marked as such or followed by another message of the person.
 */
export function openTranscripts(options: TranscriptOptions) {
  const seen = new Set<string>();
  const states = new Map<string, string>();
  const growing = new Map<string, ReturnType<typeof openSession>>();
  const memoriesOf = (session: ReturnType<typeof openSession>, ended: boolean, summary = emptySummary()) => {
    const { messages, leftOut } = session.messages(ended);
    const memories: Fields[] = [];
    for (const message of messages) {
      const id = idOf(message, options);
      const memory = seen.has(id) ? 'copies' : memoryOf(message, session.cwd(), options);
      if (typeof memory === 'string') summary.left_out[memory]++;
      else {
        seen.add(id);
        memories.push({ id, ...memory.fields });
        summary.masked += memory.masked;
      }
    }
    for (const [reason, count] of Object.entries({ ...leftOut, ...session.lines })) {
      summary.left_out[reason as Reason] += count;
    }
    if (memories.length > 0) summary.sessions++;
    summary.messages += memories.length;
    return memories;
  };
  return {
    /** Adds to the summary what it reads and leaves out. */
    async *read(summary: Summary): AsyncGenerator<Fields> {
      for (const { path, state } of await filesOf(options, () => summary.left_out.denied++)) {
        const session = openSession(options.format, path);
        await session.read(true);
        states.set(path, state);
        if (session.isUnknown() && summary.left_out.files++ < MAX_NAMED) summary.not_read.push(path);
        yield* memoriesOf(session, true, summary);
      }
    },
    async *changed(): AsyncGenerator<Fields> {
      for (const { path, state } of await filesOf(options)) {
        if (states.get(path) === state) continue;
        const session = growing.get(path) ?? openSession(options.format, path);
        growing.delete(path);
        growing.set(path, session);
        for (const first of growing.keys()) if (growing.size > MAX_OPEN) growing.delete(first);
        await session.read(false);
        states.set(path, state);
        yield* memoriesOf(session, false);
      }
    },
  };
}

export const emptySummary = (): Summary => ({
  sessions: 0,
  messages: 0,
  masked: 0,
  left_out: Object.fromEntries(Object.keys(REASONS).map((reason) => [reason, 0])) as Summary['left_out'],
  not_read: [],
});

/** The files of sessions, the oldest first: an original before its forks. */
async function filesOf({ format, paths }: TranscriptOptions, denied?: () => void): Promise<File[]> {
  const files: File[] = [];
  const add = async (path: string) => {
    const { size, ino, mtimeMs, birthtimeMs } = await stat(path);
    files.push({ path, state: `${ino} ${size} ${mtimeMs}`, born: birthtimeMs });
  };
  const search = async (folder: string, below: string) => {
    for (const entry of await orNone(readdir(folder, { withFileTypes: true }), [], denied)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) await search(path, below + entry.name + sep);
      else if (entry.isFile() && TRANSCRIPT_FORMATS[format].isSession(below + entry.name))
        await orNone(add(path), undefined, denied);
    }
  };
  for (const path of paths) {
    if ((await orNone(stat(path), undefined, denied))?.isFile()) await add(path);
    else await search(path, '');
  }
  return files.sort((a, b) => a.born - b.born || (a.path < b.path ? -1 : 1));
}

/** What is not there has nothing: an agent may remove it meanwhile. What may not be read is reported as `denied`, and has nothing too. */
const orNone = <Result>(work: Promise<Result>, none: Result, denied = () => {}): Promise<Result> =>
  work.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EACCES' || error.code === 'EPERM') denied();
    else if (error.code !== 'ENOENT') throw error;
    return none;
  });

/** A session whose file may grow, or be replaced. */
function openSession(format: TranscriptFormatName, path: string) {
  let session: AgentSession = TRANSCRIPT_FORMATS[format].open();
  let lines = { unreadable: 0, denied: 0, long_lines: 0 };
  let place = { ino: 0, end: 0 };
  let root: string | undefined;
  const isCompressed = path.endsWith('.zst');
  let isEmpty = !isCompressed;
  const add = (line: Buffer, isWhole = true) => {
    if (line.every((byte) => byte <= 32)) return;
    isEmpty = false;
    const record = jsonOf(line);
    if (typeof record === 'object' && record !== null && !Array.isArray(record)) session.add(record as Json);
    else if (isWhole) lines.unreadable++;
  };
  return {
    get lines() {
      return lines;
    },
    cwd: () => session.cwd ?? root,
    /** Whether it holds something, but no record of the format. */
    isUnknown: () => !isEmpty && !session.isKnown,
    messages: (ended: boolean): { readonly messages: readonly Message[]; readonly leftOut: LeftOut } =>
      session.messages(ended),
    /** Reads what is new. `ended`: a last line without an end counts too, if it is whole. */
    async read(ended: boolean): Promise<void> {
      if (isCompressed) return;
      const file = await orNone(open(path), undefined, () => lines.denied++);
      if (!file) return;
      try {
        const { ino, size } = await file.stat();
        const isJson = path.endsWith('.json');
        if (ino !== place.ino || size < place.end || isJson) {
          session = TRANSCRIPT_FORMATS[format].open();
          lines = { unreadable: 0, denied: 0, long_lines: 0 };
          place = { ino, end: 0 };
          if (format === 'gemini') root = await projectOf(path);
        }
        if (!isJson) place.end = await readLines(file, place.end, { add, tooLong: () => lines.long_lines++, ended });
        else if (size > MAX_BYTES) lines.long_lines++;
        else add(await file.readFile());
      } finally {
        await file.close();
      }
    },
  };
}

/** Gemini CLI names the project in a file beside its sessions, not in them. */
async function projectOf(path: string): Promise<string | undefined> {
  const file = join(dirname(dirname(path)), '.project_root');
  // Not through a link, which may lead to a secret, and no pipe, which may never end.
  const found = await orNone(lstat(file), undefined);
  if (!found?.isFile() || found.size > MAX_PATH_BYTES) return undefined;
  return (await orNone(readFile(file, 'utf8'), '')).trim() || undefined;
}

/** Passes on the lines from a byte on. Resolves to where the last line ended. */
async function readLines(
  file: FileHandle,
  start: number,
  { add, tooLong, ended }: { add(line: Buffer, isWhole?: boolean): void; tooLong(): void; ended: boolean },
): Promise<number> {
  let parts: Buffer[] = [];
  let bytes = 0;
  let place = start;
  const input = file.createReadStream({ start, autoClose: false });
  for await (const chunk of input as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const length = bytes + end - from;
      if (length > MAX_LINE_BYTES) tooLong();
      else add(Buffer.concat([...parts, chunk.subarray(from, end)]));
      place += length + 1;
      [parts, bytes, from] = [[], 0, end + 1];
    }
    bytes += chunk.length - from;
    if (bytes > MAX_LINE_BYTES) parts = [];
    else parts.push(chunk.subarray(from));
  }
  // The agent may be writing the last one.
  if (ended && bytes <= MAX_LINE_BYTES) add(Buffer.concat(parts), false);
  return place;
}

/** Undefined: it is none, or too deep or wide. */
function jsonOf(line: Buffer): unknown {
  try {
    // Results of tools hold all kinds of numbers, and none is part of a memory.
    return parseJson(line, 'rounded');
  } catch {
    return undefined;
  }
}

/** The same in every run, also when secrets are recognised that were not. */
function idOf({ key }: Message, { format, user_id }: TranscriptOptions): string {
  const hash = createHash('sha256').update(JSON.stringify([user_id, key]));
  return `${format}-${hash.digest('hex').slice(0, 32)}`;
}

/** A message as a memory without its id, or why it is left out. */
function memoryOf(
  { role, text, at, ref }: Message,
  cwd: string | undefined,
  { format, user_id, home, max_content_length }: TranscriptOptions,
): { readonly fields: Fields; readonly masked: number } | Reason {
  const spoken = role === 'user' ? spokenIn(text) : text.trim();
  if (spoken === '') return 'injected';
  if (!hasWords(spoken)) return 'short';
  if (spoken.length > Math.min(MAX_CHARACTERS, max_content_length ?? MAX_CHARACTERS)) return 'long';
  const time = typeof at === 'string' ? Date.parse(at) : Number.NaN;
  if (Number.isNaN(time)) return 'unreadable';
  const created_at = new Date(time).toISOString();
  const { text: content, count: masked } = maskSecrets(spoken.replaceAll('\0', ' ').toWellFormed());
  const fields = {
    content,
    user_id,
    ...(cwd !== undefined && { scope: projectScope(cwd, home) }),
    tags: [role],
    source: { app: format, type: 'imported', ref },
    created_at,
    valid_from: created_at,
  };
  return { fields, masked };
}

/** Characters in which two words are looked for. */
const BEGINNING = 200;

/** Whether a text says more than "yes" or "continue", in any script. */
function hasWords(text: string): boolean {
  let words = 0;
  for (const { isWordLike } of new Intl.Segmenter('und', { granularity: 'word' }).segment(text.slice(0, BEGINNING))) {
    if (isWordLike && ++words === 2) return true;
  }
  return false;
}

const [MAX_SEGMENTS, MAX_SCOPE] = [31, 500];
/** Longest path of an operating system, in characters. */
const MAX_PATH = 4_096;

/** `projects/` and the path of the folder, from the home folder on if it is in it; of a long path its end. */
export function projectScope(cwd: string, home: string): string {
  // macOS and agents write a letter with its mark as one character or as two.
  const [folder, start] = [cwd, home].map((path) => path.slice(-MAX_PATH).normalize('NFC')) as [string, string];
  const inHome = folder === start || folder.startsWith(start + sep);
  const path = inHome ? folder.slice(start.length) : folder;
  const names = path
    .slice(-MAX_SCOPE)
    .toWellFormed()
    // A scope cannot hold these characters.
    .replace(/[*?\p{Cc}]/gu, '_')
    .split(/[\\/]+/)
    .filter((name) => name !== '')
    .slice(-MAX_SEGMENTS);
  return ['projects', ...(names.length > 0 ? names : ['~'])].join('/');
}
