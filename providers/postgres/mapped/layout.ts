import type { Conditions } from '../tables/conditions.ts';
import type { FieldName } from './field-mapping.ts';

/**
 * A mapped table as the verbs see it: the mapping, checked against the catalogue and turned into SQL. Every name in it is
 * quoted; values only pass through `Conditions.bind`. Statements alias the table as `t`, a separate vector table as `v`.
 */
export interface Layout {
  /** Follows `from`. */
  readonly from: string;
  /** The table alone, for writes: `"public"."documents"`. Used as `insert into ${table} as t`. */
  readonly table: string;
  /** The condition that a row is a memory: it belongs to the collection and has an owner and a text. */
  always(where: Conditions): string;
  readonly id: Id;
  /** Whether no two rows have one id. */
  readonly uniqueId: boolean;
  readonly owner: Owner;
  /** The mapped fields; `content` and `user_id` are always among them. */
  readonly fields: Readonly<Partial<Record<FieldName, Field>>>;
  /** Whether lists are sorted by the time of creation: it is mapped, and sampled rows have one. */
  readonly temporal: boolean;
  /** The condition that a row carries all of these tags. Undefined if tags are not mapped. */
  readonly hasTags: ((where: Conditions, tags: readonly string[]) => string) | undefined;
  readonly vector: VectorColumn;
  /** Columns that a new row needs besides its fields, such as that of the collection; values are SQL. */
  newColumns(where: Conditions): readonly { readonly column: string; readonly value: string }[];
  readonly writable: boolean;
  /** Whether every write gives a row a new `updated_at`, to the millisecond. */
  readonly versioned: boolean;
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
  /** What `distance` measures. All but cosine depend on the length of vectors, so scores may be clipped at 0 or 1. */
  readonly metric: 'cosine' | 'l2' | 'inner product' | 'l1';
  /** Distance to the vector in this parameter, by the operator of the index; cosine if there is no index. */
  distance(parameter: string): string;
  /** The score of such a distance, 0 to 1, higher is better, in the order of the distances. */
  score(distance: string): string;
  /** Encodes a vector as a parameter: pgvector's binary form of the column's type. */
  encode(vector: Float32Array): Buffer;
  /** Cast of a parameter to the column's type, `::"public".vector`. */
  readonly cast: string;
  /** The index that orders by this distance. Undefined: every search compares all rows of a user. */
  readonly index:
    | {
        readonly name: string;
        readonly method: 'hnsw' | 'ivfflat';
        /** Whether this pgvector continues the scan until enough rows pass the filter. Else the index cannot serve one user. */
        readonly iterative: boolean;
      }
    | undefined;
}
