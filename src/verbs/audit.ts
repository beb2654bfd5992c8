import { z } from 'zod';
import { AUDIT_ACTIONS, type AuditQuery, ERROR_CODES, type StoredEntry } from '#contract';
import { cursorKind } from '../core/cursor.ts';
import { cursor, next_cursor, queryDate, sourceText, time, userId, wholeNumber } from './fields.ts';
import { verb } from './verb.ts';
import { memoryExample, withoutUndefined } from './wire-memory.ts';

/** Usual size of an audit entry. */
const ENTRY_BYTES = 300;

const AuditInput = z.object({
  user_id: userId,
  app: sourceText
    .optional()
    .meta({ description: 'Only entries of this caller: the name of a key or the subject of a token.' }),
  since: queryDate.optional(),
  until: queryDate.optional(),
  limit: wholeNumber('Maximum entries per page', 1, 1000).default(100),
  cursor,
});

const AuditCursor = cursorKind<NonNullable<AuditQuery['after']>>(undefined, {
  position: ({ timestamp, seq }) => ({ created_at: timestamp, id: String(seq) }),
  place: ({ created_at, id }) =>
    Number.isSafeInteger(Number(id)) ? { timestamp: created_at, seq: Number(id) } : undefined,
});

/** SPEC, GET /audit (Decision 11). */
export const audit = verb({
  name: 'audit',
  method: 'GET',
  path: '/audit',
  input: AuditInput,
  needs: ['audit'],
  demands: { read: 'some', users: { in: 'user_id' } },
  facts: ({ user_id }, access) => access.facts({ user_id }),
  async run({ cursor, limit, ...filters }, access, call) {
    const { auditQueue, shares, bounds } = access;
    const { read } = auditQueue;
    if (!read) throw access.unsupported('audit');
    const query = withoutUndefined(filters);
    const after = AuditCursor.read(cursor, query);
    // One more than requested shows whether there is a next page.
    const page = async () => {
      const entries = await read({ limit: limit + 1, ...query, ...(after && { after }), within: bounds.within }, call);
      for (const entry of entries) access.readable(entry, query.user_id);
      return { result: entries, count: 0, bytes: entries.length * ENTRY_BYTES };
    };
    const all = await shares.records(limit + 1, call, page, ENTRY_BYTES);
    const entries = all.slice(0, limit);
    const last = all.length > limit ? entries.at(-1) : undefined;
    return {
      entries: entries.map(entryToWire),
      next_cursor: AuditCursor.write(last, query),
    };
  },
  id: 'readAudit',
  summary: "Read the audit log of a user's memories",
  description: `Successful and failed requests, newest first, if \`features.supports_audit\` is true. The entry of a search or
list has the requested scope. Requests with an unknown id, or for a user without access, belong to no user and are not
returned. Contents and queries are never recorded.`,
  success: {
    description: 'The entries.',
    schema: z
      .looseObject({
        entries: z
          .array(
            z.looseObject({
              timestamp: time('Time of the request, UTC.'),
              app: z
                .string()
                .nullable()
                .meta({ description: 'Name of the key or subject of the token; null: anonymous.' }),
              action: z.enum(AUDIT_ACTIONS).meta({ description: 'The verb, or another call of this gateway.' }),
              memory_id: z.string().nullable().meta({ description: 'Null: the verb has no single memory.' }),
              scope: z.string().nullable().meta({ description: 'Scope of the memory, or the requested one.' }),
              request_id: z.string().meta({ description: 'Id of the request, as in the access log.' }),
              outcome: z.enum(['ok', ...ERROR_CODES]).meta({ description: '`ok`, or the code of the error.' }),
            }),
          )
          .meta({ description: 'Newest first.' }),
        next_cursor,
      })
      .meta({ id: 'AuditLog' }),
    example: {
      entries: [
        {
          timestamp: memoryExample.created_at,
          app: 'editor',
          action: 'add',
          memory_id: memoryExample.id,
          scope: memoryExample.scope,
          request_id: '7f9c2ba4-e88f-4a7d-9c1b-0d5e3a6f2b10',
          outcome: 'ok',
        },
      ],
      next_cursor: null,
    },
  },
  consistent: false,
});

/** `user_id` is the requested one, and `seq` is in the cursor only. */
export const entryToWire = ({ user_id: _, seq: __, ...entry }: StoredEntry) => entry;
