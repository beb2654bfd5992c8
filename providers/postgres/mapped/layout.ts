import type { Conditions } from '../sql/conditions.ts';
import type { FieldName } from './field-mapping.ts';
import type { TimeIndex } from './time-index.ts';

/**
 * A mapped table as the verbs see it: the mapping, checked against the catalogue and turned into SQL. Every name in it is
 * quoted; values only pass through `Conditions.bind`. Statements alias the table as `t`, a separate vector table as `v`.
 */
export interface Layout {
  /** Follows `from`. */
  readonly from: string;
  /** The table alone, for writes: `"public"."documents"`. Used as `insert into ${table} as t`. */
  readonly table: string;
  /** The condition that a row is a memory: it belongs to the collection, has an owner and a text, and is not marked as deleted. */
  always(where: Conditions): string;
  /** The same with the rows that are marked as deleted: what is stored of a user. */
  stored(where: Conditions): string;
  /** How a row is marked as deleted. Undefined: a deleted row is removed. */
  readonly mark: Mark | undefined;
  readonly id: Id;
  /** Whether no two rows have one id. */
  readonly uniqueId: boolean;
  readonly owner: Owner;
  /** The mapped fields; `content` and `user_id` are always among them. */
  readonly fields: Readonly<Partial<Record<FieldName, Field>>>;
  /** Whether lists are sorted by the time of creation: it is mapped, and sampled rows have one. */
  readonly temporal: boolean;
  /** Undefined: a list reads all rows of its user, unless an index has their order as it is. */
  readonly timeIndex: TimeIndex | undefined;
  /** The condition that a row carries all of these tags. Undefined if tags are not mapped. */
  readonly hasTags: ((where: Conditions, tags: readonly string[]) => string) | undefined;
  readonly vector: VectorColumn;
  /** Columns that a new row needs besides its fields, such as that of the collection; values are SQL. */
  newColumns(where: Conditions): readonly { readonly column: string; readonly value: string }[];
  readonly writable: boolean;
  /** Whether every write gives a row a new `updated_at`, to the millisecond. */
  readonly versioned: boolean;
}

export interface Mark {
  /** Quoted. */
  readonly column: string;
  /** SQL of what a row is marked with now. */
  readonly value: string;
  /** The condition that a row is not marked. */
  readonly absent: string;
}

export interface Id {
  /** SQL of the id as text. */
  readonly read: string;
  /** The columns that make it up, in the order of the key. Lists are sorted by them where times tie or are missing. */
  readonly columns: readonly {
    readonly sql: string;
    /** Quoted, for writing. */
    readonly column: string;
    /** `::uuid` */
    readonly cast: string;
    /** The condition that it has exactly this value, in the form that its index serves. */
    is(parameter: string): string;
  }[];
  /** The values of the columns. Undefined for a text that cannot be an id of this table: a cast of it would fail. */
  parts(id: string): readonly string[] | undefined;
  /** The ids of new rows. `database`: an insert omits the column. */
  readonly newIds: 'text' | 'uuid' | 'database';
}

export interface Owner {
  /** The condition that a row belongs to one of these users, in the form that an index serves; `false` if none can. */
  is(where: Conditions, users: readonly string[]): string;
  /** The user id in a value of `fields.user_id.read`. Undefined if the row has no owner. */
  toUser(stored: string): string | undefined;
  /** What the table stores for a user. Undefined if the column cannot hold such an id. */
  toStored(user: string): string | undefined;
}

export interface Field {
  /**
   * SQL of the value in its form (`FORMS`): text, text[], float8, timestamptz or jsonb. Null if a row holds none, or one
   * that cannot be read in that form. Never fails, whatever a row holds.
   */
  readonly read: string;
  /** Undefined if the field is a constant or computed, and cannot be written. */
  readonly write: Write | undefined;
  /** The value of every row: a text, a number, a time as on the wire; lists and objects as `JSON.stringify` writes them. */
  readonly constant: string | undefined;
}

export type Write =
  | {
      readonly kind: 'column';
      /** Quoted. */
      readonly column: string;
      /** Converts a parameter to the column's type. It holds a text, a text[] literal, a number, an ISO time, or JSON. */
      from(parameter: string): string;
      readonly notNull: boolean;
      /** Whether a time keeps its milliseconds. */
      readonly milliseconds: boolean;
    }
  | {
      readonly kind: 'path';
      /** Quoted, without the alias. */
      readonly column: string;
      readonly path: readonly string[];
      readonly type: 'json' | 'jsonb';
    };

export interface VectorColumn {
  /** Quoted, for writing. */
  readonly column: string;
  /** The condition that a row has a vector of the embedder's length. */
  readonly comparable: string;
  /** SQL of the vector as text. */
  readonly read: string;
  /** Distance by cosine to the vector in this parameter. */
  distance(parameter: string): string;
  /** The score of such a distance, 0 to 1, higher is better, in the order of the distances. */
  score(distance: string): string;
  /** Encodes a vector as a parameter: pgvector's binary form of the column's type. */
  encode(vector: Float32Array): Buffer;
  /** Cast of a parameter to the column's type, `::"public".vector`. */
  readonly cast: string;
  /** An index that orders by similarity. Undefined: every search compares all rows of a user. */
  readonly index:
    | {
        readonly name: string;
        readonly method: 'hnsw' | 'ivfflat';
        readonly metric: 'cosine' | 'l2' | 'ip' | 'l1';
        /** Of the whole table, when the gateway started: the planner's estimate, 0 if it has none. */
        readonly rows: number;
        /** What it orders by, for the vector in this parameter. */
        distance(parameter: string): string;
        /** SQL that tells whether the vector of a row has length 1. */
        readonly isUnit: string;
        /**
         * Whether it orders as the cosine does: by cosine itself, or by L2 or the inner product where stored vectors have length 1, as
         * the query has. Else it cannot serve.
         */
        readonly ranks: boolean;
        /** Whether this pgvector continues the scan until enough rows pass the filter. Else the index cannot serve one user. */
        readonly iterative: boolean;
      }
    | undefined;
}
