/** Vectors of one length, one after another. */
export interface Vectors {
  readonly count: number;
  readonly components: Float32Array;
}

export interface Projection {
  /** The coordinates of each vector, in order; from 0 to 1. */
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** Means over all vectors: the share of the 10 nearest by cosine that are among the 10, and the 50, nearest on the plane. */
  readonly among_10: number;
  readonly among_50: number;
}

const NEIGHBOURS = 10;
const EPOCHS = 200;
/** Pairs that repel for each pair that attracts. */
const REPELLING = 5;
/** The longest move of one step, on a plane about 20 wide. */
const MAX_STEP = 4;

/**
 * Places vectors on a plane (Decision 42): on their two principal components, then moved as UMAP does, so that each comes near
 * its neighbours by cosine. The same vectors always get the same places. Takes a second or two for 2,000 vectors of 512
 * components: for a thread.
 */
export function project(vectors: Vectors): Projection {
  const units = toUnits(vectors);
  const near = nearest(units);
  const [x, y] = principal(units);
  attract(near, x, y);
  intoUnitSquare(x, y);
  return { x, y, ...preservationOf(near, x, y) };
}

function toUnits({ count, components }: Vectors): Vectors {
  const size = components.length / count;
  const units = new Float32Array(components.length);
  for (let at = 0; at < components.length; at += size) {
    const length = lengthOf(components.subarray(at, at + size)) || 1;
    for (let i = at; i < at + size; i++) units[i] = (components[i] as number) / length;
  }
  return { count, components: units };
}

const lengthOf = (vector: Float32Array | Float64Array): number => {
  let squares = 0;
  for (const component of vector) squares += component * component;
  return Math.sqrt(squares);
};

/** Returns for each vector the indexes of its nearest by cosine, nearest first. */
function nearest({ count, components }: Vectors): Int32Array[] {
  const size = components.length / count;
  const neighbours = Math.min(NEIGHBOURS, count - 1);
  const near = Array.from({ length: count }, () => new Int32Array(neighbours));
  const cosines = Array.from({ length: count }, () => new Float64Array(neighbours).fill(-2));
  const insert = (from: number, to: number, cosine: number) => {
    const [mine, places] = [cosines[from] as Float64Array, near[from] as Int32Array];
    if (!(cosine > (mine[neighbours - 1] as number))) return;
    let at = neighbours - 1;
    for (; at > 0 && (mine[at - 1] as number) < cosine; at--) {
      mine[at] = mine[at - 1] as number;
      places[at] = places[at - 1] as number;
    }
    mine[at] = cosine;
    places[at] = to;
  };
  for (let one = 0; one < count; one++) {
    for (let other = one + 1; other < count; other++) {
      let cosine = 0;
      for (let i = one * size, j = other * size, end = i + size; i < end; i++, j++)
        cosine += (components[i] as number) * (components[j] as number);
      insert(one, other, cosine);
      insert(other, one, cosine);
    }
  }
  return near;
}

/** The positions on the first two principal components, on a plane 20 wide. Power iteration, without the covariance matrix. */
function principal({ count, components }: Vectors): [Float64Array, Float64Array] {
  const size = components.length / count;
  const offsets = Float64Array.from(components);
  for (let i = 0; i < size; i++) {
    let sum = 0;
    for (let at = i; at < offsets.length; at += size) sum += offsets[at] as number;
    for (let at = i; at < offsets.length; at += size) offsets[at] = (offsets[at] as number) - sum / count;
  }
  const along = (axis: Float64Array) =>
    Float64Array.from({ length: count }, (_, one) => {
      let sum = 0;
      for (let i = 0; i < size; i++) sum += (axis[i] as number) * (offsets[one * size + i] as number);
      return sum;
    });
  const axes: Float64Array[] = [];
  while (axes.length < 2) {
    let axis = Float64Array.from({ length: size }, (_, i) => Math.sin(i + 1 + axes.length));
    for (let turn = 0; turn < 15; turn++) {
      const next = new Float64Array(size);
      for (const [one, part] of along(axis).entries())
        for (let i = 0; i < size; i++) next[i] = (next[i] as number) + part * (offsets[one * size + i] as number);
      for (const other of axes) {
        const overlap = next.reduce((sum, component, i) => sum + component * (other[i] as number), 0);
        for (let i = 0; i < size; i++) next[i] = (next[i] as number) - overlap * (other[i] as number);
      }
      const length = lengthOf(next) || 1;
      axis = next.map((component) => component / length);
    }
    // Both directions of an axis are as good: the largest component decides.
    const largest = axis.reduce((most, component) => (Math.abs(component) > Math.abs(most) ? component : most), 0);
    axes.push(largest < 0 ? axis.map((component) => -component) : axis);
  }
  const [x, y] = axes.map(along) as [Float64Array, Float64Array];
  const widest = [...x, ...y].reduce((most, part) => Math.max(most, Math.abs(part)), 0) || 1;
  return [x.map((part) => (10 * part) / widest), y.map((part) => (10 * part) / widest)];
}

/** Neighbours attract each other, others repel, in ever smaller steps. */
function attract(near: readonly Int32Array[], x: Float64Array, y: Float64Array): void {
  const random = generator();
  // Equal vectors start in one place, where no force has a direction.
  for (let one = 0; one < x.length; one++) x[one] = (x[one] as number) + 1e-3 * random();
  const pairs = near.flatMap((others, one) =>
    [...others].filter((other) => one < other || !near[other]?.includes(one)).map((other) => [one, other] as const),
  );
  const move = (one: number, other: number, attracts: boolean, rate: number) => {
    const dx = (x[one] as number) - (x[other] as number);
    const dy = (y[one] as number) - (y[other] as number);
    const square = dx * dx + dy * dy;
    const force = attracts ? -2 / (1 + square) : 2 / ((1e-3 + square) * (1 + square));
    const right = rate * Math.max(-MAX_STEP, Math.min(MAX_STEP, force * dx));
    const up = rate * Math.max(-MAX_STEP, Math.min(MAX_STEP, force * dy));
    x[one] = (x[one] as number) + right;
    y[one] = (y[one] as number) + up;
    if (!attracts) return;
    x[other] = (x[other] as number) - right;
    y[other] = (y[other] as number) - up;
  };
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    const rate = 1 - epoch / EPOCHS;
    for (const [one, other] of pairs) {
      move(one, other, true, rate);
      for (let n = 0; n < REPELLING; n++) {
        const point = n % 2 === 0 ? one : other;
        move(point, Math.floor(random() * x.length), false, rate);
      }
    }
  }
}

/** Scales both axes alike, and moves the middle of the points to the middle of the square. */
function intoUnitSquare(...axes: readonly Float64Array[]): void {
  const ranges = axes.map((axis) => [axis.reduce((a, b) => Math.min(a, b)), axis.reduce((a, b) => Math.max(a, b))]);
  const widest = Math.max(...ranges.map(([least = 0, most = 0]) => most - least)) || 1;
  for (const [n, axis] of axes.entries()) {
    const [least = 0, most = 0] = ranges[n] ?? [];
    for (const [i, part] of axis.entries()) axis[i] = (part - (least + most) / 2) / widest + 0.5;
  }
}

function preservationOf(near: readonly Int32Array[], x: Float64Array, y: Float64Array) {
  const squares = new Float64Array(x.length);
  const sums = [0, 0];
  for (const [one, others] of near.entries()) {
    for (let to = 0; to < x.length; to++)
      squares[to] = ((x[one] as number) - (x[to] as number)) ** 2 + ((y[one] as number) - (y[to] as number)) ** 2;
    // The nearest is the place itself.
    const distances = squares.slice().sort();
    for (const [n, most] of [10, 50].entries()) {
      const reach = distances[Math.min(most, x.length - 1)] as number;
      const share = others.reduce((count, to) => count + ((squares[to] as number) <= reach ? 1 : 0), 0);
      sums[n] = (sums[n] as number) + share / (others.length || 1);
    }
  }
  const [among_10, among_50] = sums.map((sum) => sum / near.length) as [number, number];
  return { among_10, among_50 };
}

/** Numbers from 0 to 1, always the same ones (mulberry32). */
function generator(): () => number {
  let state = 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 4_294_967_296;
  };
}
