import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { CLAUSES } from '../../src/conformance/clauses.ts';
import { packageRoot } from '../../src/package.ts';
import type { GetSubject } from './subject.ts';

interface Exchange {
  readonly asked: string;
  readonly answered: string;
}

const MAX_SHOWN = 1_000;
const cut = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);

/** Adds to the message of a failed test what was asked, what came, what the provider threw, and which rules the test checks. */
export const explainFailures = (subject: GetSubject) => {
  let last: Promise<Exchange> | undefined;
  let isWatched = false;
  return ({ task, onTestFailed }: TestContext): void => {
    const { app, lines } = subject();
    if (!isWatched) watch(app);
    isWatched = true;
    last = undefined;
    const before = lines.length;
    onTestFailed(async () => {
      const { asked, answered } = (await last) ?? {};
      const thrown = lines.slice(before).flatMap(({ fields }) => ('err' in fields ? [explained(fields.err)] : []));
      const notes = [
        ...(asked === undefined ? [] : [`Last asked: ${asked}`, `Answered: ${answered}`]),
        ...(thrown.length === 0 ? [] : [`The provider threw: ${thrown.at(-1)}`]),
        ...rulesOf(task.name),
      ];
      for (const error of task.result?.errors ?? []) error.message += `\n\n${notes.join('\n')}\n`;
    });
  };

  function watch(app: ReturnType<GetSubject>['app']): void {
    const { request } = app;
    app.request = async (input, init, ...rest) => {
      const answer = await request(input, init, ...rest);
      const copy = answer.clone();
      const text = copy.text().catch(String);
      last = text.then((answered) => ({
        asked: cut(`${init?.method ?? 'GET'} ${input} ${init?.body ?? ''}`),
        answered: cut(`${copy.status} ${answered}`),
      }));
      return answer;
    };
  }
};

/** Errors of a provider, with their causes and the first lines of the innermost stack. */
function explained(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause !== undefined) return `${error.message}\n  because: ${explained(error.cause)}`;
  return (error.stack ?? error.message).split('\n').slice(0, 6).join('\n');
}

/** The rules that a title cites: a sentence of the specification, or the page of a decision. */
function rulesOf(title: string): string[] {
  const pages = readdirSync(join(packageRoot(), 'docs/decisions'));
  return [...title.matchAll(/\[(SPEC|Decision) ([^\]]+)\]/g)].map(([, kind, name = '']) => {
    if (kind === 'SPEC') return `Rule: ${name}: ${CLAUSES[name] ?? ''}`;
    const page = pages.find((each) => each.startsWith(`${name.padStart(2, '0')}-`)) ?? '';
    return `Rule: ${join(packageRoot(), 'docs/decisions', page)}`;
  });
}
