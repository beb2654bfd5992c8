import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { type Gateway, serve } from '../../src/serve.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/subject.ts';
import { examplesIn, inTermsOf, shellFor } from './examples.ts';
import { read } from './markdown.ts';

/** Documents that share a gateway. The first of two deletes what it stores; a last one may close the gateway with a key. */
const GATEWAYS = [['docs/http-api.md', 'README.md'], ['docs/getting-started.md']];

describe.each(GATEWAYS)('the examples of %s', (...documents) => {
  const folder = mkdtempSync(join(tmpdir(), 'omp-docs-'));
  let gateway: Gateway;
  beforeAll(async () => {
    const { config } = loadConfig({ env: { OMP_PORT: '0', OMP_DATA_DIR: folder } });
    gateway = await serve(config, recordingLog());
  });
  afterAll(async () => {
    await gateway?.close();
    rmSync(folder, { recursive: true });
  });

  it.each(documents)(
    '%s: they work as written in the default configuration, and are answered as documented',
    async (document) => {
      const run = shellFor(`http://127.0.0.1:${gateway.port}`, folder);
      const aliases = new Map<string, string>();
      const examples = examplesIn(read(document));
      expect(examples.length).toBeGreaterThan(2);
      for (const { code, answer } of examples) {
        const real = [...aliases].reduce((text, [documented, actual]) => text.replaceAll(documented, actual), code);
        const check = async (): Promise<void> => {
          const output = await run({ code: real, answer });
          if (answer === undefined) return;
          const parsed: unknown = JSON.parse(output);
          const found = new Map(aliases);
          expect(parsed, code).toEqual(inTermsOf(JSON.parse(answer), parsed, found));
          for (const alias of found) aliases.set(...alias);
        };
        // A new key and the audit entry of a read take effect within seconds.
        if (answer?.includes('"unauthorized"') || code.includes('/audit')) await eventually(check);
        else await check();
      }
    },
  );
});
