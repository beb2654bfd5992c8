import type { Metric } from './options.ts';

type Vector = Float32Array;

const dot = (a: Vector, b: Vector): number => {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += (a[i] as number) * (b[i] as number);
  return sum;
};

const squaredDistance = (a: Vector, b: Vector): number => {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += ((a[i] as number) - (b[i] as number)) ** 2;
  return sum;
};

/** A query vector of zeros, which is allowed, is as near to everything. */
const cosine = (a: Vector, b: Vector): number => dot(a, b) / (Math.sqrt(dot(a, a) * dot(b, b)) || 1);

/** How near two vectors of one length are, computed in 64 bits. */
export const score: Readonly<Record<Metric, (a: Vector, b: Vector) => number>> = {
  cosine,
  dotproduct: dot,
  euclidean: squaredDistance,
};

export const LOWER_IS_BETTER: Readonly<Record<Metric, boolean>> = { cosine: false, dotproduct: false, euclidean: true };
