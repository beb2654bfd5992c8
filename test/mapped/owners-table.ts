import type { WireMemory } from '../support/wire.ts';
import type { OwnersDatabase } from './database.ts';

/** What an application writes with its own statements. */
export interface OwnersRow {
  readonly user: string;
  readonly text: string;
  readonly vector: Float32Array;
  /** Counts up. */
  readonly number: number;
}

/** The table of a library: its page in `docs/integrations`, and how the library creates and fills it. */
export interface OwnersTable {
  readonly page: string;
  /** The heading of one of several configurations on the page. */
  readonly heading?: string;
  /** Users to write for. Default: `ana` and `ben`. */
  readonly users?: readonly [string, string];
  /** All rows belong to the first user. */
  readonly ownerless?: true;
  /** The library's own statements; a comment names their source. The role that pages call `gateway` is that of the test. */
  readonly ddl: readonly string[];
  /** Default: 1536. */
  readonly dimensions?: number;
  /** Inserts as the library does. Returns the id that the gateway must show. */
  fill(db: OwnersDatabase, row: OwnersRow): Promise<string>;
  /** Inserts rows that no user may see: of other collections, without an owner, without a text. */
  hide?(db: OwnersDatabase, row: OwnersRow): Promise<void>;
  /** What every record of `fill` shows besides id, content and user. Default: nothing more, by text-embedding-3-small. */
  readonly shows?: Partial<WireMemory>;
  /** Default: false. */
  readonly temporal?: boolean;
  /** Default: `none`. */
  readonly scopes?: 'native' | 'none';
  /** Whether `OMP_MAPPING_WRITABLE=true` is allowed. Default: what the preset says. */
  readonly writable?: boolean;
  /** Further settings that the page requires for that. */
  readonly writing?: Readonly<Record<string, string>>;
  /** Fields that a memory can have there besides text and user. */
  readonly carries?: Partial<WireMemory>;
  /** Reads a row that the gateway wrote, by the library's own query. */
  read?(db: OwnersDatabase, id: string): Promise<{ text: string; user: string }>;
}

/** What records show if the table has no times and only the fields that a memory must have. */
export const withoutTimes = (embedding_model: string) =>
  ({
    created_at: '1970-01-01T00:00:00.000Z',
    updated_at: '1970-01-01T00:00:00.000Z',
    embedding_model,
    scope: null,
    tags: [],
    source: null,
    confidence: null,
    valid_from: null,
    valid_to: null,
    supersedes: [],
    status: null,
  }) satisfies Partial<WireMemory>;

/** A vector in the text form that libraries send. */
export const textOf = (vector: Float32Array): string => JSON.stringify([...vector]);
