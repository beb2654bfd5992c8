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
export function saveFile(format: Format, user: string, memories: readonly Memory[]): void {
  const url = URL.createObjectURL(new Blob(FORMATS[format](memories)));
  const link = document.createElement('a');
  link.href = url;
  link.download = `memories-${user.replace(/[^\w.-]+/g, '_')}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url));
}
