import type { RetentionItem, RetentionRule } from '../../../clients/typescript/src/index.ts';
import type { Commands } from '../../cli/command.ts';
import type { Run } from '../../cli/move-run.ts';
import { memories, number } from '../../cli/progress.ts';
import { END, flag, STORES, type StoreRequest } from '../../cli/store-arguments.ts';
import { storeCommand } from '../../cli/store-command.ts';
import { printable } from '../../cli/terminal.ts';

async function runRetention({ names, values }: StoreRequest, run: Run): Promise<number> {
  const { stdout } = run.terminal;
  const { name, client, capabilities } = await run.open(names[0] ?? 'config', 'to');
  if (!capabilities.features.retention) throw new Error(`${name} cannot do it (features.retention is not true)`);
  const dry_run = values['dry-run'] === true;
  const items = new Map<string, RetentionItem>();
  const kept = new Map<number, number>();
  const lacking = { 'x-partial': new Set<string>(), 'x-without': new Set<string>() };
  let rules: readonly RetentionRule[] = [];
  let looked = 0;
  let deleted = 0;
  let failed = 0;
  run.onStop(() => `${memories(deleted)} of ${name} ${dry_run ? 'would be' : 'are'} deleted; the same command goes on`);
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await client.retention({ dry_run, cursor }, { signal: run.signal }).page();
    ({ rules } = page);
    looked += page.looked;
    failed += page.failed;
    for (const item of page.items) {
      const key = JSON.stringify([item.user_id, item.scope, item.rule]);
      items.set(key, { ...item, memories: item.memories + (items.get(key)?.memories ?? 0) });
      deleted += item.memories;
    }
    for (const one of page.kept) kept.set(one.rule, one.memories + (kept.get(one.rule) ?? 0));
    for (const key of ['x-partial', 'x-without'] as const) for (const store of page[key] ?? []) lacking[key].add(store);
    cursor = page.next_cursor ?? undefined;
    run.progress({ done: looked });
  }
  run.end();
  if (rules.length === 0) throw new Error(`${name} has no rules (retention): nothing is deleted`);
  const [partial, without] = [[...lacking['x-partial']], [...lacking['x-without']]];
  const status = partial.length > 0 || failed > 0 ? 1 : 0;
  if (values.json) {
    const keptBy = [...kept].map(([rule, memories]) => ({ rule, memories }));
    const counts = { dry_run, rules, looked, deleted, failed, items: [...items.values()], kept: keptBy };
    stdout.write(`${JSON.stringify({ ...counts, 'x-partial': partial, 'x-without': without }, null, 2)}\n`);
    return status;
  }
  for (const [at, rule] of rules.entries()) stdout.write(`rule ${at + 1}: ${ruleText(rule)}\n`);
  for (const { user_id, scope, rule, memories } of items.values()) {
    stdout.write(`${[user_id, scope ?? '-', `rule ${rule}`].map(printable).join('  ')}  ${number(memories)}\n`);
  }
  const protectedBy = [...kept.values()].reduce((sum, count) => sum + count, 0);
  const end = dry_run ? 'Dry run: to delete' : status > 0 ? 'Not all: deleted' : 'Done: deleted';
  stdout.write(
    `${end} ${number(deleted)} of ${memories(looked)}; ${number(protectedBy)} kept by rules without days.\n`,
  );
  if (failed > 0) stdout.write(`${memories(failed)} could not be deleted: the same command tries again.\n`);
  for (const one of partial)
    stdout.write(`Nothing of ${printable(one)}, which does not answer: the same command goes on.\n`);
  for (const one of without) stdout.write(`Nothing of ${printable(one)}, where retention cannot delete.\n`);
  return status;
}

function ruleText({ scope, tag, days, by = 'created_at' }: RetentionRule): string {
  const which = [scope === undefined ? [] : `scope ${scope}`, tag === undefined ? [] : `tag ${tag}`].flat();
  const what = which.length === 0 ? 'everything else' : which.map(printable).join(', ');
  if (days === null) return `${what}: kept`;
  return `${what}: ${number(days)} ${days === 1 ? 'day' : 'days'} after ${by}`;
}

export const commands: Commands = {
  retention: storeCommand({
    usage: `Usage: omp-gateway retention [STORE] [options]

Deletes the memories whose time is over by the rules of the configuration
("retention"), as a gateway does by itself once a day, and prints how many, by
user and scope; look at it with --dry-run first. The rules are those of the
STORE. After an interruption, the same command goes on.

${STORES}
                      Its key needs the grants read:* and delete:*

Options:
  --dry-run           Change nothing
${END}`,
    options: { 'dry-run': flag },
    positionals: ['STORE'],
    optional: true,
    run: runRetention,
  }),
};
