/** The service answered, but not what the embeddings API promises. The message holds nothing of the answer. */
export class BadAnswer extends Error {}

/**
 * The vectors of an embeddings answer in the order of the inputs. Each comes as base64 of little-endian 32-bit floats,
 * as asked for, or as an array of numbers from services that ignore the question.
 * Throws `BadAnswer` when they are not `count` vectors of one length, of finite numbers that are not all 0,
 * each for another input.
 */
export function readVectors(answer: unknown, count: number): Float32Array[] {
  const entries = property(answer, 'data');
  if (!Array.isArray(entries)) throw new BadAnswer('the answer holds no list of embeddings');
  if (entries.length !== count) throw new BadAnswer(`${entries.length} embeddings for ${count} texts`);
  const vectors: Float32Array[] = [];
  entries.forEach((entry: unknown, i) => {
    vectors[position(entry, i, count)] = readVector(property(entry, 'embedding'));
  });
  const dimensions = vectors[0]?.length ?? 0;
  for (let i = 0; i < count; i++) {
    if (vectors[i]?.length !== dimensions) throw new BadAnswer('embeddings missing or of different lengths');
  }
  return vectors;
}

const property = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;

/** Services may answer out of order; those that give no `index` answer in order. */
function position(entry: unknown, place: number, count: number): number {
  const index = property(entry, 'index') ?? place;
  if (Number.isInteger(index) && (index as number) >= 0 && (index as number) < count) return index as number;
  throw new BadAnswer('an embedding for a text that was not sent');
}

function readVector(embedding: unknown): Float32Array {
  const vector = typeof embedding === 'string' ? fromBase64(embedding) : fromNumbers(embedding);
  if (vector.length === 0) throw new BadAnswer('an embedding without numbers');
  if (!vector.every(Number.isFinite)) throw new BadAnswer('an embedding with infinite or missing numbers');
  // It is near to nothing: what was remembered would never be found by its meaning.
  if (vector.every((value) => value === 0)) throw new BadAnswer('an embedding of nothing but zeros');
  return vector;
}

function fromBase64(text: string): Float32Array {
  const bytes = new Uint8Array(Buffer.from(text, 'base64'));
  if (bytes.length % Float32Array.BYTES_PER_ELEMENT !== 0) throw new BadAnswer('an embedding cut short');
  return new Float32Array(bytes.buffer);
}

function fromNumbers(embedding: unknown): Float32Array {
  if (!Array.isArray(embedding)) throw new BadAnswer('an entry without an embedding');
  if (!embedding.every((value) => typeof value === 'number')) throw new BadAnswer('an embedding of something else');
  return Float32Array.from(embedding);
}
