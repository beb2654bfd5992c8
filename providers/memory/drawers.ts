/** Things that are kept for a time, laid into drawers by their moment: what is past it goes a drawer at once, unseen. */
export interface Drawers<Drawer> {
  /** The drawer for what belongs to this moment, in milliseconds since 1970. */
  at(time: number): Drawer;
  newestFirst(): Drawer[];
}

/** How many drawers a lifetime is divided into: things are held on to for that much of it too long at most. */
const PARTS = 24;

/**
 * `lifetime` in milliseconds; infinite: one drawer that is never emptied. What is more than `ahead` of the clock goes too:
 * the clock was wrong when it was laid in.
 */
export function createDrawers<Drawer>(
  lifetime: number,
  make: () => Drawer,
  ahead = Number.POSITIVE_INFINITY,
): Drawers<Drawer> {
  const span = lifetime / PARTS;
  const drawers = new Map<number, Drawer>();
  const forget = () => {
    const oldest = place(Date.now() - lifetime);
    const newest = place(Date.now() + ahead);
    for (const number of drawers.keys()) if (number < oldest || number > newest) drawers.delete(number);
  };
  const place = (time: number): number => (span === Number.POSITIVE_INFINITY ? 0 : Math.floor(time / span));
  return {
    at(time) {
      forget();
      const known = drawers.get(place(time));
      if (known) return known;
      const drawer = make();
      drawers.set(place(time), drawer);
      return drawer;
    },
    newestFirst() {
      forget();
      return [...drawers].sort(([a], [b]) => b - a).map(([, drawer]) => drawer);
    },
  };
}
