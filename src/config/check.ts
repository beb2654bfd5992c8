import type { z } from 'zod';
import { faultMessage, type Input } from './mistakes.ts';
import { BY_KEY } from './schema-reader.ts';

/** What the schema makes of the inputs; undefined: it finds mistakes, which are added. `known`: the settings of the schema. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  inputs: ReadonlyMap<string, Input>,
  mistakes: string[],
  known = BY_KEY,
): z.output<Schema> | undefined {
  const { data, error } = schema.safeParse(nest(inputs));
  mistakes.push(...new Set(error?.issues.map((issue) => messageOf(issue, inputs, known))));
  return data;
}

function messageOf(issue: z.core.$ZodIssue, inputs: ReadonlyMap<string, Input>, known: typeof BY_KEY): string {
  const [first, second, ...rest] = issue.path;
  const section = !known.has(String(first));
  const key = section ? `${String(first)}.${String(second)}` : String(first);
  const setting = known.get(key);
  const each = inputs.get(key);
  if (!setting || !each) return `${key} is not valid`;
  // The text of this kind quotes what was written, which may be a key in the wrong place.
  const message = issue.code === 'unrecognized_keys' ? 'has an unknown field' : issue.message;
  return faultMessage(setting, each, { path: section ? rest : issue.path.slice(1), message });
}

function nest(inputs: ReadonlyMap<string, Input>): Record<string, unknown> {
  const tree: Record<string, unknown> = {};
  for (const [key, { value }] of inputs) {
    const [first = '', second] = key.split('.');
    tree[first] = second === undefined ? value : { ...(tree[first] as object | undefined), [second]: value };
  }
  return tree;
}
