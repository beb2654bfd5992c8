import type pg from 'pg';

/** One row in Postgres' binary COPY format, which takes a vector in its stored form. Null is SQL's null. */
export type Fields = readonly (Buffer | null)[];

/** The interface that `pg` requires of a submittable; the parts of the protocol that COPY needs. */
interface Wire {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
  readonly stream: NodeJS.WritableStream & { readonly writableNeedDrain: boolean };
}

const HEADER = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
const TRAILER = Buffer.from([0xff, 0xff]);
const CHUNK = 1 << 20;

/** Runs `copy … from stdin (format binary)` with these rows, pausing while the server is behind. */
export function copyInto(client: pg.Client, table: string, rows: Iterable<Fields>): Promise<void> {
  return new Promise((resolve, reject) => {
    let failure: Error | undefined;
    client.query({
      submit: (wire: Wire) => wire.query(`copy ${table} from stdin (format binary)`),
      handleCopyInResponse(wire: Wire) {
        send(wire, rows).then(
          () => wire.endCopyFrom(),
          (error: Error) => wire.sendCopyFail(error.message),
        );
      },
      handleCommandComplete() {},
      handleError(error: Error) {
        failure = error;
      },
      handleReadyForQuery: () => (failure ? reject(failure) : resolve()),
    } as unknown as pg.Submittable);
  });
}

async function send(wire: Wire, rows: Iterable<Fields>): Promise<void> {
  let parts: Buffer[] = [HEADER];
  let bytes = 0;
  const flush = async () => {
    wire.sendCopyFromChunk(Buffer.concat(parts));
    parts = [];
    bytes = 0;
    if (wire.stream.writableNeedDrain) await new Promise((drained) => wire.stream.once('drain', drained));
  };
  for (const fields of rows) {
    const row = toRow(fields);
    parts.push(row);
    bytes += row.length;
    if (bytes > CHUNK) await flush();
  }
  parts.push(TRAILER);
  await flush();
}

function toRow(fields: Fields): Buffer {
  const parts: Buffer[] = [int2(fields.length)];
  for (const field of fields) parts.push(int32(field?.length ?? -1), ...(field ? [field] : []));
  return Buffer.concat(parts);
}

export const text = (value: string): Buffer => Buffer.from(value);
export const bool = (value: boolean): Buffer => Buffer.from([value ? 1 : 0]);

/** Microseconds since 2000. */
export function timestamp(milliseconds: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64BE(BigInt(milliseconds - Date.UTC(2000, 0, 1)) * 1000n);
  return buffer;
}

const TEXT = 25;
const BIGINT = 20;
export const textArray = (values: readonly string[]): Buffer => array(TEXT, values.map(text));
export const bigintArray = (values: readonly number[]): Buffer =>
  array(
    BIGINT,
    values.map((value) => {
      const buffer = Buffer.alloc(8);
      buffer.writeBigInt64BE(BigInt(value));
      return buffer;
    }),
  );

/** Dimensions, whether there are nulls, the type, then length and lower bound of the only dimension. */
function array(type: number, elements: readonly Buffer[]): Buffer {
  if (elements.length === 0) return Buffer.concat([int32(0), int32(0), int32(type)]);
  const head = [int32(1), int32(0), int32(type), int32(elements.length), int32(1)];
  return Buffer.concat([...head, ...elements.flatMap((element) => [int32(element.length), element])]);
}

export function int2(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeInt16BE(value);
  return buffer;
}

function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}
