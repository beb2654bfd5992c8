/** Any text as one segment of a scope: what a segment must not contain is percent-encoded. */
export const encodeSegment = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a scope must not contain them
  text.replace(/[%/*?\u0000-\u001f\u007f-\u009f]/g, (character) =>
    character === '*' ? '%2A' : encodeURIComponent(character),
  );

export const decodeSegment = (segment: string): string => decodeURIComponent(segment);
