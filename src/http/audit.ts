import { Hono } from 'hono';
import type { KeptEntry } from '#contract';
import { decodeCursor, encodeCursor, malformed } from '../core/cursor.ts';
import type { Env } from './call.ts';
import { parseQuery } from './query.ts';
import { AuditParameters } from './schemas/requests.ts';
import { supported } from './supported.ts';

/** `GET /audit` (Decision 11). */
export const auditRoutes = (): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => {
    const audit = supported(c, 'audit');
    const { cursor, limit, user_id, app, since, until } = parseQuery(AuditParameters, c.req.url);
    const filters = {
      user_id,
      ...(app !== undefined && { app }),
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
    };
    const after = cursor === undefined ? {} : { after: positionOf(decodeCursor(cursor, filters)) };
    // One more than asked for tells whether there is a next page.
    const found = await audit({ ...filters, ...after, limit: limit + 1 }, c.get('call'));
    const entries = found.slice(0, limit);
    const last = entries.at(-1);
    const next_cursor =
      found.length > limit && last ? encodeCursor({ created_at: last.timestamp, id: String(last.seq) }, filters) : null;
    return c.json({ entries: entries.map(toWire), next_cursor });
  });

function positionOf({ created_at, id }: ReturnType<typeof decodeCursor>) {
  const seq = Number(id);
  if (!Number.isSafeInteger(seq)) throw malformed();
  return { timestamp: created_at, seq };
}

/** The owner is who was asked for. */
const toWire = ({ user_id: _, seq: __, ...entry }: KeptEntry) => entry;
