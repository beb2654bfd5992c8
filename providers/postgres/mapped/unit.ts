/**
 * Of length 1, as the models make them. An embedder's vectors may be a thousandth short of that, which distances and
 * inner products show. The zero vector stays zero.
 */
export function toUnit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, component) => sum + component * component, 0));
  return length === 0 ? vector : vector.map((component) => component / length);
}
