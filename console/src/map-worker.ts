import { UMAP } from 'umap-js';

/*
 * Vectors on a plane (Decision 42), in a thread of its own: many take seconds. The page sends the vectors of an export, and gets
 * the place of each, both numbers from 0 to 1.
 */

/** More rounds keep hardly more of the nearness (Decision 42). */
const OPTIONS = { nNeighbors: 10, nEpochs: 200 };

export interface Point {
  readonly x: number;
  readonly y: number;
}

addEventListener('message', ({ data }: MessageEvent<readonly string[]>) => postMessage(pointsOf(data.map(toUnit))));

function pointsOf(vectors: number[][]): Point[] {
  const nNeighbors = Math.min(OPTIONS.nNeighbors, vectors.length - 1);
  // The same vectors get the same places.
  let state = 1;
  const random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const places =
    nNeighbors < 2 ? vectors.map((_, n) => [n, 0]) : new UMAP({ ...OPTIONS, nNeighbors, random }).fit(vectors);
  const [middle, widest] = frameOf(places);
  return places.map((place) => {
    const [x = 0, y = 0] = place.map((part, axis) => (part - (middle[axis] ?? 0)) / widest + 0.5);
    return { x, y };
  });
}

/** The middle of the places, and the longer side of the rectangle around them. */
function frameOf(places: readonly number[][]): [number[], number] {
  const axes = [0, 1].map((axis) => places.map((place) => place[axis] ?? 0));
  const ends = axes.map((parts) => [Math.min(...parts), Math.max(...parts)] as const);
  return [ends.map(([least, most]) => (least + most) / 2), Math.max(...ends.map(([least, most]) => most - least)) || 1];
}

/** Of length 1, so that the nearest are the nearest by cosine. The text is base64 of little-endian float32. */
function toUnit(text: string): number[] {
  const view = new DataView(Uint8Array.from(atob(text), (char) => char.charCodeAt(0)).buffer);
  const vector = Array.from({ length: view.byteLength / 4 }, (_, i) => view.getFloat32(4 * i, true));
  const length = Math.hypot(...vector);
  return vector.map((component) => component / length);
}
