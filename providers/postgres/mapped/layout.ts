import type { Conditions } from '../tables/conditions.ts';
import type { FieldName } from './fields.ts';

/**
 * What the verbs know of a table: the mapping, checked against the catalogue and turned into SQL. Every name in it is
 * quoted; values only ever go through `Conditions.place`. The table goes by `t`, vectors that lie apart by `v`.
 */
export interface Layout {
  /** After `from`. */
  readonly from: string;
  /** The table alone, for what writes: `"public"."documents"`. Written as `insert into ${table} as t`. */
  readonly table: string;
  /** What every statement demands of a row before it is a memory: its collection, an owner, a text. */
  always(where: Conditions): string;
  readonly id: Id;
  readonly owner: Owner;
  /** Only fields that have a place; `content` and `user_id` always do. */
  readonly fields: Readonly<Partial<Record<FieldName, Field>>>;
  /** Whether lists go by the time of creation: it has a place, and rows have it there, as far as they were looked at. */
  readonly temporal: boolean;
  /** Rows that carry all of these tags. Undefined: rows have no tags. */
  readonly hasTags: ((where: Conditions, tags: readonly string[]) => string) | undefined;
  readonly vector: Vector;
  /** Columns that a new row needs besides its fields, such as that of the collection; values are SQL. */
  newColumns(where: Conditions): readonly { readonly column: string; readonly value: string }[];
  readonly writable: boolean;
}

export interface Id {
  /** SQL of the id as text. */
  readonly read: string;
  /** The columns it consists of, in the order of the key; lists are sorted by them where times tie or are missing. */
  readonly columns: readonly {
    readonly sql: string;
    /** Quoted, for writing. */
    readonly column: string;
    /** `::uuid` */
    readonly cast: string;
    /** Whether it has exactly this value, in the form that its index serves. */
    is(parameter: string): string;
  }[];
  /** The values of the columns; undefined for a text that is no id here (and would fail in a cast). */
  parts(id: string): readonly string[] | undefined;
  /** What new rows get. `database`: the column is left out of the insert. */
  readonly fresh: 'text' | 'uuid' | 'database';
}

export interface Owner {
  /** Rows of these users, in the form that an index of the table serves; `false` where none can have any. */
  is(where: Conditions, users: readonly string[]): string;
  /** The user id in what `fields.user_id.read` gives; undefined: the row is nobody's. */
  toUser(stored: string): string | undefined;
  /** What is stored for a user; undefined: the column cannot hold such an id. */
  toStored(user: string): string | undefined;
}

export interface Field {
  /**
   * SQL of the value by its form (`FORMS`): text, text[], float8, timestamptz or jsonb. Null where a row has none, or
   * one that cannot be read as that; never fails, whatever a row holds.
   */
  readonly read: string;
  /** Undefined: it is a constant or computed, and cannot be written. */
  readonly write: Write | undefined;
  /** The same for every row: a text, a number, a time as on the wire; lists and objects in JSON, as `JSON.stringify` writes them. */
  readonly constant: string | undefined;
}

export type Write =
  | {
      readonly kind: 'column';
      /** Quoted. */
      readonly column: string;
      /** SQL of the column's type, of a parameter that holds: a text, a text[] literal, a number, an ISO time, or JSON. */
      from(parameter: string): string;
      readonly notNull: boolean;
    }
  | {
      readonly kind: 'path';
      /** Quoted; `t.` is up to the statement. */
      readonly column: string;
      readonly path: readonly string[];
      readonly type: 'json' | 'jsonb';
    };

export interface Vector {
  /** Quoted, for writing. */
  readonly column: string;
  /** Whether a row's vector can be compared: there is one, and it has the embedder's length. */
  readonly comparable: string;
  /** What `distance` measures. All but cosine mind the length of vectors, so that scores may end at 0 or 1. */
  readonly metric: 'cosine' | 'l2' | 'inner product' | 'l1';
  /** Distance to the vector that this parameter holds, by the index' operator, or cosine where there is no index. */
  distance(parameter: string): string;
  /** The score of such a distance, 0 to 1, higher is better, in the order of the distances. */
  score(distance: string): string;
  /** A vector as a parameter: pgvector's binary form of what `distance` and the column take. */
  encode(vector: Float32Array): Buffer;
  /** Cast of a parameter to the column's type, `::"public".vector`. */
  readonly cast: string;
  /** The index that orders by this distance; undefined: every search looks at all rows of a user. */
  readonly index:
    | {
        readonly name: string;
        readonly method: 'hnsw' | 'ivfflat';
        /** Whether this pgvector goes on until enough rows passed the filter; else the index is of no use for a user's search. */
        readonly iterative: boolean;
      }
    | undefined;
}
