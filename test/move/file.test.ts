import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { FORMAT, type Header, type Line, openWriter, readFile, replaceFile } from '../../src/move/export-file.ts';

const header = {
  omp_export: FORMAT,
  source: 'memory',
  exported_at: '2026-01-01T00:00:00.000Z',
  embedding: null,
  filters: {},
};
const memories = Array.from({ length: 300 }, (_, i) => ({ id: `${i}`, content: `Zeile ${i}\n日本 ${'x'.repeat(i)}` }));
async function write(path: string, lines: readonly Line[]): Promise<number> {
  const writer = await openWriter(path, header);
  for (let at = 0; at < lines.length; at += 100) await writer.write(lines.slice(at, at + 100));
  const count = await writer.finish();
  await writer.close();
  return count;
}
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'omp-m-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

describe.each(['a.ndjson', 'a.ndjson.gz'])('%s', (name) => {
  it('reads what it wrote', async () => {
    const path = join(folder, name);
    expect(await write(path, memories)).toBe(300);
    const headers: Header[] = [];
    expect(await collect(readFile(path, (one) => headers.push(one)))).toEqual(memories);
    expect(headers).toEqual([header]);
  });

  it('goes on with an unfinished file', async () => {
    const path = join(folder, name);
    const first = await openWriter(path, header);
    const bytes = await first.write(memories.slice(0, 100));
    await first.write(memories.slice(200));
    await first.close();
    const second = await openWriter(path, header, bytes);
    expect(second.count).toBe(100);
    await second.write(memories.slice(100));
    let whole: readonly (string | number)[] = [];
    const finished = second.finish(async () => {
      whole = [...readdirSync(folder), statSync(`${path}.part`).size];
    });
    expect(await finished).toBe(300);
    await second.close();
    expect(await collect(readFile(path))).toEqual(memories);
    expect(whole, 'when what it saved is removed').toEqual([`${name}.part`, statSync(path).size]);
  });

  it('notices a cut at any place', async () => {
    const path = join(folder, name);
    await write(path, memories.slice(0, 5));
    const whole = readFileSync(path);
    for (let length = 0; length < whole.length; length++) {
      writeFileSync(path, whole.subarray(0, length));
      await expect(collect(readFile(path)), `${length}`).rejects.toThrow(
        /^(?:the file was cut or changed|line \d+ is no)/,
      );
    }
  });
});

it('[Decision 43] a memory with the key of a header is a memory', async () => {
  const path = join(folder, 'a.ndjson');
  const odd = { ...memories[0], omp_export: FORMAT };
  await write(path, [...memories.slice(0, 2), odd, ...memories.slice(3, 5)]);
  expect((await collect(readFile(path)))[2]).toEqual(odd);
});

it('[Decision 43] only its user may read a file with memories, whoever made it', async () => {
  const path = join(folder, 'a.ndjson');
  const mode = (name: string) => statSync(join(folder, name)).mode & 0o777;
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));
  writeFileSync(`${path}.part`, 'of another command', { mode: 0o666 });
  const writer = await openWriter(path, header);
  await writer.write(memories);
  await replaceFile(`${path}.progress`, {});
  expect(readdirSync(folder).map((name) => [name, mode(name)])).toEqual([
    ['a.ndjson.part', 0o600],
    ['a.ndjson.progress', 0o600],
  ]);
  await writer.finish();
  await writer.close();
  expect(mode('a.ndjson')).toBe(0o600);
});

it('notices a line that is missing or changed', async () => {
  const path = join(folder, 'a.ndjson');
  await write(path, memories.slice(0, 5));
  const lines = readFileSync(path, 'utf8').split('\n');
  for (const changed of [lines.toSpliced(2, 1), lines.with(2, '{"id":"1"}'), lines.toSpliced(2, 0, '{}')]) {
    writeFileSync(path, changed.join('\n'));
    await expect(collect(readFile(path))).rejects.toThrow(/^(?:the file was cut or changed|line \d+ is no)/);
  }
});

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
