/** A table as Postgres' catalogue describes it. Names are as they are, not quoted. */
export interface Table {
  readonly schema: string;
  readonly name: string;
  readonly kind: 'table' | 'partitioned' | 'view' | 'materialized view' | 'foreign';
  /** The planner's estimate; null while it has none. */
  readonly rows: number | null;
  readonly columns: ReadonlyMap<string, Column>;
  readonly indexes: readonly Index[];
  /** That the gateway connects as. */
  readonly role: string;
  /** Of that role. */
  readonly may: {
    readonly select: boolean;
    readonly insert: boolean;
    readonly update: boolean;
    readonly delete: boolean;
  };
  /** Whether row security narrows what this role sees. */
  readonly rowSecurity: boolean;
}

export interface Column {
  readonly name: string;
  /** As Postgres prints it: `character varying(191)`, `vector(1536)`, `jsonb`. */
  readonly type: string;
  /** Name of the type alone, of domains the type beneath: `varchar`, `vector`, `jsonb`, `timestamptz`, `_text`. */
  readonly base: string;
  readonly notNull: boolean;
  readonly hasDefault: boolean;
  /** Computed by the database: generated, or an identity that takes no values. */
  readonly generated: boolean;
  /** Whether only equal bytes are equal: false under a nondeterministic collation. */
  readonly deterministic: boolean;
  /** Of a vector whose length is declared; else null. */
  readonly dimensions: number | null;
}

export interface Index {
  readonly name: string;
  readonly method: string;
  readonly unique: boolean;
  readonly primary: boolean;
  /** Built, and used by the planner. */
  readonly valid: boolean;
  readonly partial: boolean;
  readonly keys: readonly IndexKey[];
}

export interface IndexKey {
  /** Null for an expression. */
  readonly column: string | null;
  /** As Postgres prints it, without an alias: `embedding`, `((metadata ->> 'user_id'::text))`. */
  readonly expression: string;
  /** `vector_cosine_ops`, `jsonb_path_ops`, `text_ops`… */
  readonly opclass: string;
}

/** pgvector as it is installed. */
export interface VectorExtension {
  readonly schema: string;
  readonly version: string;
}
