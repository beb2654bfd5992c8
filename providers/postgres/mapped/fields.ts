/** What a memory consists of besides its id and vector, and the form each field has on the wire. */
export const FORMS = {
  content: 'text',
  user_id: 'text',
  scope: 'text',
  tags: 'list',
  source: 'json',
  confidence: 'number',
  created_at: 'time',
  updated_at: 'time',
  valid_from: 'time',
  valid_to: 'time',
  supersedes: 'list',
  extensions: 'json',
} as const;

export type FieldName = keyof typeof FORMS;
export type Form = (typeof FORMS)[FieldName];
export const FIELDS = Object.keys(FORMS) as readonly FieldName[];
