import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toSql } from 'pgvector';
import { expect, test } from 'vitest';
import { runDoctor } from '../../src/cli/doctor.ts';
import { loadConfig } from '../../src/config/load.ts';
import { serve } from '../../src/serve.ts';
import { openAiServer, vectorOf } from '../mapped/documented.ts';
import { PRESET_TABLES } from '../mapped/preset-tables.ts';
import { startPinecone } from '../pinecone-server/start.ts';
import { testDatabase } from '../postgres/databases.ts';
import { temporaryFolder } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { recordingLog } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';
import { blocks, read } from './markdown.ts';

const yaml = blocks(read('docs/stores.md')).find(({ language }) => language === 'yaml')?.code ?? '';
const LANGCHAIN = PRESET_TABLES.find(({ page }) => page === 'langchain-py');

test.skipIf(SERVER_URL === '')(
  `[Decision 48] the configuration of docs/stores.md serves Postgres, a table of LangChain and an index on Pinecone${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`,
  async () => {
    const [root, handbook, pinecone, openai] = await Promise.all([
      testDatabase(),
      testDatabase(),
      startPinecone({ dimension: 512 }),
      openAiServer(),
    ]);
    const closing = [() => pinecone.close(), openai.close];
    try {
      await handbook.sql('create extension vector');
      for (const statement of LANGCHAIN?.ddl ?? []) await handbook.sql(statement);
      const text = 'Acme has its own rules for holidays';
      const row = [randomUUID(), 'my_docs', toSql([...(await vectorOf(text, 3072))]), text, { user_id: 'ana' }];
      let parameter = 0;
      await handbook.sql(
        (LANGCHAIN?.insert ?? '').replace(/:\w+/g, () => `$${++parameter}`),
        row,
      );

      const file = join(temporaryFolder(), 'gateway.yaml');
      writeFileSync(file, yaml);
      const env = {
        OMP_CONFIG: file,
        OMP_PORT: '0',
        DATABASE_URL: root.url,
        HANDBOOK_URL: handbook.url,
        OPENAI_API_KEY: 'sk-test',
        OPENAI_BASE_URL: openai.base_url,
        PINECONE_API_KEY: 'test',
        CRM_INDEX_HOST: pinecone.url,
      };
      let told = '';
      const output = { write: (piece: string) => (told += piece) };
      expect(await runDoctor([], { env, stdout: output, stderr: output }), told).toBe(0);
      expect(told).toContain('the gateway creates');
      const { config, warnings } = loadConfig({ env });
      expect(warnings).toEqual([]);
      const gateway = await serve(config, recordingLog());
      closing.unshift(gateway.close);
      const client = clientOf((path, init) => fetch(`http://127.0.0.1:${gateway.port}${path}`, init));

      const renewal = await client.add({ user_id: 'ana', scope: 'crm/acme', content: 'Acme renews in May' });
      expect(renewal.id).toMatch(/^~crm~/);
      expect(Object.keys(await pinecone.records('memories'))).not.toEqual([]);
      const own = await client.add({ user_id: 'ana', content: 'calls Acme on Mondays' });
      const { items } = await client.list({ user_id: 'ana' });
      // The rows of LangChain have no times.
      expect(items.map(({ scope }: WireMemory) => scope)).toEqual([null, 'crm/acme', 'team/handbook']);
      expect(items[0]?.id).toBe(own.id);
      const found = await client.ask('/memories/search', { user_id: 'ana', q: 'Acme', explain: 'true' });
      const { results } = found.body as {
        results: { memory: WireMemory; explanation: { store?: string; store_weight?: number } }[];
      };
      expect(new Map(results.map(({ memory, explanation }) => [memory.scope, explanation.store]))).toEqual(
        new Map([
          [null, undefined],
          ['crm/acme', 'crm'],
          ['team/handbook', 'handbook'],
        ]),
      );
      expect(results.find(({ explanation }) => explanation.store === 'handbook')?.explanation.store_weight).toBe(0.9);
      const { 'x-stores': stores } = (await client.ask('/capabilities')).body as {
        'x-stores': { name: string; verbs: string[] }[];
      };
      expect(stores.map(({ name, verbs }) => [name, verbs.includes('add')])).toEqual([
        ['handbook', false],
        ['crm', true],
      ]);
    } finally {
      for (const close of closing) await close();
    }
  },
);
