import type { Answer } from './ask.ts';
import { MODES, type Mode } from './backends.ts';
import { disagreements } from './compare.ts';
import type { Question } from './dataset.ts';
import { beats, type Metrics, mean, measure } from './metrics.ts';

/** The results of one backend in each mode. */
export interface Run {
  readonly label: string;
  readonly answers: Readonly<Record<Mode, readonly Answer[]>>;
}

export interface Report {
  readonly text: string;
  /** Hybrid beats vector and keyword on every backend, and every backend agrees with the first on every question. */
  readonly passed: boolean;
}

/** `runs` share the questions; the others are compared with the first. */
export function report(questions: readonly Question[], runs: readonly Run[]): Report {
  const [reference] = runs;
  if (reference === undefined) throw new Error('There is nothing to report on.');
  const scored = runs.map((run) => ({ run, score: (mode: Mode) => mean(measureAll(questions, run.answers[mode])) }));
  const verdicts = [
    ...scored.map(({ run, score }) => ({
      claim: `hybrid beats vector and keyword: ${run.label}`,
      holds: beats(score('hybrid'), score('vector')) && beats(score('hybrid'), score('keyword')),
      detail: '',
    })),
    ...runs.slice(1).flatMap((run) =>
      MODES.map((mode) => {
        const differing = disagreements(reference.answers[mode], run.answers[mode]);
        const examples = differing.slice(0, 3).map((index) => `"${questions[index]?.question}"`);
        return {
          claim: `${run.label} agrees with ${reference.label}: ${mode}`,
          holds: differing.length === 0,
          detail: `, ${differing.length} of ${questions.length} differ ${examples.join(', ')}`,
        };
      }),
    ),
  ];
  const text = [
    ...scored.map(({ run, score }) =>
      metricsTable(
        run.label,
        MODES.map((mode) => [mode, score(mode)]),
      ),
    ),
    metricsTable(`hybrid by kind, ${reference.label}`, byKind(questions, reference.answers.hybrid)),
    verdicts.map(({ claim, holds, detail }) => `${holds ? 'yes' : 'NO '} ${claim}${detail}`.trimEnd()).join('\n'),
  ].join('\n\n');
  return { text, passed: verdicts.every(({ holds }) => holds) };
}

const measureAll = (questions: readonly Question[], answers: readonly Answer[]): Metrics[] =>
  questions.map(({ evidence }, index) =>
    measure(
      (answers[index] as Answer).map(({ key }) => key),
      evidence,
    ),
  );

function byKind(questions: readonly Question[], answers: readonly Answer[]): [string, Metrics][] {
  const metrics = measureAll(questions, answers);
  const kinds = [...new Set(questions.map(({ kind }) => kind))];
  return kinds.map((kind) => {
    const own = metrics.filter((_, index) => questions[index]?.kind === kind);
    return [`${kind} (${own.length})`, mean(own)];
  });
}

const metricsTable = (title: string, rows: readonly (readonly [string, Metrics])[]): string =>
  table(
    [title, 'recall@1', 'recall@5', 'recall@10', 'MRR'],
    rows.map(([label, { recall1, recall5, recall10, mrr }]) => [label, recall1, recall5, recall10, mrr]),
  );

/** Columns of figures with their header. */
export function table(
  header: readonly [string, ...string[]],
  rows: readonly (readonly [string, ...number[]])[],
): string {
  const width = Math.max(...[header, ...rows].map(([label]) => label.length));
  const line = ([label, ...cells]: readonly [string, ...string[]]): string =>
    [label.padEnd(width), ...cells.map((cell) => cell.padStart(9))].join('  ');
  const figures = rows.map(([label, ...values]) => line([label, ...values.map((value) => value.toFixed(3))]));
  return [line(header), ...figures].join('\n');
}
