import type { z } from 'zod';
import { invalidRequest } from '#contract';

/** What the schema makes of the input, or `invalid_request` naming every field at fault. Values are never echoed. */
export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw invalidRequest(result.error.issues.map(sentence).join('; '));
}

function sentence(issue: z.core.$ZodIssue): string {
  const subject = issue.path.length === 0 ? 'body' : issue.path.join('.');
  return `${subject}: ${issue.code === 'invalid_type' ? typeMistake(issue) : issue.message}`;
}

const typeMistake = ({ message, expected }: z.core.$ZodIssueInvalidType): string =>
  message.endsWith('received undefined') ? 'is required' : `must be of type ${expected}`;
