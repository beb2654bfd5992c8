import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { toUnit } from '#provider';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, memoryOf } from '../support/requests.ts';
import { NO_CHROMA, openChroma, openProvider, runChroma } from './start.ts';

/** Writes to a collection after which Chroma writes its index to files and purges its log (`hnsw:sync_threshold`). */
const LOGGED = 1_000;

/** Prints the tables of a database that have a row with this text. */
const TABLES_WITH = `
import sqlite3, sys
db = sqlite3.connect('file:%s?mode=ro' % sys.argv[1], uri=True)
for (name,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
    if any(sys.argv[2] in str(row) for row in db.execute('select * from "%s"' % name)): print(name)`;

/** Whether a file has these numbers one after another. The index rounds them. */
function hasVector(bytes: Buffer, vector: Float32Array): boolean {
  const numbers = new Float32Array(Uint8Array.from(bytes).buffer, 0, Math.floor(bytes.length / 4));
  return numbers.some((_, at) => vector.every((number, i) => Math.abs((numbers[at + i] as number) - number) < 1e-5));
}

describe.skipIf(NO_CHROMA !== '' || !existsSync('/usr/bin/python3'))(
  `an erase on Chroma${NO_CHROMA && ` (${NO_CHROMA})`}`,
  () => {
    it('[Decision 62] leaves what the page says: the log of Chroma and the space of deleted rows for a time, and vectors in its index', async () => {
      const server = await openChroma();
      onTestFinished(server.close);
      const embedder = hashingEmbedder();
      const provider = await openProvider({ url: server.url, collection: 'erased' });
      const add = async (user_id: string, contents: readonly string[], more: object = {}) => {
        const vectors = await embedder.embed([...contents], 'document', call);
        const items = contents.map((content, i) => ({
          input: memoryOf(user_id, content, more),
          vector: vectors[i] as Float32Array,
        }));
        await provider.batch({ items }, call);
      };
      const user_id = 'zq-user-mine';
      const addMine = () =>
        add(user_id, ['zq-content-mine'], { tags: ['zq-tag-mine'], extensions: { 'x-note': 'zq-note-mine' } });
      const addOthers = () =>
        add(
          'zq-user-theirs',
          Array.from({ length: LOGGED }, (_, n) => `note ${n}`),
        );
      const [embedded] = await embedder.embed(['zq-content-mine'], 'document', call);
      const vector = toUnit(embedded as Float32Array);
      const sought = ['user', 'content', 'tag', 'note'].map((what) => Buffer.from(`zq-${what}-mine`));
      const files = () =>
        readdirSync(server.folder, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => ({ name: entry.name, bytes: readFileSync(join(entry.parentPath, entry.name)) }));
      const withTexts = () =>
        sought.map((text) =>
          files()
            .filter(({ bytes }) => bytes.includes(text))
            .map(({ name }) => name),
        );
      const withVector = () =>
        files()
          .filter(({ bytes }) => hasVector(bytes, vector))
          .map(({ name }) => name);
      const tables = () =>
        execFileSync('/usr/bin/python3', ['-c', TABLES_WITH, join(server.folder, 'chroma.sqlite3'), '-mine'], {
          encoding: 'utf8',
        });

      // One memory in the files of the index, the other in the log.
      await addMine();
      await addOthers();
      await addMine();
      expect(tables()).toMatch(/embedding_metadata\n[\s\S]*embedding_fulltext_search\n[\s\S]*embeddings_queue\n/);
      expect(withTexts()).toEqual(sought.map(() => ['chroma.sqlite3']));
      expect(withVector()).toContain('data_level0.bin');

      expect(await provider.erase({ user_id }, call)).toEqual({ memories: 2, vectors: 2 });
      expect(tables()).toBe('embeddings_queue\n');
      await addOthers();
      expect(tables()).toBe('');
      await server.kill();
      await once(runChroma('vacuum', '--path', server.folder, '--force'), 'exit');
      expect(withTexts()).toEqual(sought.map(() => []));
      expect(withVector()).toEqual(['data_level0.bin']);
    });
  },
);
