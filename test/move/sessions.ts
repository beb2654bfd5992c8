import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TranscriptFormatName } from '../../src/move/transcript-formats.ts';
import { emptySummary, openTranscripts } from '../../src/move/transcripts.ts';
import { temporaryFolder } from '../process/gateway.ts';

const FILES = join(import.meta.dirname, 'files/transcripts');

export type Tree = Readonly<Record<string, string | readonly object[]>>;
export const asLines = (content: string | readonly object[]) =>
  typeof content === 'string' ? content : content.map((line) => `${JSON.stringify(line)}\n`).join('');
/** Files of this content; a content that begins with `=` is the file of this name. */
export function folderOf(tree: Tree): string {
  const folder = temporaryFolder();
  for (const [name, content] of Object.entries(tree)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    if (typeof content === 'string' && content.startsWith('=')) cpSync(join(FILES, content.slice(1)), path);
    else writeFileSync(path, asLines(content));
  }
  return folder;
}
export const openAt = (format: TranscriptFormatName, ...paths: string[]) =>
  openTranscripts({ format, paths, user_id: 'ana', home: '/home/ana', max_content_length: 25_000 });
export type Memory = Readonly<Record<string, unknown>>;
export async function all(memories: AsyncIterable<Memory>): Promise<Memory[]> {
  const found: Memory[] = [];
  for await (const memory of memories) found.push(JSON.parse(JSON.stringify(memory)));
  return found;
}
export async function read(format: TranscriptFormatName, tree: Tree) {
  const summary = emptySummary();
  const memories = await all(openAt(format, folderOf(tree)).read(summary));
  const left_out = Object.fromEntries(Object.entries(summary.left_out).filter(([, count]) => count > 0));
  return { memories, summary, left_out, said: memories.map(({ tags, content }) => `${tags}: ${content}`) };
}
/** What the server of made-up answers says. */
export const ANSWER = 'assistant: The final answer is pnpm, as you prefer.';
