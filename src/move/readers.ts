import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { CHANGED_NUMBER, isKept, mem0Scope } from '#toolbox';
import { MAX_BYTES, MAX_NESTING, MAX_VALUES, TOO_DEEP, TOO_LARGE, TOO_LONG, TOO_MANY } from './json.ts';

/** A memory as on the wire. Its fields are not checked: the import rejects each memory that is wrong. */
export type Fields = Readonly<Record<string | symbol, unknown>>;

export interface ReaderOptions {
  /** The user of memories that name none. */
  readonly user_id?: string | undefined;
  /**
   * ISO 8601: when memories without a time were created. The same in every run over a file, such as the time of its last
   * change, so that a second run finds them stored already.
   */
  readonly created_at: string;
}

/** Longest row of a CSV file in bytes, so that a quote without an end does not fill the memory. */
const MAX_ROW_BYTES = 4 * 1024 * 1024;
/** More than a memory has fields and `x-` keys; each row is made into an object with all of them. */
const MAX_COLUMNS = 1_000;
/** Columns that a message names, and characters of each. */
const [NAMED_COLUMNS, NAME_CHARACTERS] = [20, 60];
const DAY_MS = 86_400_000;

/**
 * The memories of answers of mem0's `get_all` as JSON: `{"results": [...]}` of its libraries and its hosted service, or the
 * list alone; several answers may follow each other. Agent and run become a scope as in mem0's interface of the gateway,
 * categories tags, and what the protocol has no field for a key `x-mem0-`. Throws if the input was cut, is no JSON or holds
 * no memories.
 */
export async function* readMem0(input: AsyncIterable<Uint8Array>, options: ReaderOptions): AsyncGenerator<Fields> {
  const { Tokenizer, TokenParser, TokenType } = await import('@streamparser/json');
  let parser: InstanceType<typeof Tokenizer> | undefined;
  const items: unknown[] = [];
  let count = 0;
  /** Since the last memory, or the last element of another list. */
  let read = { characters: 0, values: 0 };
  let depth = 0;
  const reject = (reason: string): never => {
    throw new RangeError(`memory ${count + items.length + 1} ${reason}`);
  };
  const take = (parse: () => void): Fields[] => {
    try {
      parse();
    } catch (error) {
      if (error instanceof RangeError) throw error;
      throw new Error(`the file was cut or is no JSON, after memory ${count + items.length}; export it again`);
    }
    return items.splice(0).map((item) => mem0Memory(item, ++count, options));
  };
  for await (const text of textOf(input)) {
    parser ??= parserOf(text);
    read.characters += text.length;
    if (read.characters > MAX_BYTES) reject(TOO_LONG);
    yield* take(() => parser?.write(text));
  }
  yield* take(() => parser?.end());
  if (count === 0) throw new Error('the file holds no memories; expected {"results": [...]} or a list, as of get_all');

  /** An element is dropped when it was passed on, so that memory is bounded. Undefined: nothing but space so far. */
  function parserOf(text: string) {
    const first = text.trimStart()[0];
    if (first === undefined) return undefined;
    const outside = first === '[' ? 1 : 2;
    const tokens = new (class extends Tokenizer {
      protected override parseNumber(text: string): number {
        if (!isKept(text)) reject(CHANGED_NUMBER);
        return Number.isFinite(Number(text)) ? Number(text) : reject(TOO_LARGE);
      }
    })({ separator: '' });
    const values = new TokenParser({
      paths: [first === '[' ? '$.*' : '$.results.*'],
      separator: '',
      keepStack: false,
    });
    // The parser itself has no bounds, and takes quadratic time for deep values.
    tokens.onToken = (made) => {
      const { token } = made;
      const isOpening = token === TokenType.LEFT_BRACE || token === TokenType.LEFT_BRACKET;
      if (isOpening && ++depth > MAX_NESTING) reject(TOO_DEEP);
      if ((token === TokenType.RIGHT_BRACE || token === TokenType.RIGHT_BRACKET) && --depth === outside) {
        read = { characters: 0, values: 0 };
      }
      if ((isOpening || token === TokenType.COMMA) && ++read.values > MAX_VALUES) reject(TOO_MANY);
      values.write(made);
    };
    tokens.onEnd = () => void (values.isEnded || values.end());
    values.onEnd = () => void (tokens.isEnded || tokens.end());
    values.onError = tokens.error.bind(tokens);
    values.onValue = ({ value }) => void items.push(value);
    return tokens;
  }
}

/** mem0 computes these from the text, or for a query. */
const COMPUTED = new Set(['hash', 'score', 'text_lemmatized']);

/** The Python library and the service write `created_at`, the TypeScript library `createdAt`. */
const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function mem0Memory(item: unknown, number: number, options: ReaderOptions): Fields {
  if (item === null || typeof item !== 'object') throw new Error(`memory ${number} is no JSON object`);
  const entries = Object.entries(item).filter(([name, value]) => value !== null && !COMPUTED.has(snakeCase(name)));
  const { id, memory, user_id, agent_id, run_id, created_at, updated_at, categories, expiration_date, ...others } =
    Object.fromEntries(entries.map(([name, value]) => [snakeCase(name), value]));
  const expiry = expiration_date ?? others.metadata?.expiration_date;
  return identified(number, options, {
    id,
    content: memory,
    user_id,
    scope: mem0Scope({ agent: wellFormed(agent_id), run: wellFormed(run_id) }),
    tags: categories,
    source: { type: 'imported', app: 'mem0' },
    created_at: created_at ?? updated_at,
    updated_at,
    valid_to: typeof expiry === 'string' ? endOf(expiry) : undefined,
    ...Object.fromEntries(Object.entries(others).map(([name, value]) => [`x-mem0-${name}`, value])),
  });
}

/** Lone surrogates, which JSON can hold, have no encoding in a scope. */
const wellFormed = (id: unknown) => (id === undefined ? undefined : String(id).toWellFormed());

/** mem0 shows a memory up to and including its last day. */
function endOf(day: string): string {
  const time = day.length === 10 ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
  return Number.isNaN(time) ? day : new Date(time + DAY_MS).toISOString();
}

const TIMES = ['created_at', 'updated_at', 'valid_from', 'valid_to'];
const LISTS = ['tags', 'supersedes'];
const FIELDS = new Set(['id', 'content', 'user_id', 'scope', 'confidence', ...TIMES, ...LISTS]);
/** As databases write a time: `2024-05-01 10:00:00+02`. */
const SQL_TIME = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(?:Z|([+-]\d\d)(?::?(\d\d))?)?$/;

/** Why a row is no memory: the import rejects it with these words. */
export const DAMAGED = Symbol('damaged');

/**
 * The memories of a CSV file (RFC 4180, UTF-8, the first row names the columns), one a row. `columns`: by field, the name
 * of its column; columns that are named like a field need none, and other columns are left out. Tags and ids of superseded
 * memories are separated by commas; an empty cell is no value. Throws if a column is missing or the file is damaged; with `goOn`, a row of
 * more or fewer cells than the first has `DAMAGED` and nothing else.
 */
export async function* readCsv(
  input: AsyncIterable<Uint8Array>,
  options: ReaderOptions & { readonly columns: Readonly<Record<string, string>>; readonly goOn?: boolean },
): AsyncGenerator<Fields> {
  const { parse } = await import('csv-parse');
  const tooMany = (line: number) =>
    new Error(`line ${line} has more than ${MAX_COLUMNS} columns; leave out those that are no part of a memory`);
  let characters = 0;
  const parser = parse({
    skip_empty_lines: true,
    max_record_size: MAX_ROW_BYTES,
    relax_column_count: true,
    // Checked once a row: `cast` gets an object with each cell, and making those takes nine tenths of the time.
    on_record(row: string[], { lines }) {
      characters = 0;
      if (row.length > MAX_COLUMNS) throw tooMany(lines);
      return row;
    },
  });
  async function* inRows() {
    for await (const text of textOf(input)) {
      // `max_record_size` does not count commas, and counts two quotes as one character.
      if (characters > 3 * MAX_ROW_BYTES) throw tooMany(parser.info.lines);
      characters += text.length;
      yield text;
    }
  }
  // An error of the input ends the loop below too.
  const rows: AsyncIterable<string[]> = pipeline(Readable.from(inRows()), parser, () => {});
  let places: readonly (readonly [field: string, place: number])[] | undefined;
  let count = 0;
  let width = 0;
  for await (const row of rows) {
    if (!places) {
      places = placesOf(row, options);
      width = row.length;
      continue;
    }
    if (row.length !== width) {
      const what = `has ${row.length} cells, and the first row ${width}`;
      // The first row is the header.
      if (!options.goOn)
        throw new Error(`row ${count + 2} ${what}; mend it, or leave such rows out with --skip-damaged`);
      yield { id: `imported-${++count}`, [DAMAGED]: what };
      continue;
    }
    const memory: Record<string, unknown> = { source: { type: 'imported' } };
    for (const [field, place] of places) memory[field] = cellOf(field, row[place] ?? '');
    yield identified(++count, options, memory);
  }
  if (!places) throw new Error('the file is empty; its first row must name the columns');
}

/** Which field is in which column. */
function placesOf(header: readonly string[], { columns, user_id }: Parameters<typeof readCsv>[1]) {
  const isField = (name: string) => FIELDS.has(name) || name.startsWith('x-');
  const columnNames = { ...Object.fromEntries(header.filter(isField).map((name) => [name, name])), ...columns };
  const names = header.slice(0, NAMED_COLUMNS).map((name) => JSON.stringify(name.slice(0, NAME_CHARACTERS)));
  const more = header.length > names.length ? ` and ${header.length - names.length} more` : '';
  const named = `the columns are ${names.join(', ')}${more}`;
  for (const field of ['content', ...(user_id === undefined ? ['user_id'] : [])]) {
    if (!columnNames[field]) throw new Error(`no column is named ${field}; ${named}; use --column ${field}=COLUMN`);
  }
  return Object.entries(columnNames).map(([field, name]) => {
    if (!isField(field)) throw new Error(`--column ${field}=${name}: a memory has no field ${field}`);
    if (header.filter((one) => one === name).length !== 1) {
      throw new Error(`--column ${field}=${name}: there must be one column of this name; ${named}`);
    }
    return [field, header.indexOf(name)] as const;
  });
}

function cellOf(field: string, text: string): unknown {
  if (text.trim() === '') return undefined;
  if (LISTS.includes(field)) return text.split(',').flatMap((one) => one.trim() || []);
  if (TIMES.includes(field)) return isoTime(text);
  // What is no number stays as it is, for the import to reject.
  return field === 'confidence' && Number.isFinite(Number(text)) ? Number(text) : text;
}

function isoTime(text: string): string {
  const [, date, time, hours, minutes = '00'] = SQL_TIME.exec(text) ?? [];
  return date === undefined ? text : `${date}T${time}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`;
}

/** Adds an id and a time, which are the same in every run over the file. Changes `memory`: to copy a thousand fields is slow. */
function identified(number: number, { user_id, created_at }: ReaderOptions, memory: Record<string, unknown>): Fields {
  memory.user_id ??= user_id;
  memory.created_at ??= created_at;
  const hash = createHash('sha256').update(JSON.stringify([memory.user_id, memory.content]));
  // The number tells which row it was; equal rows are memories of their own.
  memory.id ??= `imported-${number}-${hash.digest('hex').slice(0, 32)}`;
  return memory;
}

async function* textOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const bytes of input) yield decoder.decode(bytes, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error;
    throw new Error('the file is not in UTF-8; save it in this encoding');
  }
}
