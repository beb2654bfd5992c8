import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Block, blocks, ROOT } from './markdown.ts';

/** A block of commands, and the answer that the document shows for it. */
export interface Example {
  readonly code: string;
  readonly answer: string | undefined;
}

const isRunnable = ({ language, code }: Block): boolean =>
  language === 'sh' && /^(?:curl|omp-gateway keys) /m.test(code);

/** The runnable blocks of a document; a `json` block directly after one is its answer. */
export function examplesIn(text: string): Example[] {
  const all = blocks(text);
  return all.flatMap((block, index) => {
    if (!isRunnable(block)) return [];
    const next = all[index + 1];
    return [{ code: block.code, answer: next?.language === 'json' ? next.code : undefined }];
  });
}

/** Runs blocks as a reader's shell would, in the root of a clone, against the gateway at `url`. */
export function shellFor(url: string, dataDir: string) {
  const bin = mkdtempSync(join(tmpdir(), 'omp-examples-'));
  writeFileSync(join(bin, 'curl'), `#!/bin/sh\nexec node ${join(ROOT, 'test/docs/curl.mjs')} "$@"\n`, { mode: 0o755 });
  const command = `#!/bin/sh\nexec node ${join(ROOT, 'dist/src/main.js')} "$@"\n`;
  writeFileSync(join(bin, 'omp-gateway'), command, { mode: 0o755 });
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, OMP_EXAMPLE_URL: url, OMP_DATA_DIR: dataDir };
  return async ({ code, answer }: Example): Promise<string> => {
    const strict = answer === undefined ? { OMP_EXAMPLE_STRICT: '1' } : {};
    const { stdout } = await promisify(execFile)('sh', ['-euc', code], { cwd: ROOT, env: { ...env, ...strict } });
    return stdout;
  };
}

/** Keys whose values differ from run to run. */
const VARIES = /^(?:id|memory_id|next_cursor|request_id|created_at|updated_at|timestamp)$/;

const DAY = /\d{4}-\d\d-\d\d/g;

/**
 * The documented answer in the terms of the real one: ids, cursors and times are those of this run, and a score that
 * differs by less than 0.001 is the real one. `aliases` collects which documented text stands for which real one.
 */
export function inTermsOf(documented: unknown, real: unknown, aliases: Map<string, string>, key = ''): unknown {
  if (typeof documented === 'string' && typeof real === 'string' && VARIES.test(key)) {
    const known = aliases.get(documented) ?? real;
    aliases.set(documented, known);
    return known;
  }
  // The days in the lines of a context.
  if (key === 'text' && typeof documented === 'string' && typeof real === 'string') {
    const days = real.match(DAY) ?? [];
    return documented.replaceAll(DAY, (day) => days.shift() ?? day);
  }
  if (typeof documented === 'number' && typeof real === 'number')
    return Math.abs(documented - real) < 0.001 ? real : documented;
  if (Array.isArray(documented) && Array.isArray(real))
    return documented.map((item, index) => inTermsOf(item, real[index], aliases, key));
  if (isObject(documented) && isObject(real))
    return Object.fromEntries(
      Object.entries(documented).map(([name, value]) => [name, inTermsOf(value, real[name], aliases, name)]),
    );
  return documented;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
