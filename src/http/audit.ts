import { Hono } from 'hono';
import type { AuditEntry } from '#contract';
import type { Env } from './call.ts';
import { parseQuery } from './query.ts';
import { AuditParameters } from './schemas/requests.ts';
import { supported } from './supported.ts';

/** `GET /audit` (README, "Decisions" 11). */
export const auditRoutes = (): Hono<Env> =>
  new Hono<Env>().get('/', async (c) => {
    const audit = supported(c, 'audit');
    const { user_id, app, since, limit } = parseQuery(AuditParameters, c.req.url);
    const entries = await audit(
      { user_id, limit, ...(app !== undefined && { app }), ...(since !== undefined && { since }) },
      c.get('call'),
    );
    return c.json({ entries: entries.map(toWire) });
  });

/** The owner is who was asked for. */
const toWire = ({ user_id: _, ...entry }: AuditEntry) => entry;
