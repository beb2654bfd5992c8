import { expect, it } from 'vitest';
import { dataFolder, runProgram, startGateway } from '../process/gateway.ts';

const RULES = [
  { tag: 'keep', days: null },
  { scope: 'chat/*', days: 30 },
  { days: 90, by: 'updated_at' },
];
const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();
/** More than one request looks at. */
const MEMORIES = 2_100;

it('[Decision 60] counts by user, scope and rule in a dry run, and deletes just that, beside a gateway and without one', async () => {
  const env = {
    OMP_SEARCH_MODE: 'keyword',
    OMP_DATA_DIR: await dataFolder(),
    OMP_RETENTION: JSON.stringify(RULES),
  };
  const gateway = await startGateway({ env });
  const memories = Array.from({ length: MEMORIES }, (_, n) => ({
    ...{
      id: `m-${n}`,
      user_id: n < 4 ? 'ana\u001b' : 'ben',
      content: `note ${n}`,
      created_at: daysAgo(n < 8 ? 60 : 1),
    },
    ...(n % 2 === 0 && { scope: n < 4 ? 'chat/a' : 'chat/b' }),
    ...(n === 2 && { tags: ['keep'] }),
  }));
  for (let at = 0; at < MEMORIES; at += 100)
    await gateway.client.tell('POST', '/import', { memories: memories.slice(at, at + 100) });
  const retention = async (args: readonly string[], status = 0, more: Record<string, string> = env) => {
    const ended = await runProgram({ args: ['retention', ...args], env: more });
    expect(ended.status, ended.stdout + ended.stderr).toBe(status);
    return ended;
  };

  const shown = [
    'rule 1: tag keep: kept',
    'rule 2: scope chat/*: 30 days after created_at',
    'rule 3: everything else: 90 days after updated_at',
    'ana\\u001b  chat/a  rule 2  1',
    'ben  chat/b  rule 2  2',
  ];
  const dry = await retention([gateway.url, '--dry-run'], 0, {});
  expect(dry.stdout.trim().split('\n')).toEqual([
    ...shown,
    'Dry run: to delete 3 of 2,100 memories; 1 kept by rules without days.',
  ]);
  expect((await gateway.client.list({ user_id: 'ben', limit: 500, scope: 'chat/b' })).items).toHaveLength(500);
  await gateway.stop();

  const done = JSON.parse((await retention(['--json'])).stdout);
  expect(done).toMatchObject({ dry_run: false, rules: RULES, looked: MEMORIES, deleted: 3, 'x-partial': [] });
  expect(done.items).toHaveLength(2);
  expect(done.kept).toEqual([{ rule: 1, memories: 1 }]);
  const { OMP_RETENTION: _, ...without } = env;
  expect((await retention([], 1, without)).stderr).toContain('has no rules');
});
