import { type Embedder, type Finding, GATEWAY } from '#contract';
import type { Conditions } from '../conditions.ts';
import { notLookedAt, ok, problem, warning } from './findings.ts';
import type { Read } from './reading.ts';

/** Rows that are embedded again. */
const SAMPLE = 10;
/** Models read no more than some first part of a longer text, and services bill by its length. */
const LONGEST = 2_000;
/** Longest wait for their vectors, in milliseconds. */
const EMBED_MS = 30_000;
/** Rounding leaves a cosine above 0.99. A text with something around it, such as metadata, comes between these bounds. */
const SAME = 0.9;
/** Vectors of unrelated models are nearly at right angles. */
const RELATED = 0.5;

/** SQL of texts and their vectors. */
export interface Embedded {
  readonly from: string;
  readonly content: string;
  readonly vector: string;
  readonly where: Conditions;
}

/** Embeds a few stored texts again: whether this embedder made the stored vectors. */
export async function compareVectors(read: Read, embedder: Embedder, embedded: Embedded): Promise<Finding[]> {
  const { from, content, vector, where } = embedded;
  const rows = await read<{ text: string; stored: string }>(
    `select ${content} as text, ${vector}::text as stored from ${from} where ${where} and length(${content}) <= ${LONGEST} limit ${SAMPLE}`,
    where.values,
  );
  if (rows.length === 0) return [];
  let made: readonly Float32Array[];
  try {
    const call = { signal: AbortSignal.timeout(EMBED_MS), requestId: 'doctor', caller: GATEWAY };
    made = await embedder.embed(
      rows.map(({ text }) => text),
      'document',
      call,
    );
  } catch (error) {
    return [notLookedAt('embedding', 'whether the embedder made the stored vectors', error)];
  }
  const cosines = rows.map(({ stored }, place) => cosine(JSON.parse(stored), made[place] as Float32Array));
  const median = cosines.sort((a, b) => a - b)[Math.floor(cosines.length / 2)] as number;
  const found = `${rows.length} stored texts embedded again have a median cosine of ${median.toFixed(2)} with their stored vectors`;
  if (median >= SAME) return [ok('embedding', `"${embedder.model}" made the stored vectors: ${found}`)];
  if (median >= RELATED) {
    const message = `${found}: what was embedded is not quite the text (a title or metadata may be around it), or a related model made it`;
    return [warning('embedding', message)];
  }
  return [
    problem(
      'embedding',
      `"${embedder.model}" did not make the stored vectors: ${found}; set OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS and OPENAI_BASE_URL to what made them`,
    ),
  ];
}

/** 0 for a vector without direction. */
function cosine(a: readonly number[], b: Float32Array): number {
  const [ab, aa, bb] = a.reduce(
    ([x, y, z], value, i) => [x + value * (b[i] ?? 0), y + value * value, z + (b[i] ?? 0) ** 2],
    [0, 0, 0] as [number, number, number],
  );
  return aa === 0 || bb === 0 ? 0 : ab / Math.sqrt(aa * bb);
}
