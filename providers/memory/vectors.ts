/** A growing matrix of one user's vectors. Rows are slots; slots of deleted records are reused. */
export interface Vectors {
  set(slot: number, vector: Float32Array): void;
  get(slot: number): Float32Array;
  /** Cosine of every slot up to `slots` with the query, 0 where either is the zero vector. */
  cosines(query: Float32Array, slots: number): Float64Array;
}

const FIRST_ROWS = 16;

export function createVectors(dimensions: number): Vectors {
  let rows = new Float32Array(FIRST_ROWS * dimensions);
  let norms = new Float64Array(FIRST_ROWS);

  const grow = () => {
    const wider = new Float32Array(rows.length * 2);
    wider.set(rows);
    rows = wider;
    const longer = new Float64Array(norms.length * 2);
    longer.set(norms);
    norms = longer;
  };

  return {
    set(slot, vector) {
      while (slot >= norms.length) grow();
      rows.set(vector, slot * dimensions);
      norms[slot] = norm(vector);
    },
    get: (slot) => rows.slice(slot * dimensions, (slot + 1) * dimensions),
    cosines(query, slots) {
      const result = new Float64Array(slots);
      const queryNorm = norm(query);
      for (let slot = 0; slot < slots; slot++) {
        let dot = 0;
        const offset = slot * dimensions;
        for (let i = 0; i < dimensions; i++) dot += (rows[offset + i] as number) * (query[i] as number);
        const length = (norms[slot] as number) * queryNorm;
        result[slot] = length > 0 ? dot / length : 0;
      }
      return result;
    },
  };
}

function norm(vector: Float32Array): number {
  let squares = 0;
  for (const component of vector) squares += component * component;
  return Math.sqrt(squares);
}
