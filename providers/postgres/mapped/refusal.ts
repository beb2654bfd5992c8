import { OmpError, providerError } from '#contract';
import { codeOf, PROVIDER } from '../errors.ts';
import { FIELDS, FORMS } from './field-mapping.ts';
import type { Layout } from './layout.ts';

/** `division_by_zero`, see `recheck`. */
const RECHECK_FAILED = '22012';

/** What a client is told of a row that the table does not take, by SQLSTATE. */
const MESSAGES: Readonly<Record<string, string>> = {
  '23502': 'the table demands a value here',
  '23503': 'the table demands that this refers to another row',
  '23505': 'the table has such a row already',
  '23514': 'the table has a rule against this',
  '22': 'does not fit the column',
  '23': 'the table does not take this',
};

/** The owner's columns and rules may be narrower than the protocol: then the request is at fault, not the database. */
export async function refusing<Result>(layout: Layout, write: Promise<Result>): Promise<Result> {
  try {
    return await write;
  } catch (error) {
    const cause = error instanceof OmpError ? error.cause : undefined;
    const code = codeOf(cause) ?? '';
    if (code === RECHECK_FAILED)
      throw providerError(PROVIDER, 'the table wrote another row than it was asked to; undone', cause);
    const message = MESSAGES[code] ?? MESSAGES[code.slice(0, 2)];
    if (message === undefined) throw error;
    throw new OmpError('invalid_request', `${fieldsOf(layout, code, cause)}: ${message}`, {
      provider: PROVIDER,
      cause,
    });
  }
}

/** The driver names the column of a missing value and of little else; a text that is too long is in one of some. */
function fieldsOf({ fields }: Layout, code: string, cause: unknown): string {
  const column = (cause as { readonly column?: unknown }).column;
  const candidates = FIELDS.filter((name) => {
    const write = fields[name]?.write;
    if (write?.kind !== 'column') return false;
    if (typeof column === 'string') return write.column === `"${column.replaceAll('"', '""')}"`;
    return code === '22001' && FORMS[name] === 'text';
  });
  return candidates.length > 0 ? candidates.join(' or ') : 'memory';
}
