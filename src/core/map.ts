import type { Call, Memory, Position } from '#contract';
import { openThread } from '#ranking';
import { recordBytes } from '#toolbox';
import type { Projection, Vectors } from './projection.ts';

/** A memory and its place on the plane, both numbers from 0 to 1. */
export interface MapPoint extends Pick<Memory, 'id' | 'scope' | 'created_at'> {
  readonly x: number;
  readonly y: number;
  /** The beginning of the content. */
  readonly text: string;
}

export interface MemoryMap {
  /** Newest first. */
  readonly items: readonly MapPoint[];
  /** Whether there are older memories, which are left out. */
  readonly more: boolean;
  /** Memories that are left out because they have no vector, or one of zeros. */
  readonly without_vector: number;
  readonly among_10: number;
  readonly among_50: number;
}

/** What the caller may read. `page`: the memories after a position; `undefined` is the newest. */
export interface MapSource {
  page(
    after: Position | undefined,
    limit: number,
  ): Promise<{ readonly items: readonly Memory[]; readonly more: boolean }>;
  vectorsOf(ids: readonly string[]): Promise<ReadonlyMap<string, Float32Array>>;
}

const MAX_POINTS = 2_000;
/** Memories of a page, and ids of a request for vectors. */
const PAGE = 500;
/** Bytes of the memories that are read: a page that passes it is the last one. */
const MAX_READ_BYTES = 16 * 1024 * 1024;
/** Products of all vectors with each other, in multiplications: for longer vectors, fewer memories. */
const MAX_PRODUCTS = MAX_POINTS ** 2 * 768;
const TEXT_LENGTH = 200;
const NO_VECTORS: ReadonlyMap<string, Float32Array> = new Map();

const thread = openThread<Vectors, Projection>(
  '#map-worker',
  (cause) => new Error('the thread that draws maps died', { cause }),
);

/** Places the newest memories on a plane, so that those with a like meaning are near each other (Decision 42). */
export async function drawMap({ page, vectorsOf }: MapSource, call: Call): Promise<MemoryMap> {
  const memories: (Omit<MapPoint, 'x' | 'y'> & { readonly vector: Float32Array })[] = [];
  let [readCount, without_vector, bytes, more] = [0, 0, 0, true];
  for (let after: Position | undefined; more && readCount < MAX_POINTS && bytes < MAX_READ_BYTES; ) {
    const { items, ...part } = await page(after, Math.min(PAGE, MAX_POINTS - readCount));
    const vectors = items.length > 0 ? await vectorsOf(items.map(({ id }) => id)) : NO_VECTORS;
    for (const { id, scope, created_at, content } of items) {
      const vector = vectors.get(id);
      if (vector?.some((component) => component !== 0))
        memories.push({ id, scope, created_at, text: beginning(content), vector });
      else without_vector++;
    }
    readCount += items.length;
    bytes += items.reduce((sum, memory) => sum + recordBytes(memory), 0);
    after = items.at(-1);
    more = part.more;
  }
  const size = memories[0]?.vector.length ?? 1;
  const points = memories.slice(0, Math.floor(Math.sqrt(MAX_PRODUCTS / size)));
  const { x, y, among_10, among_50 } = await projectionOf(
    points.map(({ vector }) => vector),
    call,
  );
  const items = points.map(({ vector: _, ...place }, i) => ({ ...place, x: round(x[i]), y: round(y[i]) }));
  return {
    items,
    more: more || points.length < memories.length,
    without_vector,
    among_10: round(among_10),
    among_50: round(among_50),
  };
}

async function projectionOf(vectors: readonly Float32Array[], call: Call): Promise<Projection> {
  const [first] = vectors;
  if (!first || vectors.length === 1)
    return { x: Float64Array.of(0.5), y: Float64Array.of(0.5), among_10: 1, among_50: 1 };
  const components = new Float32Array(vectors.length * first.length);
  for (const [i, vector] of vectors.entries()) components.set(vector, i * first.length);
  return thread.ask({ count: vectors.length, components }, call);
}

const round = (part = 0): number => Math.round(part * 10_000) / 10_000;

/** The first characters of the content, all of them whole. */
const beginning = (content: string): string =>
  content
    .slice(0, TEXT_LENGTH)
    .toWellFormed()
    .replace(/\uFFFD$/u, '');
