import type { FieldName } from '../fields.ts';

/** Where a library keeps what a memory consists of, unless settings say otherwise. Texts are as settings write them. */
export interface Preset {
  /** The table it makes unless told otherwise; unset: its users name one, and so must the settings. */
  readonly table?: string;
  readonly schema?: string;
  /** Columns that together name a row; undefined: the settings must. */
  readonly id?: readonly string[];
  readonly new_ids?: 'text' | 'uuid' | 'database';
  /** Column of the vector. */
  readonly embedding?: string;
  readonly fields: Readonly<Partial<Record<FieldName, string>>>;
  /** Where several collections share the table. */
  readonly collection?: Collection;
  /** Where vectors lie in a table of their own, which is joined. */
  readonly vectors?: VectorsApart;
  /** Why rows of ours would not do in such a table; undefined: they would. */
  readonly read_only?: string;
}

export interface Collection {
  /** Column of the rows that tells their collection. */
  readonly column: string;
  /** Where collections are told by a key: the table, in the same schema, that has their names. Unset: the column holds the name. */
  readonly named?: { readonly table: string; readonly key: string; readonly name: string };
  /** The library's own default; undefined: it has none, and rows of all collections are served unless one is named. */
  readonly default?: string;
}

export interface VectorsApart {
  /** In the same schema. */
  readonly table: string;
  /** Columns that both tables have and that belong together. */
  readonly on: readonly string[];
  /** Which of several vectors of a row: the column that tells, and what it has to say unless `collection` is set. */
  readonly which?: { readonly column: string; readonly value: string };
}
