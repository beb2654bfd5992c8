import { createHash } from 'node:crypto';
import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import type { GatewayStore } from './store.ts';

/** Memories by id; the two sides are read in any order, so that neither has to sort. */
export interface Side {
  readonly name: string;
  /** Undefined: it cannot be searched. */
  readonly store: GatewayStore | undefined;
  memories(): AsyncIterable<ExportedMemory>;
}

export interface Difference {
  readonly id: string;
  readonly user_id: string;
  /** Fields that differ; empty: only one side has it, or one has it more than once. */
  readonly fields: readonly string[];
  readonly missing_in?: string;
  readonly repeated_in?: string;
}

export interface Comparison {
  /** Memories of each side. */
  readonly counts: readonly [number, number];
  /** Of all memories of each side, whatever their order: the same exactly if these are the same. */
  readonly hashes: readonly [string, string];
  /** How many memories of a user the second side has more, where the numbers differ. */
  readonly users: readonly { readonly user_id: string; readonly difference: number }[];
  /** All that differ, and the first of them. */
  readonly different: number;
  readonly differences: readonly Difference[];
}

/** The ten best of one query on both sides. Without its text, which is the beginning of a memory's content. */
export interface QueryResult {
  readonly user_id: string;
  readonly memory_id: string;
  readonly a: readonly string[];
  readonly b: readonly string[];
}

export interface Verification extends Comparison {
  /** Mean share of the same ids among the ten best of the sampled queries, 0 to 1; null: a side cannot be searched. */
  readonly overlap: number | null;
  readonly queries: number;
}

interface CompareOptions {
  /** Memories of the first side to take as a sample. */
  readonly sampled?: number;
  /** Differences to name. Default: 100. */
  readonly most?: number;
  progress?(): void;
}

/** Both sides are compared in so many parts, and only what falls into a part that differs is kept in memory. */
const PARTS = 1 << 16;
const MAX_NAMED = 100;
const BEST = 10;
const QUERY_CHARACTERS = 100;

/** Compares two stores or files, also by the ten best memories of so many queries. */
export async function verify(a: Side, b: Side, queries: number, progress: () => void): Promise<Verification> {
  const { sample, ...comparison } = await compare(a, b, { sampled: queries, progress });
  const { overlap, results } = await compareQueries(a, b, sample);
  return { ...comparison, overlap, queries: results.length };
}

/**
 * Compares all fields of all memories, but for those that belong to a store: status and model of the vector, the origin, and versions.
 * Takes two walks over each side if anything differs. Memory is bounded by what differs, not by the stores.
 */
export async function compare(
  a: Side,
  b: Side,
  { sampled = 0, most = MAX_NAMED, progress = () => {} }: CompareOptions = {},
): Promise<Comparison & { readonly sample: readonly ExportedMemory[] }> {
  const sums = [new Uint32Array(PARTS * 4), new Uint32Array(PARTS * 4)] as const;
  const counts: [number, number] = [0, 0];
  const sample = createSample(sampled);
  for (const [side, { memories }] of [a, b].entries()) {
    const sum = sums[side] as Uint32Array;
    for await (const memory of memories()) {
      const digest = createHash('sha256').update(canonical(memory)).digest();
      const at = partOf(memory.id) * 4;
      // A sum, not an exclusive or: a memory that comes twice must count.
      for (let i = 0; i < 4; i++) sum[at + i] = (sum[at + i] as number) + digest.readUInt32LE(i * 4);
      counts[side as 0 | 1]++;
      if (side === 0) sample.add(digest.toString('hex'), memory);
      progress();
    }
  }
  const differs = (part: number) => [0, 1, 2, 3].some((i) => sums[0][part * 4 + i] !== sums[1][part * 4 + i]);
  const differences = Array.from({ length: PARTS }, (_, part) => part).some(differs)
    ? await differencesIn(a, b, differs, most)
    : { different: 0, differences: [], users: [] };
  const hashOf = (sum: Uint32Array) => createHash('sha256').update(sum).digest('hex');
  return { counts, hashes: [hashOf(sums[0]), hashOf(sums[1])], ...differences, sample: sample.memories() };
}

/** The same for the same fields, whatever their order. */
function canonical(value: unknown): string {
  return JSON.stringify(comparable(value), (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([x], [y]) => (x < y ? -1 : 1)))
      : inner,
  );
}

/** Absent, null and an empty list are the same. */
const comparable = (memory: unknown): Record<string, unknown> => {
  const {
    embedding_model,
    status,
    vector,
    version,
    versions,
    'x-omp-origin': origin,
    ...fields
  } = memory as ExportedMemory & Record<string, unknown>;
  const updated_at = fields.updated_at ?? fields.created_at;
  const entries = Object.entries({ ...fields, updated_at }).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(entries);
};

const partOf = (id: string): number => createHash('sha256').update(id).digest().readUInt16LE(0);

/** Those with the smallest digests, which are the same ones in every run. */
function createSample(most: number) {
  let sample: (readonly [digest: string, memory: ExportedMemory])[] = [];
  const smallest = () => sample.sort(([x], [y]) => (x < y ? -1 : 1)).slice(0, most);
  return {
    add(digest: string, memory: ExportedMemory) {
      sample.push([digest, memory]);
      if (sample.length > 2 * most) sample = smallest();
    },
    memories: () => smallest().map(([, memory]) => memory),
  };
}

async function differencesIn(a: Side, b: Side, differs: (part: number) => boolean, most: number) {
  const first = new Map<string, { readonly text: string; readonly user_id: string }>();
  const users = new Map<string, number>();
  const all: Difference[] = [];
  let different = 0;
  const note = (difference: Difference) => {
    different++;
    if (all.length < most) all.push(difference);
  };
  const count = (user_id: string, step: 1 | -1) => users.set(user_id, (users.get(user_id) ?? 0) + step);
  for await (const memory of a.memories()) {
    if (!differs(partOf(memory.id))) continue;
    const { id, user_id } = memory;
    count(user_id, -1);
    if (first.has(id)) note({ id, user_id, fields: [], repeated_in: a.name });
    else first.set(id, { text: canonical(memory), user_id });
  }
  const second = new Set<string>();
  for await (const memory of b.memories()) {
    if (!differs(partOf(memory.id))) continue;
    const { id, user_id } = memory;
    count(user_id, 1);
    const other = first.get(id);
    const isRepeated = second.has(id);
    second.add(id);
    if (isRepeated) note({ id, user_id, fields: [], repeated_in: b.name });
    else if (!other) note({ id, user_id, fields: [], missing_in: a.name });
    else if (other.text !== canonical(memory))
      note({ id, user_id, fields: fieldsThatDiffer(other.text, canonical(memory)) });
  }
  for (const [id, { user_id }] of first) if (!second.has(id)) note({ id, user_id, fields: [], missing_in: b.name });
  const unequal = [...users].filter(([, difference]) => difference !== 0);
  return { different, differences: all, users: unequal.map(([user_id, difference]) => ({ user_id, difference })) };
}

function fieldsThatDiffer(a: string, b: string): string[] {
  const [x, y] = [a, b].map((text) => JSON.parse(text) as Record<string, unknown>) as [object, object];
  const [left, right] = [new Map(Object.entries(x)), new Map(Object.entries(y))];
  return [...new Set([...left.keys(), ...right.keys()])].filter(
    (field) => JSON.stringify(left.get(field)) !== JSON.stringify(right.get(field)),
  );
}

/** Searches for the beginnings of these memories on both sides. */
export async function compareQueries(
  a: Side,
  b: Side,
  samples: readonly ExportedMemory[],
): Promise<{ readonly overlap: number | null; readonly results: readonly QueryResult[] }> {
  const stores = [a.store, b.store].filter((store) => store?.capabilities.verbs.includes('search')) as GatewayStore[];
  if (stores.length < 2 || samples.length === 0) return { overlap: null, results: [] };
  let shared = 0;
  const results: QueryResult[] = [];
  for (const { id, user_id, content } of samples) {
    const query = { user_id, q: content.slice(0, QUERY_CHARACTERS), limit: BEST };
    const [left = [], right = []] = await Promise.all(
      stores.map(async ({ client }) => (await client.memories.search(query)).results.map((one) => one.memory.id)),
    );
    const found = new Set(right);
    const most = Math.max(left.length, right.length);
    // Two that find nothing agree.
    shared += most === 0 ? 1 : left.filter((one) => found.has(one)).length / most;
    results.push({ user_id, memory_id: id, a: left, b: right });
  }
  return { overlap: shared / samples.length, results };
}
