import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { savedPlace } from '../../src/cli/move-run.ts';
import { FORMAT, readFile } from '../../src/move/export-file.ts';
import { readCsv, readMem0 } from '../../src/move/readers.ts';
import { temporaryFolder } from '../process/gateway.ts';

/*
 * No file of a few hundred kilobytes makes a reader of the command line work much longer than a harmless file of its size, and
 * what cannot be read is named by its line, row or memory.
 */

const BYTES = 200_000;
const OPTIONS = { user_id: 'ana', created_at: '2026-01-01T00:00:00.000Z' };

/** JSON values of so many bytes. */
const VALUES: Readonly<Record<string, (bytes: number) => string>> = {
  'a wide array': (bytes) => `[${'0,'.repeat(bytes / 2)}0]`,
  'empty objects': (bytes) => `[${'{},'.repeat(bytes / 3)}{}]`,
  'many keys': (bytes) => `{${Array.from({ length: bytes / 12 }, (_, i) => `"x-${i}":0`).join()}}`,
  'the same key': (bytes) => `{${'"x-a":0,'.repeat(bytes / 8)}"x-a":0}`,
  'nested arrays': (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'nested objects': (bytes) => `${'{"a":'.repeat(bytes / 6)}0${'}'.repeat(bytes / 6)}`,
  'an open end': (bytes) => '[{"a":'.repeat(bytes / 6),
  'a long text': (bytes) => JSON.stringify('x'.repeat(bytes)),
  escapes: (bytes) => `"${'\\"'.repeat(bytes / 2)}"`,
  'a number of many digits': (bytes) => '1'.repeat(bytes),
  'whole numbers of many digits': (bytes) => `[${'12345678901234567890,'.repeat(bytes / 21)}0]`,
  'numbers that are too large': (bytes) => `[${'1e999,'.repeat(bytes / 6)}0]`,
};
const memory = (fields: string) => `{"id":"1","user_id":"ana","content":"tea","memory":"tea"${fields}}`;
const PROSE = 'likes green tea in the morning, and coffee after lunch; ';
/** A value within a memory, in place of a field, and in place of a memory. */
const PLACES: Readonly<Record<string, (value: string) => string>> = {
  'a field': (value) => memory(`,"x-a":${value}`),
  'the content': (value) => memory(`,"content":${value},"memory":${value}`),
  'the memory': (value) => value,
};

/** Memories of usual length, together as long as a hostile file. */
const USUAL = Array.from({ length: BYTES / 150 }, () => memory(`,"x-a":${JSON.stringify(PROSE)}`));

/** A file of our own with these lines. */
function ownFile(...memories: string[]): string {
  const header = JSON.stringify({ omp_export: FORMAT, source: '', exported_at: '', embedding: null, filters: {} });
  const lines = [header, ...memories, ''].join('\n');
  const sha256 = createHash('sha256').update(lines).digest('hex');
  return `${lines}${JSON.stringify({ count: memories.length, sha256 })}\n`;
}
const inPieces = (text: string) => {
  const bytes = Buffer.from(text);
  return Readable.from(
    Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, i) => bytes.subarray(i * 65_536, (i + 1) * 65_536)),
  );
};
async function drained(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}
/** By reader: reads a file. */
const READ = {
  'JSON Lines': (text: string) => drained(readFile('-', () => {}, inPieces(text))),
  mem0: (text: string) => drained(readMem0(inPieces(text), OPTIONS)),
  csv: (text: string) => drained(readCsv(inPieces(text), { ...OPTIONS, columns: {} })),
} as const;

/** Milliseconds of computing until the file is read or rejected, and why it was. */
async function workOf(read: (text: string) => Promise<void>, text: string) {
  const before = process.cpuUsage();
  const rejection = await read(text).then(
    () => undefined,
    (error: Error) => error.message,
  );
  const { user, system } = process.cpuUsage(before);
  return { ms: (user + system) / 1_000, rejection };
}

/** The least computing of three reads: a garbage collection in one of them may cost more than the file. */
async function leastWorkOf(read: (text: string) => Promise<void>, text: string) {
  const runs = [await workOf(read, text), await workOf(read, text), await workOf(read, text)] as const;
  return { ms: Math.min(...runs.map(({ ms }) => ms)), rejection: runs[0].rejection };
}

/** Compares with a harmless file of its size; what the machine does beside it costs no computing here. */
async function expectBounded(read: (text: string) => Promise<void>, hostile: string, harmless: string) {
  const usual = await leastWorkOf(read, harmless);
  expect(usual.rejection).toBeUndefined();
  const { ms, rejection } = await leastWorkOf(read, hostile);
  expect(ms).toBeLessThan(20 * usual.ms);
  return rejection;
}

const cases = Object.entries(VALUES).flatMap(([what, value]) =>
  Object.entries(PLACES).map(([where, at]) => [what, where, at(value(BYTES)), at === PLACES['the memory']] as const),
);

describe('a file of JSON Lines', () => {
  it.each(cases)('[Decision 43] with %s as %s is read, or rejected with its line', async (_, __, line) => {
    const rejection = await expectBounded(READ['JSON Lines'], ownFile(line), ownFile(...USUAL));
    if (rejection !== undefined) expect(rejection).toMatch(/^line 2 /);
  });

  it.each([
    ['nested arrays', 'is nested deeper than 60 levels'],
    ['a wide array', 'holds more than 100000 values'],
    ['numbers that are too large', 'holds a number that is too large'],
    ['a number of many digits', 'holds a number that is too large'],
    ['whole numbers of many digits', 'holds a whole number that would be changed'],
  ])('[Decision 43] with %s: it %s', async (what, reason) => {
    const line = memory(`,"x-a":${VALUES[what]?.(BYTES)}`);
    await expect(READ['JSON Lines'](ownFile(line))).rejects.toThrow(`line 2 ${reason}`);
  });

  it('[Decision 9] may hold every number that the gateway writes, and any digits in a text', async () => {
    const line = memory(',"x-a":[9007199254740991,12345678901234567000,1e+22],"x-b":"\\" 12345678901234567890"');
    await READ['JSON Lines'](ownFile(line));
  });

  it('[Decision 43] that is one long line is rejected with its line', async () => {
    async function* endless() {
      yield Buffer.from(ownFile(memory('')).split('\n').slice(0, 2).join('\n'));
      for (;;) yield Buffer.alloc(1024 * 1024, ' ');
    }
    await expect(drained(readFile('-', () => {}, Readable.from(endless())))).rejects.toThrow(/^line 2 is longer than/);
  });
});

describe('a file of mem0', () => {
  const harmless = `{"results":[${USUAL}]}`;

  it('[Decision 9] is rejected with the memory whose whole number would be changed', async () => {
    const [kept, changed] = ['9007199254740992', '9007199254740993'].map((number) =>
      memory(`,"metadata":{"a":${number}}`),
    );
    await READ.mem0(`[${kept}]`);
    await expect(READ.mem0(`[${kept},${changed}]`)).rejects.toThrow(
      'memory 2 holds a whole number that would be changed',
    );
  });

  it.each(cases)('[Decision 43] with %s as %s is read, or rejected with its memory', async (_, __, item) => {
    const rejection = await expectBounded(READ.mem0, `{"results":[${item}]}`, harmless);
    if (rejection !== undefined) expect(rejection).toMatch(/memory \d+/);
  });

  it.each(Object.entries(VALUES))(
    '[Decision 43] with %s beside its memories is read, or rejected with their number',
    async (_, value) => {
      const rejection = await expectBounded(READ.mem0, `{"results":[${memory('')}],"next":${value(BYTES)}}`, harmless);
      if (rejection !== undefined) expect(rejection).toMatch(/memory \d+/);
    },
  );

  it('[Decision 43] may have many memories, and another long list', async () => {
    const many = (item: string) => `[${`${item},`.repeat(40_000)}${item}]`;
    await READ.mem0(`{"results":${many(memory(''))},"relations":${many('{"source":"a","target":"b"}')}}`);
    await READ.mem0(many(memory('')));
  });

  it('[Decision 43] whose text never ends is rejected with its memory', async () => {
    async function* endless() {
      yield Buffer.from(`[${memory('')},{"memory":"`);
      for (;;) yield Buffer.alloc(1024 * 1024, 'x');
    }
    await expect(drained(readMem0(endless(), OPTIONS))).rejects.toThrow(/^memory 2 is longer than/);
  });
});

describe('a CSV file', () => {
  const columns = (count: number) => Array.from({ length: count }, (_, i) => `x-${i}`).join();
  const harmless = `content,x-a\n${`tea,${PROSE}\n`.replaceAll(', ', '; ').repeat(BYTES / PROSE.length)}`;

  it.each([
    ['20,000 columns', `content,${columns(20_000)}\n${'a,'.repeat(20_000)}a\n`, /^line 1 has more than 1000 columns/],
    [
      '20,000 columns that are not named',
      `content,user_id\na,b\n${'a,'.repeat(20_000)}a\n`,
      /^line 3 has more than 1000 columns/,
    ],
    ['nothing but commas', ','.repeat(BYTES), /^line 1 has more than/],
    ['the same column twice', `content,x-a,x-a\n${'a,b,c\n'.repeat(BYTES / 6)}`, /there must be one column/],
    ['a quote without an end', `content\n"${'a'.repeat(5_000_000)}`, /at line 2/],
    ['quotes alone', `content\n"${'""'.repeat(BYTES / 2)}"\n`, undefined],
    ['blanks alone', `content\n${' '.repeat(BYTES)}\n`, undefined],
    ['empty lines', `content\na${'\n'.repeat(BYTES)}`, undefined],
    [
      '1,000 columns, and rows of them',
      `content,${columns(999)}\n${`a${',b'.repeat(999)}\n`.repeat(BYTES / 2_000)}`,
      undefined,
    ],
  ])('[Decision 43] with %s is read, or rejected with its line', async (_, text, reason) => {
    const rejection = await expectBounded(READ.csv, text, harmless);
    if (reason) expect(rejection).toMatch(reason);
    else expect(rejection).toBeUndefined();
  });

  it('[Decision 43] is not quoted in a message at full length', async () => {
    const { rejection = '' } = await workOf(READ.csv, `${`"${'n'.repeat(4_000)}",`.repeat(900)}last\n`);
    expect(rejection).toMatch(/no column is named content; .* and 881 more/);
    expect(rejection.length).toBeLessThan(2_000);
  });
});

describe('the saved place of a command', () => {
  it('[Decision 43] is never written so large that it could not be read again', async () => {
    const place = savedPlace(join(temporaryFolder(), 'a.progress'), ['a'], z.string());
    const small = 'x'.repeat(1_000_000);
    await place.write(small);
    await expect(place.write('x'.repeat(1_100_000))).rejects.toThrow('is too large');
    expect(await place.read()).toBe(small);
  });

  it.each(Object.entries(VALUES))('[Decision 43] with %s is no place', async (_, value) => {
    const path = join(temporaryFolder(), 'a.progress');
    const place = savedPlace(path, ['a'], z.int().nonnegative());
    const read = async (text: string) => {
      writeFileSync(path, text);
      await place.read();
    };
    const usual = JSON.stringify({ question: '["a"]', state: 7, more: USUAL.map((one) => JSON.parse(one)) });
    for (const text of [value(BYTES), `{"question":"[\\"a\\"]","state":${value(BYTES)}}`]) {
      expect(await expectBounded(read, text, usual)).toContain(
        'is no place of this command; start over with --restart',
      );
    }
  });
});
