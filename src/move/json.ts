import { CHANGED_NUMBER, isBeyondExact, keepsWholeNumbers } from '#toolbox';

/** What one memory of a file may be: many times more than a gateway stores, and little work. */
export const MAX_BYTES = 32 * 1024 * 1024;
export const MAX_VALUES = 100_000;
export const MAX_NESTING = 60;

export const TOO_LONG = `is longer than ${MAX_BYTES} bytes`;
export const TOO_MANY = `holds more than ${MAX_VALUES} values`;
export const TOO_DEEP = `is nested deeper than ${MAX_NESTING} levels`;
export const TOO_LARGE = 'holds a number that is too large';

const [QUOTE, BACKSLASH, COMMA] = [...Buffer.from('"\\,')];
const OPENING = [...Buffer.from('[{')];
const CLOSING = [...Buffer.from(']}')];

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The JSON value of bytes in UTF-8. Throws a `RangeError` whose message continues "line 7", such as `TOO_DEEP`, and a
 * `TypeError` or `SyntaxError` if the bytes are no JSON. The bounds are checked before anything is parsed. `numbers`: what becomes of whole
 * numbers that JavaScript changes.
 */
export function parseJson(bytes: Buffer, numbers: 'exact' | 'rounded' = 'exact'): unknown {
  checkShape(bytes);
  const text = utf8.decode(bytes);
  let isExact = true;
  const json = JSON.parse(text, (_, value: unknown) => {
    if (typeof value === 'number' && isBeyondExact(value)) {
      isExact = false;
      // JavaScript reads 1e999 as infinite, and would write it as null.
      if (!Number.isFinite(value)) throw new RangeError(TOO_LARGE);
    }
    return value;
  });
  if (!isExact && numbers === 'exact' && !keepsWholeNumbers(text)) throw new RangeError(CHANGED_NUMBER);
  return json;
}

function checkShape(bytes: Buffer): void {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) at = endOfText(bytes, at);
    else if (OPENING.includes(byte)) {
      if (++depth > MAX_NESTING) throw new RangeError(TOO_DEEP);
      values++;
    } else if (CLOSING.includes(byte)) depth--;
    else if (byte === COMMA) values++;
    if (values > MAX_VALUES) throw new RangeError(TOO_MANY);
  }
}

/** Where the quote is that ends the text. */
function endOfText(bytes: Buffer, start: number): number {
  for (let at = start; ; ) {
    at = bytes.indexOf('"', at + 1);
    if (at < 0) return bytes.length;
    let before = at;
    while (bytes[before - 1] === BACKSLASH) before--;
    if ((at - before) % 2 === 0) return at;
  }
}
