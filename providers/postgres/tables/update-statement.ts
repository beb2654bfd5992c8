import {
  type Call,
  MAX_EXTENSIONS,
  type MemoryPatch,
  mergeExtensions,
  type Vector,
  type VersionOptions,
} from '#provider';
import type { Query } from '../client/connections.ts';
import type { Located } from '../scaling/placement.ts';
import type { Conditions } from '../sql/conditions.ts';
import { materialized, type WithPart } from '../sql/parts.ts';
import { toBigintArray, toHalfvec, toTextArray } from '../sql/values.ts';
import type { MakeChange } from './change-statement.ts';
import { whereVersion } from './conditions.ts';
import { clearQueue, enqueue } from './ingestion-queue.ts';
import { bytesAfter, columnsOf, RECORD, type RecordColumn } from './memory-rows.ts';
import type { Names } from './names.ts';
import { growContent, type Room } from './user-usage.ts';
import { dropVersions, keepVersion } from './versions.ts';

export interface Update {
  readonly patch: MemoryPatch;
  /** Of the new content; undefined exactly if the content does not change. */
  readonly keywords: readonly number[] | undefined;
  /** Of the new content; `later`: the ingestion queue computes it. Null: the content does not change, or there are no vectors. */
  readonly vector: Vector | 'later';
  /** Limit of the memory's size. A memory that is larger already must not grow. */
  readonly max_bytes: number;
  /** Of the user, for a new content; undefined: there are no limits. */
  readonly room?: Room | undefined;
}

interface Options {
  readonly audited: boolean;
  /** Undefined: no versions are kept. */
  readonly versions: VersionOptions | undefined;
  readonly change: MakeChange;
}

/** Writes only the given fields, so patches of different fields never undo each other. */
export function createUpdate(names: Names, { audited, versions, change }: Options) {
  /** What an update does with the ingestion queue. The statement itself reads the queue as it was before. */
  const asItIs = { queue: undefined, columns: columnsOf(names) };
  const queued = { queue: enqueue, columns: columnsOf(names, `'queued'`) };
  const done = { queue: clearQueue, columns: columnsOf(names, 'null') };
  return (ref: Located, wanted: Update, call: Call): Query => {
    const where = whereVersion(ref);
    const { bind } = where;
    const { room } = wanted;
    const sets = changesOf(names, where, wanted);
    const text = `update ${names.memories} set ${sets.join(', ')} where ${where}`;
    const { queue, columns } = wanted.vector === null ? asItIs : wanted.vector === 'later' ? queued : done;
    const update = { action: 'update' as const, call, row: RECORD, columns };
    const moves = audited && wanted.patch.scope !== undefined;
    if (!versions && !moves && !room)
      return change<RecordColumn>(where, { ...update, text, after: queue && ((changed) => [queue(names, changed)]) });
    // Locked before the update, which reads its number: afterwards what it was would be hidden from this statement.
    const before = <Column extends string>(kept: readonly Column[]) =>
      materialized('before', ...kept)`select ${kept.join(', ')} from ${names.memories} where ${where} for update`;
    const whole = versions && { ...versions, before: before(['bucket', 'version', ...RECORD]) };
    const grown: WithPart<'scope' | 'content'> | undefined = whole?.before ?? (room && before(['scope', 'content']));
    const old: WithPart<'scope'> = grown ?? before(['scope']);
    const used = room && grown && growContent(names, bind, grown, room);
    return change<RecordColumn>(where, {
      ...update,
      first: used ? [old, used] : [old],
      text: [text, ...[old, ...(used ? [used] : [])].map((each) => `(select count(*) from ${each}) > 0`)].join(' and '),
      after: (changed) => [
        ...(queue ? [queue(names, changed)] : []),
        ...(whole ? [keepVersion(names, whole.before, changed), dropVersions(names, whole, changed)] : []),
      ],
      left: moves
        ? (changed) =>
            `(select array[${old}.${old.scope}] from ${old} where ${old}.${old.scope} <> ${changed}.${changed.scope})`
        : undefined,
    });
  };
}

/** The most that an origin takes, which does not count: two names of 256 characters. */
const MAX_STAMP_BYTES = 4_096;

/** The columns that an update sets. It does not match a memory that it would make too large, or give too many `x-` keys. */
function changesOf(names: Names, where: Conditions, { patch, keywords, vector, max_bytes }: Update): string[] {
  const sets: string[] = [];
  const set = (column: string, value: unknown, cast = '') => sets.push(`${column} = ${where.bind(value)}${cast}`);
  /** SQL of the changed columns that count for the size. */
  const grown: Record<string, string> = {};
  const grow = (column: string, sql: string) => {
    sets.push(`${column} = ${sql}`);
    grown[column] = sql;
  };
  if (patch.content !== undefined && keywords) {
    grow('content', `${where.bind(patch.content)}::text`);
    set('keywords', toBigintArray(keywords));
    set(names.embedding, vector instanceof Float32Array ? toHalfvec(vector) : null, `::${names.halfvec}`);
  }
  if (patch.scope !== undefined) set('scope', patch.scope);
  if (patch.tags !== undefined) grow('tags', `${where.bind(toTextArray(patch.tags))}::text[]`);
  if (patch.confidence !== undefined) set('confidence', patch.confidence);
  if (patch.valid_to !== undefined) set('valid_to', patch.valid_to);
  if (patch.supersedes !== undefined) grow('supersedes', `${where.bind(toTextArray(patch.supersedes))}::text[]`);
  if (patch.extensions !== undefined) {
    const entries = Object.entries(patch.extensions);
    const removed = where.bind(toTextArray(entries.filter(([, value]) => value === null).map(([key]) => key)));
    const set = where.bind(JSON.stringify(mergeExtensions(patch.extensions)));
    grow('extensions', `(extensions || ${set}::jsonb) - ${removed}::text[]`);
  }
  if (grown.extensions) {
    // Without those of the gateway.
    const keys = (extensions: string) =>
      `(select count(*) from jsonb_object_keys(${extensions}) as key where key not ilike 'x-omp-%')`;
    where.and(`${keys(grown.extensions)} <= greatest(${MAX_EXTENSIONS}, ${keys('extensions')})`);
  }
  if (Object.keys(grown).length > 0) {
    where.and(`${bytesAfter(grown)} <= greatest(${where.bind(max_bytes + MAX_STAMP_BYTES)}::int8, ${bytesAfter({})})`);
  }
  // Always later than the last change, even if the clock went back or both are in the same millisecond.
  const now = where.bind(new Date().toISOString());
  sets.push('version = version + 1');
  sets.push(
    `updated_at = greatest(${now}::timestamptz, (updated_at at time zone 'UTC' + interval '1 millisecond') at time zone 'UTC')`,
  );
  return sets;
}
