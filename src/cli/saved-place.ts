import { existsSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { z } from 'zod';
import { replaceFile } from '../move/export-file.ts';
import { parseJson } from '../move/json.ts';

/** Of a file that holds the options of a command, a cursor and some numbers. */
const MAX_BYTES = 1024 * 1024;

/** Where an interrupted command goes on: a file beside what it writes or reads. */
export interface SavedPlace<State> {
  /** Undefined: from the beginning. Throws if the file is of a command with other options, or is none of ours. */
  read(): Promise<State | undefined>;
  write(state: State): Promise<void>;
  remove(): Promise<void>;
}

/** `question`: what the command was asked; its place counts for the same question alone. */
export function savedPlace<State>(path: string, question: unknown, schema: z.ZodType<State>): SavedPlace<State> {
  const asked = JSON.stringify(question);
  return {
    async read() {
      if (!existsSync(path)) return undefined;
      const saved = (await readSmall(path)) as { readonly question?: unknown; readonly state?: unknown } | undefined;
      const state = schema.safeParse(saved?.state);
      if (!saved || !state.success) throw new Error(`${path} is no place of this command; start over with --restart`);
      if (saved.question === asked) return state.data;
      throw new Error(
        `${path} is of a command with other options, or of the file before it changed; start over with --restart`,
      );
    },
    write: (state) => replaceFile(path, { question: asked, state }),
    remove: () => rm(path, { force: true }),
  };
}

/** The JSON of a small file; undefined: it is none. */
async function readSmall(path: string): Promise<unknown> {
  const file = await open(path);
  try {
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    return bytesRead > MAX_BYTES ? undefined : parseJson(bytes.subarray(0, bytesRead));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
    return undefined;
  } finally {
    await file.close();
  }
}
