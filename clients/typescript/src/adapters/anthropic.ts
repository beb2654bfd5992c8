import type { MemoryClient } from '../client.ts';
import { version } from '../client.ts';
import { NotFoundError, PreconditionFailedError } from '../errors.ts';
import type { Memory } from '../types.ts';
import { addExtracted } from './origin.ts';
import { checkedScope, decodeSegment, encodeSegment, ignoreMissing } from './segments.ts';

export interface FilesOptions {
  readonly userId: string;
  /** Scope of the files, so that other memories of the user stay apart; default `files`. */
  readonly scope?: string;
  /** The source of the files; default `anthropic`. */
  readonly app?: string;
}

/** Attempts of an edit while others edit the same file. */
const ATTEMPTS = 10;
const MAX_LINES = 999_999;
const WIDTH = 6;
/** Reported as the size of a directory. */
const DIRECTORY_BYTES = 4096;

/**
 * Handlers of Anthropic's memory tool (`memory_20250818`), for `betaMemoryTool(...)` or the AI SDK's
 * `anthropic.tools.memory_20250818`. Each file is a memory of one user, so that files are found by `search` as well. The
 * answers are those of the SDK's own tool for a file system, except that an empty directory does not exist, and that `str_replace` finds
 * texts of several lines, and each of several in one line. An edit is done again if the file changes meanwhile, where the gateway has `features.etags`. What untrusted keys wrote counts as absent.
 */
export function memoryToolHandlers(client: MemoryClient, { userId, scope = 'files', app = 'anthropic' }: FilesOptions) {
  const root = checkedScope(scope);
  // No answer of the tool could show the mark of an untrusted key.
  const files = (glob: string) => client.memories.list({ user_id: userId, scope: glob, limit: 500, untrusted: false });
  const scopeOf = (segments: readonly string[]) => [root, ...segments.map(encodeSegment)].join('/');
  const fileAt = async (segments: readonly string[]): Promise<Memory | undefined> =>
    segments.length === 0 ? undefined : (await files(scopeOf(segments)).page()).items[0];
  /** The files below a directory, by path. */
  const below = async (segments: readonly string[]) => {
    const entries: { path: string[]; memory: Memory }[] = [];
    const base = scopeOf(segments);
    for await (const memory of files(`${base}/*`)) {
      entries.push({
        path: (memory.scope ?? '')
          .slice(base.length + 1)
          .split('/')
          .map(decodeSegment),
        memory,
      });
    }
    return entries;
  };
  /** Throws if an ancestor of a path is a file. */
  const requireDirectories = async (segments: readonly string[]) => {
    for (let depth = 1; depth < segments.length; depth++) {
      const parent = segments.slice(0, depth);
      if (await fileAt(parent)) throw new Error(`The path /memories/${parent.join('/')} is a file.`);
    }
  };
  /** The file to edit. */
  const requireFile = async (path: string): Promise<Memory> => {
    const segments = parse(path);
    const file = await fileAt(segments);
    if (file) return file;
    if (segments.length === 0 || (await below(segments)).length > 0) throw new Error(`The path ${path} is not a file.`);
    throw new Error(`The path ${path} does not exist. Please provide a valid path.`);
  };
  /** Reads, changes and writes a file, again if it has changed or moved meanwhile. */
  const edit = async <Result>(path: string, change: (text: string) => { text: string; result: Result }) => {
    const { features } = await client.capabilities();
    for (let attempt = 1; ; attempt++) {
      const file = await requireFile(path);
      const { text, result } = change(textOf(file));
      try {
        await client.memories.update(file.id, fieldsOf(text, path), features.etags ? { ifMatch: version(file) } : {});
        return result;
      } catch (error) {
        const isChanged = error instanceof PreconditionFailedError || error instanceof NotFoundError;
        if (!isChanged || attempt === ATTEMPTS) throw error;
      }
    }
  };

  return {
    async view({ path, view_range }: { path: string; view_range?: number[] }): Promise<string> {
      const segments = parse(path);
      const file = await fileAt(segments);
      if (file) return viewFile(path, textOf(file), view_range);
      const entries = await below(segments);
      if (entries.length === 0 && segments.length > 0) {
        throw new Error(`The path ${path} does not exist. Please provide a valid path.`);
      }
      const lines = entriesOf(entries).map(({ name, bytes }) => `${sizeText(bytes)}\t${path}/${name}`);
      const title = `Here're the files and directories up to 2 levels deep in ${path}, excluding hidden items and node_modules:`;
      return [title, `${sizeText(DIRECTORY_BYTES)}\t${path}`, ...lines].join('\n');
    },
    async create({ path, file_text }: { path: string; file_text: string }): Promise<string> {
      const segments = parse(path);
      requireText(file_text, 'file_text');
      if (segments.length === 0 || (await fileAt(segments)) || (await below(segments)).length > 0) {
        throw new Error(`File ${path} already exists`);
      }
      await requireDirectories(segments);
      await addExtracted(client, app, { user_id: userId, scope: scopeOf(segments), ...fieldsOf(file_text, path) });
      return `File created successfully at: ${path}`;
    },
    /** Without `new_str` the text is removed, as Claude means it when it leaves that out. */
    async str_replace({
      path,
      old_str,
      new_str,
    }: {
      path: string;
      old_str: string;
      new_str?: string;
    }): Promise<string> {
      requireText(old_str || undefined, 'old_str');
      return edit(path, (before) => replaceOnce(before, path, old_str, new_str ?? ''));
    },
    insert: (command: { path: string; insert_line: number; insert_text: string }): Promise<string> =>
      edit(command.path, (before) => {
        const lines = before.split('\n');
        const { path, insert_line: at, insert_text } = command;
        requireText(insert_text, 'insert_text');
        if (!Number.isInteger(at) || at < 0 || at > lines.length) {
          throw new Error(
            `Invalid \`insert_line\` parameter: ${at}. It should be within the range of lines of the file: [0, ${lines.length}]`,
          );
        }
        lines.splice(at, 0, insert_text.replace(/\n$/, ''));
        return { text: lines.join('\n'), result: `The file ${path} has been edited.` };
      }),
    async delete({ path }: { path: string }): Promise<string> {
      const segments = parse(path);
      if (segments.length === 0) throw new Error('Cannot delete the /memories directory itself');
      const file = await fileAt(segments);
      const memories = file ? [file] : (await below(segments)).map(({ memory }) => memory);
      if (memories.length === 0) throw new Error(`The path ${path} does not exist`);
      for (const { id } of memories) await client.memories.delete(id).catch(ignoreMissing);
      return `Successfully deleted ${path}`;
    },
    async rename({ old_path, new_path }: { old_path: string; new_path: string }): Promise<string> {
      const [from, to] = [parse(old_path), parse(new_path)];
      if (from.length === 0) throw new Error('Cannot rename the /memories directory itself');
      if (to.length === 0 || (await fileAt(to)) || (await below(to)).length > 0) {
        throw new Error(`The destination ${new_path} already exists`);
      }
      await requireDirectories(to);
      const file = await fileAt(from);
      const entries = file ? [{ path: [] as string[], memory: file }] : await below(from);
      if (entries.length === 0) throw new Error(`The path ${old_path} does not exist`);
      if (!file && scopeOf(to).startsWith(`${scopeOf(from)}/`)) {
        throw new Error(`${new_path} is inside ${old_path}`);
      }
      for (const { path, memory } of entries) {
        await client.memories.update(memory.id, { scope: scopeOf([...to, ...path]) });
      }
      return `Successfully renamed ${old_path} to ${new_path}`;
    },
  };
}

/** The text with its one occurrence of `old` replaced, and the answer, which shows the lines around it. */
function replaceOnce(before: string, path: string, old: string, replacement: string) {
  const parts = before.split(old);
  if (parts.length === 1) {
    throw new Error(`No replacement was performed, old_str \`${old}\` did not appear verbatim in ${path}.`);
  }
  let line = 1 + breaksIn(parts[0] as string);
  if (parts.length > 2) {
    const lines = new Set([line]);
    for (const between of parts.slice(1, -1)) {
      line += breaksIn(old) + breaksIn(between);
      lines.add(line);
    }
    const where = `old_str \`${old}\` in lines: ${[...lines].join(', ')}`;
    throw new Error(`No replacement was performed. Multiple occurrences of ${where}. Please ensure it is unique`);
  }
  const text = parts.join(replacement);
  const first = Math.max(1, line - 2);
  const snippet = numberLines(text.split('\n').slice(first - 1, line + 2), first);
  const title = 'The memory file has been edited. Here is the snippet showing the change (with line numbers):';
  return { text, result: `${title}\n${snippet}` };
}

const breaksIn = (text: string): number => text.split('\n').length - 1;

/** What a model leaves out is named, instead of writing `undefined` or failing without a word that helps. */
function requireText(value: unknown, name: string): void {
  if (typeof value !== 'string') throw new Error(`Parameter \`${name}\` is required`);
}

/** The segments below `/memories`. */
function parse(path: string): string[] {
  if (!path.startsWith('/memories')) throw new Error(`Path must start with /memories, got: ${path}`);
  const segments: string[] = [];
  for (const segment of path.slice('/memories'.length).split('/')) {
    if (segment === '..' && segments.pop() === undefined)
      throw new Error(`Path ${path} would escape /memories directory`);
    if (segment !== '' && segment !== '.' && segment !== '..') segments.push(segment);
  }
  return segments;
}

/** A memory is never blank, a file may be: then the memory has the path as its content. */
const fieldsOf = (text: string, path: string) =>
  /\S/.test(text) ? { content: text, 'x-blank': null } : { content: path, 'x-blank': text };
const textOf = (memory: Memory): string => (memory['x-blank'] as string | null | undefined) ?? memory.content;

function viewFile(path: string, text: string, range: readonly number[] | undefined): string {
  const lines = text.split('\n');
  if (lines.length > MAX_LINES) {
    const most = MAX_LINES.toLocaleString();
    throw new Error(`File ${path} has too many lines (${lines.length}). Maximum is ${most} lines.`);
  }
  const [from = 1, to = -1] = range?.length === 2 ? range : [];
  const first = Math.max(1, from);
  const excerpt = numberLines(lines.slice(first - 1, to === -1 ? lines.length : to), first);
  return `Here's the content of ${path} with line numbers:\n${excerpt}`;
}

const numberLines = (lines: readonly string[], first: number): string =>
  lines.map((line, index) => `${String(index + first).padStart(WIDTH)}\t${line}`).join('\n');

/** Two levels of a directory, in the order of the names. */
function entriesOf(entries: readonly { path: string[]; memory: Memory }[]): { name: string; bytes: number }[] {
  const level = (prefix: string, items: typeof entries, depth: number): { name: string; bytes: number }[] => {
    const names = [...new Set(items.map(({ path }) => path[0] as string))].sort();
    return names
      .filter((name) => !name.startsWith('.') && name !== 'node_modules')
      .flatMap((name) => {
        const inside = items.filter(({ path }) => path[0] === name);
        const file = inside.find(({ path }) => path.length === 1);
        if (file) return [{ name: prefix + name, bytes: new TextEncoder().encode(textOf(file.memory)).length }];
        const rest = inside.map(({ path, memory }) => ({ path: path.slice(1), memory }));
        const own = { name: `${prefix}${name}/`, bytes: DIRECTORY_BYTES };
        return [own, ...(depth < 2 ? level(`${prefix}${name}/`, rest, depth + 1) : [])];
      });
  };
  return level('', entries, 1);
}

function sizeText(bytes: number): string {
  if (bytes === 0) return '0B';
  const power = Math.floor(Math.log(bytes) / Math.log(1024));
  const size = bytes / 1024 ** power;
  return (size % 1 === 0 ? String(size) : size.toFixed(1)) + ['B', 'K', 'M', 'G'][power];
}
