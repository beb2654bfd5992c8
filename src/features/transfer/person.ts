import { z } from 'zod';
import {
  type AuditQuery,
  type Call,
  type ExportPart,
  type ListQuery,
  type Memory,
  type MemoryVersion,
  OmpError,
} from '#contract';
import type { Access } from '../../core/access.ts';
import { SMALL_BYTES } from '../../core/read-shares.ts';
import type { StorePart, StoreReads } from '../../core/store.ts';
import { alone, partsIn } from '../../stores/mount-stores.ts';
import { inTime } from '../../stores/optional.ts';
import { entryToWire } from '../../verbs/audit.ts';
import { userId } from '../../verbs/fields.ts';
import { type FileAnswer, verb } from '../../verbs/verb.ts';
import { toWire } from '../../verbs/wire-memory.ts';
import { requireExported } from './export.ts';

/*
 * The export of a user as a file that a person can read, with all that is stored besides memories (Decision 61).
 */

/** The version of the lines. */
const FORMAT = 1;

const NOTE = `All that this gateway stores of one user. Each line is a JSON object, and type says what it is. \
memory: a text that is remembered, with its fields; x-omp-origin says who wrote it last. version: what a memory said before a change. \
audit: who asked for what, and when. missing: what could not be read, and why. not_kept: what this gateway does not store. \
Times are UTC. The last line has the type end; without it the file was cut off.`;

/** Read at a time. With `SMALL_BYTES` a page takes no share of the caller: a file may be taken slowly, beside other reads. */
const MEMORIES = 500;
const VERSIONS = 100;
const ENTRIES = 400;

const LINES = ['person', 'memory', 'version', 'audit', 'missing', 'not_kept', 'end'] as const;

interface Line {
  readonly type: (typeof LINES)[number];
  readonly [field: string]: unknown;
}

export const personFile = verb({
  name: 'person_file',
  method: 'GET',
  path: '/users/{id}/file',
  input: z.object({ id: userId.meta({ description: 'Id of the user.' }) }),
  needs: [],
  suits: canRead,
  feature: 'person_file',
  demands: { read: 'all', users: { in: 'id' } },
  facts: ({ id }, access) => access.facts({ user_id: id }),
  async run({ id }, access, call): Promise<FileAnswer> {
    const file = new PersonFile(access, id, call);
    return { name: `person-${id.replace(/[^\w.@-]+/g, '_').slice(0, 100)}.jsonl`, pages: await begun(file.pages()) };
  },
  id: 'getPersonFile',
  summary: 'Read all that is stored of a user, as one file',
  description: `One JSON object a line: memories, their versions and audit entries of every store, oldest and newest alike, and what could
not be read. The last line has the type \`end\`; without it the file was cut off. Available if
\`features.person_file\` is true.`,
  success: {
    description: 'The file, sent while it is read.',
    schema: z.string().meta({ description: `Lines of these types: ${LINES.join(', ')}.` }),
    file: true,
  },
});

/** Reads the first page: an error before it is the answer. */
async function begun<Page>(pages: AsyncGenerator<Page>): Promise<AsyncGenerator<Page>> {
  const first = await pages.next();
  return (async function* () {
    if (!first.done) yield first.value;
    yield* pages;
  })();
}

function canRead({ export: exportPart, list }: Pick<StoreReads, 'export' | 'list'>): boolean {
  return exportPart !== undefined || list !== undefined;
}

/**
 * Reads a page of a user's memories, after the one before. The export of a mapped store may lack memories that its list has: of several with
 * one key, and what was added a moment ago. Where it does not, it is the one that goes on from page to page without a sort.
 */
function exportOf(
  { capabilities, list, versions, export: exportPart }: StoreReads,
  user_id: string,
): ((after: string | undefined, call: Call) => Promise<ExportPart>) | undefined {
  const page = { limit: MEMORIES, max_bytes: SMALL_BYTES };
  if (exportPart && !(capabilities.mapped && !capabilities.complete_export && list)) {
    const query = { user_id, vectors: false, versions: versions !== undefined, ...page };
    return (after, call) => exportPart({ ...query, after }, call);
  }
  let place: ListQuery['after'];
  return (
    list &&
    (async (_, call) => {
      const memories = await list({ user_id, tags: [], within: null, ...page, after: place }, call);
      const last = memories.at(-1);
      // Nothing else of the memory is in the query.
      place = last && { created_at: last.created_at, id: last.id };
      return { items: memories.map((memory) => ({ memory, vector: null })), next: last?.id };
    })
  );
}

const NO_VERSIONS = 'it keeps none (OMP_VERSIONS); those of a time when it kept them are not read';
const NO_AUDIT = 'auditing is off (OMP_AUDIT); entries of a time when it was on are not read';

/** What a person reads first comes first. What is not set is left out. */
function lineOf(type: 'memory' | 'version', memory: Memory, { name }: StorePart, version: number | undefined): Line {
  const { id, user_id: _, embedding_model, status, ...rest } = toWire(memory);
  const isSet = ([name, value]: [string, unknown]) =>
    name.startsWith('x-') || (value !== null && !(Array.isArray(value) && value.length === 0));
  const fields = Object.entries({ ...rest, id, version, embedding_model, status }).filter(isSet);
  return { type, ...Object.fromEntries(fields), store: name };
}

const versionLines = (part: StorePart, versions: readonly MemoryVersion[]): Line[] =>
  versions.map(({ version, memory }) => lineOf('version', memory, part, version));

class PersonFile {
  readonly #access: Access;
  readonly #user: string;
  readonly #call: Call;
  /** The time that each read has: that of a request. */
  readonly #ms: number | undefined;
  /** The lines so far, by their types. */
  readonly #counts: Partial<Record<Line['type'], number>> = {};
  /** What goes before the next page. */
  #pending: Line[];
  #begun = false;
  #complete = true;

  constructor(access: Access, user: string, call: Call) {
    this.#access = access;
    this.#user = user;
    this.#call = call;
    this.#ms = call.deadline === undefined ? undefined : call.deadline - performance.now();
    const mounted = access.store.mounts?.stores ?? [];
    this.#pending = [
      {
        type: 'person',
        user_id: user,
        made_at: new Date().toISOString(),
        format: FORMAT,
        stores: [
          { name: access.store.name },
          ...mounted.map(({ name, mount }) => ({ name, holds: `${mount} and below` })),
        ],
        note: NOTE,
      },
    ];
  }

  async *pages(): AsyncGenerator<readonly Line[]> {
    for await (const lines of this.#stores()) {
      for (const { type } of lines) this.#counts[type] = (this.#counts[type] ?? 0) + 1;
      yield lines;
    }
    if (this.#call.aborted) return;
    const { memory: memories = 0, version: versions = 0, audit: audit_entries = 0 } = this.#counts;
    const complete = this.#complete;
    yield this.#page([{ type: 'end', memories, versions, audit_entries, complete }]);
  }

  /** Throws what nobody foresaw, and any error before the first page. */
  async *#stores(): AsyncGenerator<readonly Line[]> {
    const { mounts } = this.#access.store;
    for (const part of partsIn(this.#access.store)) {
      // What the root store has where another is mounted is hidden from everybody else.
      const store = part === mounts?.parts[0] ? mounts.root : part.store;
      yield* this.#named(`memories of the store ${part.name}`, () => this.#memories(part, store));
      if (!store.versions) this.#notKept(`older versions of the store ${part.name}`, NO_VERSIONS);
    }
    yield* this.#named('audit entries', () => this.#entries());
  }

  /** The pages of one thing. If it cannot be read to its end, the file says so and goes on. */
  async *#named(what: string, read: () => AsyncGenerator<readonly Line[]>): AsyncGenerator<readonly Line[]> {
    if (this.#call.aborted) return;
    let lines = 0;
    try {
      for await (const page of read()) {
        lines += page.length;
        yield this.#page(page);
      }
    } catch (error) {
      if (this.#call.aborted) return;
      if (!this.#begun || !(error instanceof OmpError)) throw error;
      const { requestId: request_id } = this.#call;
      this.#access.log.warn({ request_id, provider: error.provider, err: error }, 'a file of a person is incomplete');
      this.#missing(lines === 0 ? what : `the rest of the ${what}`, error.message);
    }
  }

  #page(lines: readonly Line[]): readonly Line[] {
    const all = [...this.#pending, ...lines];
    this.#pending = [];
    this.#begun = true;
    return all;
  }

  #missing(what: string, why: string): void {
    this.#complete = false;
    this.#pending.push({ type: 'missing', what, why });
  }

  #notKept(what: string, why: string): void {
    this.#pending.push({ type: 'not_kept', what, why });
  }

  /** One read of a store, with the deadline of a request, which begins when its turn comes. */
  #read<Result>(part: StorePart, work: (call: Call) => Promise<Result>): Promise<Result> {
    const ask = async (call: Call): Promise<Result> => {
      let failure: OmpError | undefined;
      // The file names an optional store that fails, not its header.
      call.leaveOut = (_name, _store, reason) => {
        failure = reason;
      };
      const found = await part.ask(call, work);
      if (!found) throw failure;
      return found.result;
    };
    return this.#access.shares.part(part.name, this.#call, () => inTime(part.name, this.#ms, this.#call, ask));
  }

  async *#memories(part: StorePart, store: StoreReads): AsyncGenerator<readonly Line[]> {
    const readPage = exportOf(store, this.#user);
    if (!readPage) return this.#missing(`memories of the store ${part.name}`, 'it cannot list them');
    for (let after: string | undefined; ; ) {
      const { items, next } = await this.#read(part, (call) => readPage(after, call));
      requireExported(items, this.#access, this.#user);
      let lines: Line[] = [];
      for (const { memory, version, versions, versions_left_out } of items) {
        lines.push(lineOf('memory', memory, part, version), ...versionLines(part, versions ?? []));
        if (!store.versions || (versions && !versions_left_out)) continue;
        yield lines;
        lines = [];
        const last = versions?.at(-1)?.version;
        yield* this.#named(`older versions of ${memory.id}`, () => this.#older(part, store, memory, last));
      }
      yield lines;
      if (next === undefined) return;
      after = next;
    }
  }

  async *#older(
    part: StorePart,
    { versions }: StoreReads,
    memory: Memory,
    last: number | undefined,
  ): AsyncGenerator<readonly Line[]> {
    const ref = { id: memory.id, users: [this.#user], within: null };
    for (let before = last; ; ) {
      const query = { ref, before, limit: VERSIONS, max_bytes: SMALL_BYTES };
      const found = (await this.#read(part, async (call) => versions?.list(query, call)))?.versions ?? [];
      if (found.length === 0) return;
      requireExported([{ memory, vector: null, versions: found }], this.#access, this.#user);
      yield versionLines(part, found);
      before = found.at(-1)?.version;
    }
  }

  async *#entries(): AsyncGenerator<readonly Line[]> {
    const { auditQueue, store } = this.#access;
    const { read } = auditQueue;
    if (!read) return this.#notKept('audit entries', NO_AUDIT);
    const query = { user_id: this.#user, within: null, limit: ENTRIES };
    const log = alone(store);
    for (let after: Pick<AuditQuery, 'after'> = {}; ; ) {
      const entries = await this.#read(log, (call) => read({ ...query, ...after }, call));
      yield entries.map((entry) => ({ type: 'audit', ...entryToWire(this.#access.readable(entry, this.#user)) }));
      const last = entries.at(-1);
      if (!last) return;
      after = { after: { timestamp: last.timestamp, seq: last.seq } };
    }
  }
}
