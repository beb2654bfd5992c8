import { createReadStream, existsSync, statSync } from 'node:fs';
import { readFile as readText, rm } from 'node:fs/promises';
import type { MovedMemory } from '../../clients/typescript/src/index.ts';
import { ConfigError } from '../config/mistakes.ts';
import { ALL_GRANTS, type Principal } from '../core/principal.ts';
import { type Counts, createCopy, noCounts, total } from '../move/copy.ts';
import { FORMAT, type Header, type Line, openWriter, readFile, replaceFile, streamWriter } from '../move/file.ts';
import { readCsv, readMem0 } from '../move/readers.ts';
import { type Filters, matcherOf, openStore, type Place, pagesOf, type Store } from '../move/store.ts';
import { type Side, type Verification, verify } from '../move/verify.ts';
import { configFlags } from './arguments.ts';
import type { OpenStore } from './mcp.ts';
import { type Asked, Mistake, MOVE_USAGES, type MoveCommand, parsed } from './move-arguments.ts';
import { memories, number, showProgress } from './progress.ts';
import { configOf, explainError, report, type Terminal, terminalLog, untilSignal } from './terminal.ts';

/**
 * `omp-gateway export`, `import`, `migrate` and `verify`. Returns the exit status: 0; 1: it failed, was stopped, or something
 * was rejected or differs; 2: wrong arguments.
 */
export async function runMove(
  command: MoveCommand,
  argv: readonly string[],
  terminal: Terminal,
  openLocal: OpenStore,
): Promise<number> {
  const progress = showProgress(terminal.stderr);
  try {
    const asked = parsed(command, argv);
    if (!asked) {
      terminal.stdout.write(MOVE_USAGES[command]);
      return 0;
    }
    const stores = createOpener(asked, terminal, openLocal);
    try {
      return await untilSignal((signal) =>
        COMMANDS[command](asked, { open: stores.open, terminal, signal, progress: progress.show, end: progress.end }),
      );
    } finally {
      await stores.close();
    }
  } catch (error) {
    progress.end();
    if (error instanceof Mistake) report(terminal, `${error.message}\nTry 'omp-gateway ${command} --help'.`);
    else report(terminal, error instanceof ConfigError ? error.message : explainError(error));
    return error instanceof Mistake ? 2 : 1;
  }
}

/** Opens stores by their names, and closes them together. */
function createOpener({ command, values }: Asked, terminal: Terminal, openLocal: OpenStore) {
  const opened: Store[] = [];
  const { OMP_KEY, OMP_FROM_KEY, OMP_TO_KEY } = terminal.env;
  const local = async (name: string): Promise<Store> => {
    const file = name.startsWith('config:') ? name.slice('config:'.length) : undefined;
    const [flags, from] = file === undefined ? [configFlags(values), terminal.env] : [{ config: file }, {}];
    const config = configOf(flags, { ...terminal, env: from });
    const log = terminalLog(terminal);
    const { gate, close } = await openLocal(config, log);
    const { createApp } = await import('../http/app.ts');
    const principal: Principal = { id: 'move', app: `omp-gateway ${command}`, users: null, grants: ALL_GRANTS };
    const app = createApp({
      ...{ gate, log, max_request_bytes: MAX_REQUEST_BYTES, request_timeout_ms: TIMEOUT_MS },
      authenticator: { authenticate: async () => principal },
    });
    const fetch = async (url: string | URL | Request, init?: RequestInit) => app.request(String(url), init, {});
    return openStore(`${name} (${config.provider})`, { url: 'http://store', fetch }, close);
  };
  const remote = (url: string, key: string | undefined) => openStore(url, { url, key: key || undefined });
  return {
    async open(name: string, key: 'from' | 'to'): Promise<Store> {
      const isUrl = /^https?:\/\//.test(name);
      if (!isUrl && name !== 'config' && !name.startsWith('config:')) {
        throw new Mistake(`"${name}" is no store: expected config, config:FILE or the URL of a gateway`);
      }
      const own = key === 'from' ? OMP_FROM_KEY : OMP_TO_KEY;
      const store = isUrl ? await remote(name, own ?? OMP_KEY) : await local(name);
      opened.push(store);
      return store;
    },
    async close() {
      for (const store of opened) await store.close();
    },
  };
}

/** Of the own process, which no other caller reaches. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 600_000;

interface Run {
  open(name: string, key: 'from' | 'to'): Promise<Store>;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  progress(state: { readonly done: number; readonly total?: number }): void;
  /** Ends the line of the progress. */
  end(): void;
}

const COMMANDS: Readonly<Record<MoveCommand, (asked: Asked, run: Run) => Promise<number>>> = {
  export: runExport,
  import: runImport,
  migrate: runMigrate,
  verify: runVerify,
};

const fromOf = ({ values }: Asked): string => (values.from as string | undefined) ?? 'config';
const toOf = ({ values }: Asked): string => (values.to as string | undefined) ?? 'config';
const say = ({ terminal }: Run, line: string) => void terminal.stderr.write(`${line}\n`);

/** Where an interrupted command goes on, beside its file. Counts only for the same question. */
async function savedPlace<State>(path: string, question: unknown, restart: boolean): Promise<State | undefined> {
  if (restart || !existsSync(path)) return undefined;
  const saved = JSON.parse(await readText(path, 'utf8')) as { question: string; state: State };
  if (saved.question === JSON.stringify(question)) return saved.state;
  throw new Error(
    `${path} is of a command with other options, or of the file before it changed; start over with --restart`,
  );
}

const savePlace = (path: string, question: unknown, state: unknown) =>
  replaceFile(path, { question: JSON.stringify(question), state });

async function runExport(asked: Asked, run: Run): Promise<number> {
  const { filters, values } = asked;
  const [path = '-'] = asked.names;
  const question = [fromOf(asked), filters];
  const saved = `${path}.progress`;
  const isStream = path === '-';
  if (!isStream && existsSync(path) && !values.restart) throw new Error(`${path} exists; use --restart to replace it`);
  const state = isStream
    ? undefined
    : await savedPlace<{ place: Place; bytes: number }>(saved, question, values.restart === true);
  const store = await run.open(fromOf(asked), 'from');
  const header: Header = {
    omp_export: FORMAT,
    source: store.capabilities.provider,
    exported_at: new Date().toISOString(),
    embedding: (filters.vectors && store.capabilities.embedding) || null,
    filters: { ...filters },
  };
  const writer = isStream ? streamWriter(process.stdout, header) : await openWriter(path, header, state?.bytes);
  try {
    for await (const { memories: page, next } of pagesOf(store, filters, state?.place)) {
      run.signal.throwIfAborted();
      const bytes = await writer.write(page as readonly object[] as readonly Line[]);
      if (!isStream && next) await savePlace(saved, question, { place: next, bytes });
      run.progress({ done: writer.count });
    }
    const count = await writer.finish();
    await rm(saved, { force: true });
    run.end();
    if (values.json && !isStream) run.terminal.stdout.write(`${JSON.stringify({ memories: count, file: path })}\n`);
    else say(run, `Done: ${memories(count)} of ${store.name} in ${isStream ? 'standard output' : path}.`);
    return 0;
  } catch (error) {
    if (!isStream || (error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
    // The reader of the pipe has ended, such as `head`.
    run.end();
    return 1;
  } finally {
    await writer.close();
  }
}

async function runImport(asked: Asked, run: Run): Promise<number> {
  const { values, filters } = asked;
  const [path = '-'] = asked.names;
  const isStream = path === '-';
  // Standard input can be read only once.
  let known: number | undefined;
  let header: Header | undefined;
  if (!isStream) {
    known = 0;
    for await (const line of linesOf(asked)) {
      if (isHeader(line)) header = line;
      else known++;
    }
  }
  const changed = isStream ? undefined : statSync(path).mtimeMs;
  const question = [path, changed, toOf(asked), filters, asked.onConflict, values.format, values.column];
  const saved = `${path}.progress`;
  const done =
    isStream || values['dry-run'] ? 0 : ((await savedPlace<number>(saved, question, values.restart === true)) ?? 0);
  const store = await run.open(toOf(asked), 'to');
  requireImport(store);
  if (!isStream) say(run, vectorsText(header?.embedding ?? null, store));
  let lines = 0;
  const copy = createCopy(store, {
    ...asked,
    signal: run.signal,
    stored: () => run.progress({ done: lines, ...(known !== undefined && { total: known }) }),
  });
  const matches = matcherOf(filters);
  const flush = async (page: readonly MovedMemory[]) => {
    run.signal.throwIfAborted();
    if (values['dry-run']) return;
    await copy.page(page.filter(matches));
    if (!isStream) await savePlace(saved, question, lines);
  };
  let page: MovedMemory[] = [];
  let found = 0;
  for await (const line of linesOf(asked)) {
    if (isHeader(line)) {
      if (isStream) say(run, vectorsText(line.embedding, store));
      continue;
    }
    lines++;
    if (lines <= done) continue;
    const memory = line as unknown as MovedMemory;
    if (matches(memory)) found++;
    page.push(memory);
    if (page.length < PAGE) continue;
    await flush(page);
    page = [];
  }
  await flush(page);
  if (!isStream && !values['dry-run']) await rm(saved, { force: true });
  run.end();
  const leftOut = lines - done - found;
  if (leftOut > 0) say(run, `The filters leave out ${memories(leftOut)}.`);
  if (values['dry-run']) {
    run.terminal.stdout.write(
      values.json ? `${JSON.stringify({ memories: found })}\n` : `${memories(found)} would be stored.\n`,
    );
    return 0;
  }
  return outcome(copy.counts, asked, run);
}

const PAGE = 500;

const isHeader = (line: Header | Line): line is Header => 'omp_export' in line;

/** The memories of the file in its format, after the header if that has one. */
async function* linesOf({ names: [path = '-'], values, filters }: Asked): AsyncGenerator<Header | Line> {
  const { format } = values;
  if (format === undefined) return yield* readFile(path);
  const input = path === '-' ? process.stdin : createReadStream(path);
  const user_id = filters.users.length === 1 ? filters.users[0] : undefined;
  const created_at = path === '-' ? now() : new Date(statSync(path).mtimeMs).toISOString();
  const columns = Object.fromEntries(((values.column as string[] | undefined) ?? []).map(columnOf));
  if (format === 'mem0') yield* readMem0(input, { user_id, created_at });
  else yield* readCsv(input, { user_id, created_at, columns });
}

/** `FIELD=COLUMN`. */
function columnOf(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new Mistake(`--column ${text}: expected FIELD=COLUMN`);
}

/** A pass begins this much before the one before it did, in milliseconds: clocks differ. */
const MARGIN_MS = 60_000;

async function runMigrate(asked: Asked, run: Run): Promise<number> {
  const { values, filters } = asked;
  if (values.from === undefined || values.to === undefined) throw new Mistake('expected --from and --to');
  const saved = (values.progress as string | undefined) ?? 'omp-migrate.json';
  const question = [values.from, values.to, filters];
  /** `place`: within a pass that began at `started`. `rejected`: the target rejected something of the pass. */
  type State = {
    readonly since?: string | undefined;
    readonly started: string;
    readonly place?: Place;
    rejected?: boolean;
  };
  let state: State = { started: now() };
  const last = await savedPlace<State>(saved, question, values.restart === true);
  if (last) state = last.place ? last : { ...last, ...state };
  const [source, target] = [await run.open(String(values.from), 'from'), await run.open(String(values.to), 'to')];
  requireImport(target);
  say(run, vectorsText(source.capabilities.embedding ?? null, target));
  const all = noCounts();
  let rejected: boolean;
  for (;;) {
    const copy = createCopy(target, {
      ...asked,
      onConflict: 'replace',
      signal: run.signal,
      stored: (counts) => run.progress({ done: total(all) + total(counts) }),
    });
    const { since = filters.since } = state;
    for await (const { memories: page, next } of pagesOf(source, { ...filters, since, vectors: true }, state.place)) {
      await copy.page(page);
      state.rejected ||= copy.counts.rejections > 0;
      if (next) await savePlace(saved, question, { ...state, place: next });
    }
    add(all, copy.counts);
    const isQuiet = state.since !== undefined && copy.counts.stored === 0;
    rejected = state.rejected === true;
    // What was rejected has to come again.
    state = { since: rejected ? state.since : before(state.started), started: now() };
    await savePlace(saved, question, state);
    if (isQuiet || rejected) break;
  }
  run.end();
  if (!values.json) {
    say(
      run,
      rejected
        ? 'The target rejected memories. The next run tries them again, with all others of this pass.'
        : 'Nothing changed in the last pass. If the first store is still written, stop that and run this command once more.',
    );
  }
  const status = outcome(all, asked, run);
  return rejected ? 1 : status;
}

const now = (): string => new Date().toISOString();
const before = (time: string): string => new Date(Date.parse(time) - MARGIN_MS).toISOString();

function add(all: Counts, counts: Counts): void {
  all.stored += counts.stored;
  all.unchanged += counts.unchanged;
  all.skipped += counts.skipped;
  all.rejections += counts.rejections;
  all.rejected.push(...counts.rejected);
}

function requireImport({ name, capabilities }: Store): void {
  if (capabilities.features.import) return;
  throw new Error(`${name} cannot store memories with their ids and times (features.import is not true)`);
}

function vectorsText(from: Header['embedding'], { name, capabilities }: Store): string {
  const to = capabilities.embedding;
  if (!to) return `${name} has no vectors.`;
  const isSame = from?.model === to.model && from.dimensions === to.dimensions;
  return isSame
    ? `The vectors are taken over: both are of "${to.model}" (${to.dimensions} dimensions).`
    : `The vectors are computed anew with "${to.model}" (${to.dimensions} dimensions).`;
}

function outcome(counts: Counts, { values }: Asked, run: Run): number {
  const { stored, unchanged, skipped, rejections, rejected } = counts;
  if (values.json) run.terminal.stdout.write(`${JSON.stringify(counts, null, 2)}\n`);
  else {
    const parts = [
      `${memories(stored)} stored`,
      ...(unchanged > 0 ? [`${number(unchanged)} there already`] : []),
      ...(skipped > 0 ? [`${number(skipped)} skipped, because their ids are stored with other fields`] : []),
    ];
    run.terminal.stdout.write(`${parts.join(', ')}.\n`);
    for (const { id, message } of rejected) report(run.terminal, `rejected ${id}: ${message}`);
    if (rejections > rejected.length) report(run.terminal, `and ${number(rejections - rejected.length)} more`);
  }
  return rejections > 0 ? 1 : 0;
}

async function runVerify(asked: Asked, run: Run): Promise<number> {
  const { names, filters, queries, overlap: least, values } = asked;
  let done = 0;
  const sides: Side[] = [];
  for (const [i, name] of names.entries()) sides.push(await sideOf(name, i === 0 ? 'from' : 'to', filters, run));
  const found = await verify(sides[0] as Side, sides[1] as Side, queries, () => {
    run.signal.throwIfAborted();
    if (++done % PAGE === 0) run.progress({ done });
  });
  run.end();
  const isSame = found.different === 0 && (found.overlap === null || found.overlap >= least);
  run.terminal.stdout.write(
    values.json ? `${JSON.stringify(found, null, 2)}\n` : verificationText(found, names, least),
  );
  return isSame ? 0 : 1;
}

async function sideOf(name: string, key: 'from' | 'to', filters: Filters, run: Run): Promise<Side> {
  const isStore = /^https?:\/\//.test(name) || name === 'config' || name.startsWith('config:');
  if (!isStore) {
    const matches = matcherOf(filters);
    return {
      name,
      store: undefined,
      async *memories() {
        for await (const line of readFile(name)) {
          const memory = line as unknown as MovedMemory;
          if (!isHeader(line) && matches(memory)) yield memory;
        }
      },
    };
  }
  const store = await run.open(name, key);
  return {
    name: store.name,
    store,
    async *memories() {
      for await (const { memories: page } of pagesOf(store, filters)) yield* page;
    },
  };
}

function verificationText(found: Verification, [a = '', b = '']: readonly string[], least: number): string {
  const [x, y] = found.counts;
  const lines = [`${a}: ${memories(x)}. ${b}: ${memories(y)}.`];
  for (const { id, user_id, fields, missing_in } of found.differences) {
    lines.push(`${id} of ${user_id}: ${missing_in ? `missing in ${missing_in}` : `differs in ${fields.join(', ')}`}`);
  }
  if (found.different > found.differences.length) {
    lines.push(`and ${number(found.different - found.differences.length)} more`);
  }
  for (const { user_id, difference } of found.users) {
    lines.push(`user ${user_id}: ${number(Math.abs(difference))} ${difference > 0 ? 'more' : 'fewer'} in ${b}`);
  }
  if (found.overlap !== null) {
    const share = `${(100 * found.overlap).toFixed(1)} %`;
    lines.push(`${share} of the ten best of ${found.queries} queries are the same (at least ${100 * least} %).`);
  }
  lines.push(found.different === 0 ? 'No memory differs.' : `Different: ${memories(found.different)}.`);
  return `${lines.join('\n')}\n`;
}
