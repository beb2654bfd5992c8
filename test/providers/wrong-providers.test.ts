import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { temporaryFolder } from '../process/gateway.ts';
import { WRONG } from './wrong-providers.ts';

interface Outcome {
  readonly ancestorTitles: readonly string[];
  readonly title: string;
  readonly status: 'passed' | 'failed' | 'skipped' | 'pending';
}

const EXPECTED = Object.entries(WRONG).map(([name, { fails }]) => ({ name, title: fails }));

it('[Decision 50] the published suite finds each wrong provider, and nothing wrong in the right one', async () => {
  const output = join(temporaryFolder(), 'outcomes.json');
  const titles = EXPECTED.map(({ title }) => title).filter((title) => title !== '');
  const args = [
    'run',
    '--config',
    'test/providers/wrong-providers.config.ts',
    '--reporter=json',
    '--outputFile',
    output,
  ];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^VITEST/.test(name)));
  const vitest = join(packageRoot(), 'node_modules/vitest/vitest.mjs');
  // Its status is 1, because tests fail.
  await new Promise((resolve) =>
    execFile(process.execPath, [vitest, ...args, '-t', titles.join('|')], { cwd: packageRoot(), env }, resolve),
  );
  const report = JSON.parse(readFileSync(output, 'utf8')) as { testResults: { assertionResults: Outcome[] }[] };
  const outcomes = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = EXPECTED.map(({ name }) => {
    const own = outcomes.filter(({ ancestorTitles: [label = ''] }) => label.replace(', opened again', '') === name);
    const failures = own.filter(({ status }) => status === 'failed').map(({ title }) => title);
    return { name, ran: own.some(({ status }) => status === 'passed'), failures };
  });
  expect(failed).toEqual(
    EXPECTED.map(({ name, title }) => ({
      name,
      ran: true,
      failures: title === '' ? [] : expect.arrayContaining([expect.stringContaining(title)]),
    })),
  );
});
