import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { project } from './engine.ts';
import { gatewaySuite } from './gateway.suite.ts';
import { commandsOf } from './recipes.ts';

const omp = project();
afterAll(omp.end);

const sql = (statement: string, { compose } = omp) =>
  compose('exec', '-T', 'postgres', 'psql', '-U', 'omp', '-v', 'ON_ERROR_STOP=1', '-Atc', statement);

describe('the gateway in front of the bundled Postgres', () => gatewaySuite(omp, 'gateway', true));

describe('the bundled Postgres', () => {
  it('has the shared memory that the operations ask for', async () => {
    await omp.compose('up', '--detach', '--wait', 'gateway');
    expect(await sql("select setting::int * 8 from pg_settings where name = 'shared_buffers'")).toBe('1048576');
    // A parallel build of an index allocates all of maintenance_work_mem there at once.
    await sql(`create table big as select array_fill(random(), array[64])::vector(64) as v from generate_series(1, 20000);
      alter table big set (parallel_workers = 2);
      set min_parallel_table_scan_size = 0; set maintenance_work_mem = '256MB';
      create index on big using hnsw (v vector_cosine_ops)`);
    await sql('drop table big');
  });

  it('is saved and restored by the recipe, and the memories are exported', async () => {
    const id = await sql('select min(id) from omp.memories');
    const copy = project({}, 'copy');
    const [dump = '', ...restore] = commandsOf('docs/operations.md', 'pg_dump');
    await omp.shell(dump);
    await omp.compose('stop');
    try {
      for (const line of restore) await copy.shell(line);
      await copy.compose('up', '--detach', '--wait', 'gateway');
      expect(await sql('select min(id) from omp.memories', copy)).toBe(id);
      const [line = ''] = commandsOf('docs/moving.md', 'docker compose exec');
      await copy.shell(line);
      const lines = (await copy.shell('cat memories.ndjson && rm memories.ndjson')).split('\n');
      expect(JSON.parse(lines[0] ?? '')).toMatchObject({ omp_export: 1 });
      expect(lines.join()).toContain(id);
      expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ count: lines.length - 2 });
    } finally {
      await copy.end();
    }
  });

  it('with another password than it was made with, the log names the setting', async () => {
    const wrong = project({ POSTGRES_PASSWORD: 'wrong' });
    await wrong.compose('up', '--detach', '--no-deps', '--force-recreate', 'postgres', 'gateway');
    await eventually(async () =>
      expect(await wrong.logs('gateway')).toMatch(/rejected the credentials.*POSTGRES_PASSWORD/s),
    );
  });
});
