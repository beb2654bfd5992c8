import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');
export const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
export const exists = (path: string): boolean => existsSync(join(ROOT, path));

const SKIPPED = new Set(['node_modules', 'dist', 'assets', '.git', '.omp']);

/** Every Markdown file of the repository, relative to its root. */
export function documents(folder = ''): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : documents(path);
      return entry.name.endsWith('.md') ? [path] : [];
    })
    .sort();
}

/** A document without its fenced code. */
export const prose = (text: string): string => text.replace(/^```[\s\S]*?^```/gm, '');

export interface Block {
  readonly language: string;
  readonly code: string;
}

/** The fenced blocks of a text, in order. */
export const blocks = (text: string): Block[] =>
  [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({ language, code }));

/** The anchors that GitHub makes of the headings. */
export function anchors(text: string): Set<string> {
  const found = new Set<string>();
  for (const [, heading = ''] of prose(text).matchAll(/^#+ (.+)$/gm)) {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let n = 1; found.has(anchor); n++) anchor = `${slug}-${n}`;
    found.add(anchor);
  }
  return found;
}
