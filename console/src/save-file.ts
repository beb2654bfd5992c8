import type { Memory } from '../../clients/typescript/src/index.ts';

const COLUMNS = ['id', 'content', 'scope', 'tags', 'created_at', 'updated_at', 'valid_from', 'valid_to'] as const;

/** A spreadsheet takes a text with such a beginning for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: unknown): string {
  const text = Array.isArray(value) ? value.join(', ') : String(value ?? '');
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

const FORMATS = {
  ndjson: (memories: readonly Memory[]) => memories.map((memory) => `${JSON.stringify(memory)}\n`),
  csv: (memories: readonly Memory[]) => [
    `${COLUMNS.join(',')}\r\n`,
    ...memories.map((memory) => `${COLUMNS.map((name) => cell(memory[name])).join(',')}\r\n`),
  ],
};
export type Format = keyof typeof FORMATS;

/** Gives the memories to the browser as a file. */
export const saveFile = (format: Format, user: string, memories: readonly Memory[]): void =>
  saveLines(FORMATS[format](memories), `memories-${user}.${format}`);

export function saveLines(lines: BlobPart[], name: string): void {
  const url = URL.createObjectURL(new Blob(lines));
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(url));
}
