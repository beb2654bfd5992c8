/** Whether any text is matched by both globs: `*` any run of characters, `?` one. */
export const globsOverlap = (a: string, b: string): boolean => patternsOverlap([...a], [...b]);

/** The same for globs as lists of their characters. Takes steps in proportion to |left|·|right|, whatever they are. */
export function patternsOverlap(left: readonly string[], right: readonly string[]): boolean {
  // reachable[j]: some text is matched by the part of `left` before i and the part of `right` before j.
  let reachable = row(right.length);
  reachable[0] = true;
  for (let i = 0; ; i++) {
    for (let j = 0; j < right.length; j++) if (reachable[j] && right[j] === '*') reachable[j + 1] = true;
    const one = left[i];
    if (one === undefined) return reachable[right.length] as boolean;
    const next = row(right.length);
    for (let j = 0; j <= right.length; j++) {
      if (!reachable[j]) continue;
      const other = right[j];
      // A star may stand for nothing, or swallow what the other side says next.
      if (one === '*') {
        next[j] = true;
        if (other !== undefined) reachable[j + 1] = true;
      } else if (other === '*') next[j] = true;
      else if (other !== undefined && (one === '?' || other === '?' || one === other)) next[j + 1] = true;
    }
    reachable = next;
  }
}

const row = (length: number): boolean[] => new Array<boolean>(length + 1).fill(false);
