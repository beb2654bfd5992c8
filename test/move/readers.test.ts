import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Fields, readCsv, readMem0 } from '../../src/move/readers.ts';
import { openSubject } from '../support/subject.ts';

const TIME = '2026-01-02T03:04:05.000Z';
const file = (name: string) => createReadStream(join(import.meta.dirname, 'files', name));
/** The same bytes in pieces of so many. */
async function* bytesOf(text: string | Uint8Array, size = 7): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
const json = (value: unknown, size?: number) => bytesOf(JSON.stringify(value), size);

async function allOf(memories: AsyncIterable<Fields>): Promise<Fields[]> {
  const all: Fields[] = [];
  for await (const memory of memories) all.push(JSON.parse(JSON.stringify(memory)));
  return all;
}
const mem0 = (input: AsyncIterable<Uint8Array>, user_id?: string) =>
  allOf(readMem0(input, { user_id, created_at: TIME }));
const csv = (input: AsyncIterable<Uint8Array>, columns: Record<string, string> = {}, user_id?: string) =>
  allOf(readCsv(input, { columns, user_id, created_at: TIME }));
const imported = expect.stringMatching(/^imported-\d+-[0-9a-f]{32}$/);

// Written by mem0ai 3.3.1 for TypeScript: `getAll({ filters: { user_id: 'ana' }, showExpired: true })`, as JSON.
const FROM_MEM0 = 'mem0-typescript.json';
// Written by Python's csv module: `DictWriter` in the encoding utf-8-sig, which Excel expects.
const FROM_PYTHON = 'python-excel.csv';
// Written by PostgreSQL 15: `COPY notes TO STDOUT (FORMAT csv, HEADER)`.
const FROM_POSTGRES = 'postgres-copy.csv';
const COLUMNS = { content: 'text', user_id: 'who' };

describe('readMem0', () => {
  const source = { type: 'imported', app: 'mem0' };

  it('reads what the library for TypeScript wrote', async () => {
    const chef = { scope: 'mem0/agent/chef%2F1/run/%2D', user_id: 'ana', source, 'x-mem0-metadata': {} };
    expect(await mem0(file(FROM_MEM0))).toEqual([
      {
        id: 'd0154cf9-606c-4990-9182-45830a5517b2',
        content: 'the ferry leaves at nine',
        user_id: 'ana',
        scope: null,
        source,
        created_at: '2026-11-23T08:12:58.724Z',
        'x-mem0-metadata': { area: 'travel', nested: { of: ['a', 1, null] } },
      },
      {
        ...{ ...chef, id: '8e57578e-e5e0-4f60-b5af-5e245f9f675f', created_at: '2026-11-23T08:12:58.733Z' },
        content: 'allergic to peanuts 🥜\n"quoted", and a comma',
      },
      {
        ...{ ...chef, id: '94010d65-ea90-40cc-b9c7-d429ff21c1e5', created_at: '2026-11-23T08:12:58.753Z' },
        content: 'noted',
      },
      {
        id: 'f891bc2f-b8d2-4ce3-b5fe-910f8b001749',
        content: 'parking permit',
        user_id: 'ana',
        scope: 'mem0/agent/clerk/run/-',
        source,
        created_at: '2026-11-23T08:12:58.759Z',
        valid_to: '2099-09-01T00:00:00.000Z',
        'x-mem0-metadata': { expiration_date: '2099-08-31' },
      },
      {
        id: 'b9bd55fb-131f-46a5-9274-1bb426cbd881',
        content: 'lives in Lisbon',
        user_id: 'ana',
        scope: null,
        source,
        created_at: '2026-11-23T08:12:58.766Z',
        updated_at: '2026-11-23T08:12:58.824Z',
        'x-mem0-metadata': {},
      },
    ]);
  });

  // As `Memory.get_all` of mem0/memory/main.py writes them, and the service: docs.mem0.ai/api-reference.
  it('reads the names of the Python library and of the service', async () => {
    const python = { id: '1', memory: 'a', hash: 'h', metadata: null, score: null, role: 'user', actor_id: 'ana' };
    const service = { id: '2', memory: 'b', categories: ['food'], immutable: false, expiration_date: '2024-12-31' };
    const times = { created_at: '2024-07-20T01:30:36.275141-07:00', updated_at: null };
    expect(await mem0(json([{ ...python, ...times, user_id: 'u' }, service], 5), 'everyone')).toEqual([
      {
        ...{ id: '1', content: 'a', user_id: 'u', scope: null, source, created_at: times.created_at },
        ...{ 'x-mem0-role': 'user', 'x-mem0-actor_id': 'ana' },
      },
      {
        ...{ id: '2', content: 'b', user_id: 'everyone', scope: null, source, created_at: TIME, tags: ['food'] },
        ...{ valid_to: '2025-01-01T00:00:00.000Z', 'x-mem0-immutable': false },
      },
    ]);
  });

  it('reads pages that follow each other', async () => {
    const page = (...ids: string[]) => JSON.stringify({ count: 3, next: null, results: ids.map((id) => ({ id })) });
    const read = await mem0(bytesOf(`\n ${page('1', '2')}\n${page()}${page('3')}\n`, 1));
    expect(read.map(({ id }) => id)).toEqual(['1', '2', '3']);
  });

  it('passes memories on before the input ends', async () => {
    async function* endless() {
      yield Buffer.from('[');
      for (let n = 0; ; n++) yield Buffer.from(`{"id":"${n}"},`);
    }
    const memories = readMem0(endless(), { created_at: TIME });
    for (const id of ['0', '1', '2']) expect((await memories.next()).value).toMatchObject({ id });
    await memories.return(undefined);
  });

  it('notices wherever the file was cut', async () => {
    const whole = JSON.stringify({ results: [{ id: '1', memory: 'é' }, { id: '2' }], next: null });
    for (let end = 1; end < Buffer.byteLength(whole); end++) {
      await expect(mem0(bytesOf(Buffer.from(whole).subarray(0, end))), `${end}`).rejects.toThrow(/cut|UTF-8/);
    }
  });

  it.each([
    ['no JSON', 'id,memory\n1,a', /is no JSON/],
    ['no list', '{"memories":[{"id":"1"}]}', /holds no memories; expected \{"results"/],
    ['nothing', ' \n', /holds no memories/],
    ['texts', '["a"]', /memory 1 is no JSON object/],
    ['another encoding', Buffer.from('["caf\xe9"]', 'latin1'), /not in UTF-8/],
  ])('rejects %s', async (_, text, message) => {
    await expect(mem0(bytesOf(text))).rejects.toThrow(message);
  });
});

describe('readCsv', () => {
  const source = { type: 'imported' };

  it('reads what Python wrote, with columns that are named, and leaves others out', async () => {
    expect(await csv(file(FROM_PYTHON), COLUMNS)).toEqual([
      {
        ...{ id: imported, source, content: 'the ferry leaves at nine', user_id: 'ana', tags: ['travel', 'boats'] },
        ...{ confidence: 0.5, created_at: '2024-05-01T10:00:00+02:00' },
      },
      {
        ...{ id: imported, source, user_id: 'ben', created_at: '2024-05-02' },
        content: 'allergic to peanuts 🥜\n"quoted", and a comma',
      },
      {
        ...{ id: imported, source, content: '  שלום; with spaces  ', user_id: 'ana', tags: ['x'] },
        ...{ confidence: 'high', created_at: TIME },
      },
    ]);
  });

  it('reads what PostgreSQL wrote, with its own columns and times', async () => {
    expect(await csv(file(FROM_POSTGRES))).toEqual([
      {
        ...{ id: 'n1', source, content: 'the ferry leaves at nine', user_id: 'ana', scope: 'work/a' },
        ...{ created_at: '2024-05-01T08:00:00+00:00', 'x-note': 'kept as\n"text"' },
      },
      {
        ...{ id: 'n2', source, content: 'empty fields are null', user_id: 'ben' },
        created_at: '2024-05-02T00:00:00+00:00',
      },
    ]);
  });

  it.each([
    ['2024-05-01 10:00:00.123456-03:30', '2024-05-01T10:00:00.123456-03:30'],
    ['2024-05-01 10:00', '2024-05-01T10:00Z'],
    ['2024-05-01T10:00:00 +0200', '2024-05-01T10:00:00+02:00'],
    ['May 1, 2024', 'May 1, 2024'],
  ])('takes the time %s for %s', async (given, created_at) => {
    expect(await csv(bytesOf(`content,created_at\na,"${given}"`), {}, 'u')).toMatchObject([{ created_at }]);
  });

  it('takes no cell for a number that is none', async () => {
    const read = await csv(bytesOf('content,confidence\na," "\nb,Infinity\nc,0\n'), {}, 'u');
    expect(read.map(({ confidence }) => confidence)).toEqual([undefined, 'Infinity', 0]);
  });

  it('gives rows without ids the same ones in every run, equal rows different ones', async () => {
    const ids = async (text: string) => (await csv(bytesOf(text), {}, 'u')).map(({ id }) => id as string);
    const first = await ids('content\na\na\n');
    expect(new Set(first).size).toBe(2);
    expect((await ids('content\na\na\nb\n')).slice(0, 2)).toEqual(first);
    expect(first.map((id) => id.split('-')[1])).toEqual(['1', '2']);
  });

  it.each<[string, string | Uint8Array, Record<string, string>, RegExp]>([
    ['nothing', '', {}, /empty/],
    [
      'no content',
      'text,user_id\na,u',
      {},
      /no column is named content; the columns are "text", "user_id"; use --column/,
    ],
    ['no user', 'content\na', {}, /no column is named user_id/],
    ['an unknown column', 'content,user_id\na,u', { scope: 'area' }, /--column scope=area: there must be one column/],
    ['a column twice', 'content,user_id,user_id\na,u,v', {}, /there must be one column/],
    ['an unknown field', 'content,user_id\na,u', { text: 'content' }, /a memory has no field text/],
    ['a short row', 'content,user_id\na,u\nb', {}, /^row 3 has 1 cells, and the first row 2; .* --skip-damaged$/],
    ['a long row', 'content,user_id\na,u\n"b\nc",d,e\n', {}, /^row 3 has 3 cells, and the first row 2; /],
    ['a cut quote', 'content,user_id\n"a,u', {}, /quote/i],
    ['a quote without an end', `content,user_id\n"${'a'.repeat(5_000_000)}`, {}, /maximum/i],
    ['another encoding', Buffer.from('content,user_id\ncaf\xe9,u', 'latin1'), {}, /not in UTF-8/],
  ])('rejects %s', async (_, text, columns, message) => {
    await expect(csv(bytesOf(text, 65_536), columns)).rejects.toThrow(message);
  });

  it('fails with the error of its input', async () => {
    async function* broken() {
      yield Buffer.from('content,user_id\na,u\n');
      throw new Error('disk');
    }
    await expect(csv(broken())).rejects.toThrow('disk');
  });
});

it('a gateway stores what was read, and rejects the rest one by one', async () => {
  const { client, close } = await openSubject({ provider: 'memory', options: {} });
  const memories = [...(await mem0(file(FROM_MEM0))), ...(await csv(file(FROM_PYTHON), COLUMNS))];
  const results = await client.batch(memories);
  await close();
  expect(results.map(({ memory, error }) => error?.message ?? memory?.content)).toEqual([
    ...memories.slice(0, -1).map(({ content }) => content),
    expect.stringContaining('confidence'),
  ]);
});
