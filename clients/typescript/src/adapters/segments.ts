import { NotFoundError } from '../errors.ts';

/** Any text as one segment of a scope: what a segment must not contain is percent-encoded. */
export const encodeSegment = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a scope must not contain them
  text.replace(/[%/*?\u0000-\u001f\u007f-\u009f]/g, (character) =>
    character === '*' ? '%2A' : encodeURIComponent(character),
  );

/** A segment that another application wrote may be no encoding of a text: then it is the text. */
export function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Throws for a scope that a list would read as a pattern, and so find other scopes. */
export function checkedScope(scope: string): string {
  if (/[*?]/.test(scope)) throw new TypeError('scope: must not contain * or ?');
  return scope;
}

/** Deleting what another one has deleted meanwhile is no error. */
export function ignoreMissing(error: unknown): void {
  if (!(error instanceof NotFoundError)) throw error;
}
