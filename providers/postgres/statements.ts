import type { ListQuery, Memory, MemoryPatch, Ref } from '#contract';
import { conditions, whereScopeGlob, whereTags } from './conditions.ts';
import { type Statement, statement } from './connections.ts';
import { toHalfvec } from './halfvec.ts';
import { keywordsOf, toBigintArray } from './keywords.ts';
import type { Names } from './names.ts';
import { COLUMNS, toTextArray } from './rows.ts';

/** A statement and its values, ready to be sent. */
export interface Query {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

/** What each verb sends, one function a statement. Texts differ only by the filters present, so each is prepared once. */
export type Statements = ReturnType<typeof createStatements>;

export function createStatements(names: Names) {
  const cache = new Map<string, Statement>();
  const query = (text: string, values: readonly unknown[]): Query => {
    const prepared = cache.get(text) ?? statement(text);
    cache.set(text, prepared);
    return { statement: prepared, values };
  };
  const one = ({ id, user_id }: Ref) => {
    const where = conditions();
    where.and(`id = ${where.place(id)}`);
    if (user_id !== undefined) where.and(`user_id = ${where.place(user_id)}`);
    return where;
  };

  return {
    query,
    insert: (memory: Memory, vector: Float32Array | undefined): Query =>
      query(
        `insert into ${names.memories} (id, user_id, content, scope, tags, source, confidence, created_at, updated_at,
           valid_from, valid_to, supersedes, extensions, keywords, embedding, large)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $12, $13, $14::${names.halfvec},
           exists (select from ${names.largeUsers} where user_id = $2))`,
        [
          memory.id,
          memory.user_id,
          memory.content,
          memory.scope,
          toTextArray(memory.tags),
          memory.source && JSON.stringify(memory.source),
          memory.confidence,
          memory.created_at,
          memory.valid_from,
          memory.valid_to,
          toTextArray(memory.supersedes),
          JSON.stringify(memory.extensions),
          toBigintArray(keywordsOf(memory.user_id, memory.content)),
          vector ? toHalfvec(vector) : null,
        ],
      ),

    select(ref: Ref): Query {
      const where = one(ref);
      return query(`select ${COLUMNS} from ${names.memories} where ${where}`, where.values);
    },

    /** Writes only the fields given, so patches of different fields never undo each other. */
    update(ref: Ref, userId: string, patch: MemoryPatch, vector: Float32Array | undefined): Query {
      const where = one(ref);
      const sets: string[] = [];
      const set = (column: string, value: unknown, cast = '') => sets.push(`${column} = ${where.place(value)}${cast}`);
      if (patch.content !== undefined) {
        set('content', patch.content);
        set('keywords', toBigintArray(keywordsOf(userId, patch.content)));
        set('embedding', vector ? toHalfvec(vector) : null, `::${names.halfvec}`);
      }
      if (patch.scope !== undefined) set('scope', patch.scope);
      if (patch.tags !== undefined) set('tags', toTextArray(patch.tags));
      if (patch.confidence !== undefined) set('confidence', patch.confidence);
      if (patch.valid_to !== undefined) set('valid_to', patch.valid_to);
      if (patch.supersedes !== undefined) set('supersedes', toTextArray(patch.supersedes));
      if (patch.extensions !== undefined) {
        sets.push(`extensions = extensions || ${where.place(JSON.stringify(patch.extensions))}::jsonb`);
      }
      // Later than the last change, also when the clock went back or both fell into one millisecond.
      const now = where.place(new Date().toISOString());
      sets.push(`updated_at = greatest(${now}::timestamptz, updated_at + interval '1 millisecond')`);
      return query(`update ${names.memories} set ${sets.join(', ')} where ${where} returning ${COLUMNS}`, where.values);
    },

    remove(ref: Ref): Query {
      const where = one(ref);
      return query(`delete from ${names.memories} where ${where} returning 1`, where.values);
    },

    list(wanted: ListQuery): Query {
      const where = conditions();
      where.and(`user_id = ${where.place(wanted.user_id)}`);
      whereScopeGlob(where, wanted);
      whereTags(where, wanted.tags);
      if (wanted.since !== undefined) where.and(`created_at >= ${where.place(wanted.since)}::timestamptz`);
      if (wanted.until !== undefined) where.and(`created_at <= ${where.place(wanted.until)}::timestamptz`);
      if (wanted.after) {
        const { created_at, id } = wanted.after;
        where.and(`(created_at, id) < (${where.place(created_at)}::timestamptz, ${where.place(id)})`);
      }
      const limit = where.place(wanted.limit);
      return query(
        `select ${COLUMNS} from ${names.memories} m where ${where} order by m.created_at desc, m.id desc limit ${limit}`,
        where.values,
      );
    },
  };
}
