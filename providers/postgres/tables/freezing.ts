import pg from 'pg';
import type { Call, Freeze, Freezing } from '#provider';
import type { Run } from '../client/connections.ts';
import { FROZEN } from '../postgres-errors.ts';
import type { Names } from './names.ts';

/** Of a frozen store: its presence is the freeze, and its argument says since when and by whom. */
const TRIGGER = 'omp_frozen';

/** Milliseconds that a freeze waits for the changes under way; all others wait behind it. */
const LOCK_MS = 5_000;

/** Selects `state`, JSON of a `Freeze`; no row: the store is not frozen. */
export const freezeText = ({ memories }: Names): string =>
  `select convert_from(substr(tgargs, 1, octet_length(tgargs) - 1), 'UTF8') as state from pg_trigger
   where tgrelid = to_regclass(${pg.escapeLiteral(memories)}) and tgname = '${TRIGGER}'`;

export const toFreeze = (row: { readonly state?: unknown } | undefined): Freeze | undefined =>
  typeof row?.state === 'string' ? (JSON.parse(row.state) as Freeze) : undefined;

/**
 * A trigger rejects every statement that changes memories. The lock that creating it takes waits for statements under way, so each
 * change comes wholly before the freeze or not at all. Without the trigger a change costs what it did. On Citus each shard gets it.
 * It does not reject what changes no field of a memory: vectors of the ingestion queue or of a re-embed, and the flag `large`.
 */
export function createFreezing(names: Names, run: Run): Freezing {
  const { memories, schema, placement } = names;
  const begin = `set local lock_timeout = ${LOCK_MS}; ${placement.triggers}`;
  // Before the transaction has an id, so that those of all changes that it waits for are lower.
  const lock = `lock table ${memories} in share row exclusive mode;`;
  const current = async (call: Call) => toFreeze((await run('small', freezeText(names), [], call))[0]);
  // Citus takes the text of a statement about triggers as it is, so that it has to be alone.
  const change = (settings: string, text: string, call: Call) =>
    run({ weight: 'small', settings: `${begin} ${settings}` }, text, [], call);
  return {
    current,
    async freeze({ by }, call) {
      const existing = await current(call);
      if (existing) return existing;
      const freeze = { since: new Date().toISOString(), by };
      await change(
        `${lock} create or replace function ${schema}.${TRIGGER}() returns trigger language plpgsql as $frozen$
           begin raise exception 'the store is frozen' using errcode = '${FROZEN}', detail = tg_argv[0]; end $frozen$`,
        `create trigger ${TRIGGER} before insert or delete or update of updated_at on ${memories}
           for each statement execute function ${schema}.${TRIGGER}(${pg.escapeLiteral(JSON.stringify(freeze))})`,
        call,
      );
      return freeze;
    },
    async unfreeze(call) {
      const ended = await current(call);
      if (ended) await change('', `drop trigger if exists ${TRIGGER} on ${memories}`, call);
      return ended;
    },
  };
}
