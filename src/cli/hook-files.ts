import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import jsonc, { type ParseError } from 'jsonc-parser';
import type { HookClient } from './hook-clients.ts';

/** Commands by event. */
export type HookCommands = Readonly<Record<string, string>>;

export interface HookChange {
  /** Symbolic links are followed. */
  readonly file: string;
  /** Undefined: there is no file. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** The file without our hooks. */
  readonly without: string | undefined;
}

/** The client ends a hook that hangs after the deadline and these seconds. */
const SPARE_SECONDS = 5;

/**
 * What the file becomes with these commands, or, without commands, as it was before they were installed. Nothing is written.
 * `records` is the folder of `writeChange`. Throws if the file cannot be read or is not what the client accepts.
 */
export function planChange(
  { client, name, path, records }: { client: HookClient; name: string; path: string; records: string },
  hooks?: { readonly commands: HookCommands; readonly deadlineMs: number },
): HookChange {
  const file = existsSync(path) ? realpathSync(path) : path;
  const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  const record = readRecord(records, file);
  const without =
    before !== undefined && record?.after === hashOf(before)
      ? record.without
      : withoutHooks(before, { client, name, file });
  if (!hooks) return { file, before, after: without, without };
  const seconds = Math.ceil(hooks.deadlineMs / 1000) + SPARE_SECONDS;
  const entries = Object.entries(hooks.commands).map(
    ([event, command]) => [event, client.entry(command, seconds)] as const,
  );
  const same = before !== undefined && JSON.stringify(ownEntries(before, ownHook(name))) === JSON.stringify(entries);
  return { file, before, after: same ? before : added(without, { client, file, entries }), without };
}

type Entries = readonly (readonly [event: string, entry: object])[];

/** The commands of `hooks install` contain these words. */
const ownHook = (name: string) => (entry: unknown) => {
  const { command } = (entry ?? {}) as { command?: unknown };
  return typeof command === 'string' && ` ${command} `.includes(` hooks run ${name} `);
};

interface Group {
  readonly hooks?: unknown;
}
type Settings = { readonly hooks?: Readonly<Record<string, readonly (Group | undefined)[]>> };

/** Throws unless our entries can be added without a change of what is there. */
function read(text: string, file: string): Settings {
  const errors: ParseError[] = [];
  const settings: unknown = jsonc.parse(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error && text.trim() !== '') {
    const line = text.slice(0, error.offset).split('\n').length;
    throw new Error(`${file} is not valid JSON (line ${line}): correct it first; nothing was changed`);
  }
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
  if (settings === undefined) return {};
  const { hooks = {} } = settings as { hooks?: object };
  if (!isObject(settings) || !isObject(hooks)) {
    throw new Error(`${file} must hold an object, and "hooks" in it one too: correct it first; nothing was changed`);
  }
  return settings as Settings;
}

function edit(text: string, path: (string | number)[], value: unknown): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const indent = /^(?:\t| +)(?=")/m.exec(text)?.[0] ?? '  ';
  const insertSpaces = !indent.startsWith('\t');
  const formattingOptions = { insertSpaces, tabSize: insertSpaces ? indent.length : 1, eol };
  const options = { formattingOptions, isArrayInsertion: path.at(-1) === -1 };
  return jsonc.applyEdits(text, jsonc.modify(text, path, value, options));
}

function added(
  text: string | undefined,
  { client, file, entries }: { client: HookClient; file: string; entries: Entries },
): string {
  const isNew = text === undefined || text.trim() === '';
  let result = isNew ? '{}\n' : text;
  const { hooks = {}, ...rest } = read(result, file);
  for (const [field, value] of Object.entries(client.required)) {
    if (!(field in rest)) result = edit(result, [field], value);
  }
  for (const [event, entry] of entries) {
    if (hooks[event] !== undefined && !Array.isArray(hooks[event])) {
      throw new Error(`"hooks.${event}" in ${file} must be a list: correct it first; nothing was changed`);
    }
    result = edit(result, ['hooks', event, -1], entry);
  }
  return result;
}

/** Removes our hooks, and lists, groups and objects that hold nothing else. */
function withoutHooks(
  text: string | undefined,
  { client, name, file }: { client: HookClient; name: string; file: string },
): string | undefined {
  if (text === undefined) return undefined;
  const isOurs = ownHook(name);
  let result = text;
  for (const event of Object.keys(client.events)) {
    const list = read(result, file).hooks?.[event];
    if (!Array.isArray(list)) continue;
    let left = list.length;
    for (const [index, group] of [...list.entries()].reverse()) {
      const nested: unknown = (group as Group | null)?.hooks;
      const inGroup = Array.isArray(nested) ? [...nested.entries()].filter(([, hook]) => isOurs(hook)).reverse() : [];
      if (isOurs(group) || (inGroup.length > 0 && inGroup.length === (nested as unknown[]).length)) {
        result = edit(result, ['hooks', event, index], undefined);
        left--;
      } else {
        for (const [at] of inGroup) result = edit(result, ['hooks', event, index, 'hooks', at], undefined);
      }
    }
    if (left > 0 || list.length === 0) continue;
    result = edit(result, ['hooks', event], undefined);
    if (Object.keys(read(result, file).hooks ?? {}).length === 0) result = edit(result, ['hooks'], undefined);
  }
  return result;
}

/** Our hooks in a file, each with its event. */
function ownEntries(text: string, isOurs: (hook: unknown) => boolean): [event: string, group: unknown][] {
  const settings = jsonc.parse(text) as Settings | undefined;
  return Object.entries(settings?.hooks ?? {}).flatMap(([event, list]) =>
    (Array.isArray(list) ? list : [])
      .filter((group) => isOurs(group) || (Array.isArray(group?.hooks) && group.hooks.some(isOurs)))
      .map((group): [string, unknown] => [event, group]),
  );
}

/** The events that have our hooks in the file at this path; none if there is no file. Throws if it is not what the client accepts. */
export function installedEvents(path: string, name: string): string[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, 'utf8');
  read(text, path);
  return ownEntries(text, ownHook(name)).map(([event]) => event);
}

/** What uninstalling needs to restore a file byte for byte. */
interface Former {
  readonly file: string;
  /** SHA-256 of the file with our hooks. */
  readonly after: string;
  readonly without?: string;
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const recordOf = (records: string, file: string): string => join(records, `${hashOf(file).slice(0, 16)}.json`);

function readRecord(records: string, file: string): Former | undefined {
  const path = recordOf(records, file);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Former) : undefined;
}

/**
 * Writes the change, and in the folder `records` what uninstalling needs: it holds the former contents, so only the user may
 * read it.
 */
export function writeChange({ file, before, after, without }: HookChange, records: string): void {
  const record = recordOf(records, file);
  if (after !== undefined && after !== without) {
    mkdirSync(records, { recursive: true, mode: 0o700 });
    const former: Former = { file, after: hashOf(after), ...(without !== undefined && { without }) };
    replace(record, JSON.stringify(former), 0o600);
  }
  if (after === undefined) rmSync(file, { force: true });
  else if (after !== before) {
    mkdirSync(dirname(file), { recursive: true });
    replace(file, after, before === undefined ? undefined : statSync(file).mode & 0o7777);
  }
  if (after === without) rmSync(record, { force: true });
}

/** A reader sees the old or the new contents, never a part. Without a mode the file has that of any new file. */
function replace(file: string, text: string, mode: number | undefined): void {
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, text, mode === undefined ? {} : { mode: 0o600 });
  if (mode !== undefined) chmodSync(temporary, mode);
  renameSync(temporary, file);
}
