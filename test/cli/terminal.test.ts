import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { showProgress } from '../../src/cli/progress.ts';
import { printable, terminalOf } from '../../src/cli/terminal.ts';

function recording(isTTY: boolean) {
  const written: string[] = [];
  const stream = { isTTY, write: (text: string) => written.push(text) };
  const { stdout, stderr } = terminalOf({ env: {}, stdout: stream, stderr: stream });
  return { stdout, stderr, text: () => written.join('') };
}

/** Any text, with many characters that a terminal would interpret. */
const hostile = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      '\u001b[2J',
      '\u009b31m',
      '\r',
      '\b',
      '\u007f',
      '\u202e',
      '\u2066',
      '\u061c',
      '\u2028',
      '\0',
      '\n',
      '\t',
    ),
    fc.string({ unit: 'binary', maxLength: 2 }),
  ),
});
const INTERPRETED = /(?!\r\n|\n|\t)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;

describe('an output of a command', () => {
  it.each([true, false])('[Decision 43] escapes what a terminal would interpret; a terminal: %s', (isTTY) => {
    fc.assert(
      fc.property(hostile, (text) => {
        const { stdout, stderr, text: written } = recording(isTTY);
        stdout.write(text);
        stderr.write(text);
        expect(written()).not.toMatch(INTERPRETED);
      }),
    );
  });

  it('[Decision 43] leaves the meaning of JSON as it is', () => {
    fc.assert(
      fc.property(fc.dictionary(hostile, hostile), (value) => {
        const { stdout, text } = recording(false);
        stdout.write(`${JSON.stringify(value, null, 2)}\n`);
        expect(JSON.parse(text())).toEqual(value);
      }),
    );
  });

  it('[Decision 43] keeps usual texts, and has its own styles', () => {
    const { stdout, text } = recording(true);
    stdout.write('Łódź שלום 👩‍🚀 \\u001b\r\n\tline\n');
    stdout.write('50 %\u001b[2J', 'rewrite');
    stdout.write('✗', 'red');
    expect(text()).toBe('Łódź שלום 👩‍🚀 \\u001b\r\n\tline\n\r\u001b[K50 %\\u001b[2J\u001b[31m✗\u001b[0m');
  });

  it('[Decision 43] begins no line with a part of a name', () => {
    expect(printable('x\r\nNo memory differs.\t\u202e')).toBe('x\\u000d\\u000aNo memory differs.\\u0009\\u202e');
  });
});

it('[Decision 43] the rate of changes does not count the memories that were copied before them', () => {
  const { stderr, text } = recording(true);
  const progress = showProgress(stderr);
  progress.show({ done: 42, total: 42 });
  progress.show({ done: 0, behind: { seconds: 0, left: 0 } });
  expect(text()).toMatch(/0 changes, 0\.0 a second/);
});

it('[Decision 43] nothing else writes to the terminal', () => {
  const root = join(import.meta.dirname, '../../src');
  const writing = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && /process\.std(?:out|err)|console\./.test(readFileSync(join(root, file), 'utf8')),
  );
  // `export -` and `person export` escape their lines too; the log is JSON.
  expect(writing.sort()).toEqual(['cli/move-run.ts', 'log.ts']);
});
