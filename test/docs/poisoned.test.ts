import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { serve } from '../../src/serve.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/subject.ts';
import { inTermsOf } from './examples.ts';
import { blocks, ROOT, read } from './markdown.ts';

/** Stands for the command of the package: the address in the document is that of the gateway of this test. */
const COMMAND = `#!/bin/sh
exec node -e '
const { spawnSync } = require("node:child_process");
const args = process.argv.slice(1).map((text) => text.replace("http://127.0.0.1:8080", process.env.OMP_EXAMPLE_URL));
process.exit(spawnSync(process.execPath, [${JSON.stringify(join(ROOT, 'dist/src/main.js'))}, ...args], { stdio: "inherit" }).status);
' -- "$@"
`;

it('[Decision 56] the story of docs/security/poisoned-assistant.md works as written, in one shell, on a fresh gateway', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'omp-story-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { config } = loadConfig({ env: { OMP_PORT: '0', OMP_DATA_DIR: folder } });
  const gateway = await serve(config, recordingLog());
  onTestFinished(gateway.close);
  writeFileSync(join(folder, 'omp-gateway'), COMMAND, { mode: 0o755 });
  writeFileSync(join(folder, 'curl'), `#!/bin/sh\nexec node ${join(ROOT, 'test/docs/curl.mjs')} "$@"\n`, {
    mode: 0o755,
  });
  const state = join(folder, 'state');
  writeFileSync(state, '');
  const env = {
    ...process.env,
    ...{ PATH: `${folder}:${process.env.PATH}`, OMP_DATA_DIR: folder },
    ...{ OMP_EXAMPLE_URL: `http://127.0.0.1:${gateway.port}`, OMP_EXAMPLE_STRICT: '1' },
  };
  /** Variables live on from block to block. */
  const run = async (code: string): Promise<string> => {
    const script = `set -a\n. ${state}\n${code}\nexport -p > ${state}\n`;
    return (await promisify(execFile)('sh', ['-euc', script], { cwd: ROOT, env })).stdout;
  };

  const story = blocks(read('docs/security/poisoned-assistant.md'));
  const answers = story.filter(({ language }) => language !== 'sh');
  expect([story.length - answers.length, answers.length]).toEqual([7, 4]);
  const aliases = new Map<string, string>();
  const inThisRun = (text: string) => [...aliases].reduce((all, [from, to]) => all.replaceAll(from, to), text);
  for (const [place, { language, code }] of story.entries()) {
    if (language !== 'sh') continue;
    const answer = story[place + 1];
    const check = async () => {
      const output = await run(code);
      if (answer?.language === 'json') {
        const found = new Map(aliases);
        const real: unknown = JSON.parse(output);
        expect(real).toEqual(inTermsOf(JSON.parse(answer.code), real, found));
        for (const alias of found) aliases.set(...alias);
      } else if (answer?.language === 'text') {
        const lines = (text: string) => text.trim().split('\n').sort();
        expect(lines(output)).toEqual(lines(inThisRun(answer.code)));
      }
    };
    // The entry of a read takes a moment.
    await (code.includes('/audit') ? eventually(check) : check());
  }
});
