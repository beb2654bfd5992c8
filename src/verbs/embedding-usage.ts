import { z } from 'zod';
import type { UsageRow } from '#contract';
import { NOTHING_USED, sumOf } from '#toolbox';
import { NO_FACTS } from '../core/audit-queue.ts';
import { cursorKind } from '../core/cursor.ts';
import { cursor, next_cursor, short } from './fields.ts';
import { verb } from './verb.ts';

/** Rows of a page. */
const MAX_ROWS = 10_000;
/** Usual size of a row. */
const ROW_BYTES = 200;
/** The days of an answer that asks for no others, the current one included. */
const DAYS = 30;
const DAY_MS = 86_400_000;
/** The year 0 is none for a database, and 30 days before it is a year below 0. */
const FIRST_DAY = '1970-01-01';

const day = (description: string) =>
  short(10)
    .refine(
      (value) => z.iso.date().safeParse(value).success && value >= FIRST_DAY,
      `must be a day from ${FIRST_DAY} on`,
    )
    .meta({ description, format: 'date' });
const daysBefore = (until: string, days: number): string =>
  new Date(Date.parse(until) - days * DAY_MS).toISOString().slice(0, 10);

const UsageCursor = cursorKind<UsageRow>('embedding-usage', {
  position: ({ day, app, model }) => ({
    created_at: `${day}T00:00:00.000Z`,
    id: `${model.length}~${model}${app ?? ''}`,
  }),
  place({ created_at, id }) {
    const [, length, names] = /^(\d{1,3})~(.*)$/su.exec(id) ?? [];
    if (names === undefined) return undefined;
    const end = Number(length);
    return { day: created_at.slice(0, 10), app: names.slice(end) || null, model: names.slice(0, end) };
  },
});

const USED = {
  texts: z.int().min(0).meta({ description: 'Texts that the service has embedded.' }),
  tokens: z
    .int()
    .min(0)
    .nullable()
    .meta({ description: 'Tokens that the service reported; null: unknown, because it did not report all.' }),
  requests: z.int().min(0).meta({ description: 'Requests that reached it, with retries and failures.' }),
};

/** What embedding costs (Decision 63). It is about all callers, so it demands what their keys do. */
export const embeddingUsage = verb({
  name: 'embedding_usage',
  method: 'GET',
  path: '/embedding-usage',
  input: z.object({
    since: day(`First day, UTC; default: ${DAYS - 1} days before the last one.`).optional(),
    until: day('Last day, UTC; default: today.').optional(),
    cursor,
  }),
  needs: ['embeddingUsage'],
  remedy: 'it is counted with OMP_EMBEDDER=openai; the bundled model costs nothing',
  feature: 'embedding_usage',
  demands: { admin: true },
  facts: () => NO_FACTS,
  async run(
    { until = new Date().toISOString().slice(0, 10), since = daysBefore(until, DAYS - 1), cursor },
    access,
    call,
  ) {
    const usage = access.store.embeddingUsage;
    const filters = { since, until };
    const after = UsageCursor.read(cursor, filters);
    const read = async () => {
      const rows = await usage.read({ since, until, after, limit: MAX_ROWS + 1 }, call);
      return { result: rows, count: 0, bytes: rows.length * ROW_BYTES };
    };
    const rows = await access.shares.records(MAX_ROWS, call, read, ROW_BYTES);
    const items = rows.slice(0, MAX_ROWS);
    const last = rows.length > MAX_ROWS ? items.at(-1) : undefined;
    return {
      ...{ since, until, counted_since: usage.since() ?? null, items, totals: items.reduce(sumOf, NOTHING_USED) },
      next_cursor: UsageCursor.write(last, filters),
    };
  },
  id: 'getEmbeddingUsage',
  summary: 'Get what embedding costs, by day and caller',
  description: `Texts, tokens and requests that the embedding service was used for, of all stores of this gateway. Available if
\`features.embedding_usage\` is true: an embedding service is configured. An answer has at most 10,000 items: pass \`next_cursor\` as \`cursor\`, with
the same days, until it is null, and add up the totals.`,
  success: {
    description: 'The days, newest first.',
    schema: z
      .looseObject({
        since: z.string().meta({ description: 'First day.', format: 'date' }),
        until: z.string().meta({ description: 'Last day.', format: 'date' }),
        counted_since: z.string().nullable().meta({
          description: 'The store keeps no usage: that from before is not known; null: it does.',
          format: 'date-time',
        }),
        items: z.array(
          z.looseObject({
            day: z.string().meta({ description: 'Day, UTC.', format: 'date' }),
            app: z.string().nullable().meta({
              description:
                'Name of the key or subject of the token; null: anonymous, or the gateway itself; `(others)`: more names than a gateway counts by themselves.',
            }),
            model: z.string().meta({ description: 'The embedding model.' }),
            ...USED,
          }),
        ),
        totals: z.looseObject(USED).meta({ description: 'The sums of these items.' }),
        next_cursor,
      })
      .meta({ id: 'EmbeddingUsage' }),
    example: {
      since: '2026-03-01',
      until: '2026-03-02',
      counted_since: null,
      items: [
        { day: '2026-03-02', app: 'editor', model: 'text-embedding-3-small', texts: 120, tokens: 4310, requests: 31 },
        { day: '2026-03-01', app: null, model: 'text-embedding-3-small', texts: 8, tokens: 190, requests: 4 },
      ],
      totals: { texts: 128, tokens: 4500, requests: 35 },
      next_cursor: null,
    },
  },
  consistent: false,
  tag: 'keys',
});
