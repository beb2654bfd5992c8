/** What JSON holds that `keepsWholeNumbers` finds; continues "the JSON" or "line 7". */
export const CHANGED_NUMBER = 'holds a whole number that would be changed; write it as a string';

/** Whether a number may be one that JavaScript has changed: from 2^53 on, not every whole number can be told from the next. */
export const isBeyondExact = (value: number): boolean => Math.abs(value) > Number.MAX_SAFE_INTEGER;

/** Whether the text of a JSON number is none whose digits JavaScript changes. Fractions and exponents are rounded, as everywhere. */
export const isKept = (number: string): boolean => !/^-?\d{16,}$/.test(number) || String(Number(number)) === number;

/**
 * Whether JavaScript writes every whole number of a text again as it stands there. The text must be valid JSON. It is worth a look only if
 * it holds a number of which `isBeyondExact` is true.
 */
export function keepsWholeNumbers(json: string): boolean {
  const outsideStrings = json
    .replace(/\\./g, '')
    .split('"')
    .filter((_, place) => place % 2 === 0);
  return outsideStrings.every((part) => (part.match(/-?\d[\d.eE+-]*/g) ?? []).every(isKept));
}
