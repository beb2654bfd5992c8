import { write, writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';
import { type PrettyOptions, prettyFactory } from 'pino-pretty';

/** Structured lines on standard output; readable ones if that is a terminal. */
export function createLog(level: string): Logger {
  const output = openStandardOutput((lost) =>
    log.warn({ lost }, 'log lines were dropped: standard output was not read'),
  );
  const pretty = process.stdout.isTTY ? prettyFactory(PRETTY) : undefined;
  const log = pino({ level, base: null }, pretty ? { write: (line) => output.write(pretty(line)) } : output);
  return log;
}

const PRETTY: PrettyOptions = { translateTime: 'HH:MM:ss', ignore: 'pid,hostname', singleLine: true };

/** Limits of the queue while the reader does not read. Further lines are dropped. */
const MAX_LINES = 20_000;
const MAX_BYTES = 32 * 1024 * 1024;
/** Bytes of one write, unless a line is longer. A pipe accepts them as a whole, and one error loses no more. */
const CHUNK_BYTES = 4_096;
/** How long a line waits for others to share its write, in milliseconds: a write costs more than ten lines. */
const GATHER_MS = 10;
/** Pause before a write to a full pipe is repeated, in milliseconds. */
const PAUSE_MS = 50;
/** Maximum repetitions of such a write when the process ends. */
const MAX_LAST_ATTEMPTS = 10;

const STDOUT = 1;

/**
 * Standard output that can neither block the gateway nor end it. Lines are written in the background, and dropped on errors: a
 * full disk, a closed terminal, a reader that ended or does not read. `onLost` gets their number once lines are accepted
 * again. When the process ends, queued lines are written for half a second at most.
 *
 * pino's own destination (sonic-boom 4.2) retries forever at the end of the process, if the disk is full or the reader ended.
 */
function openStandardOutput(onLost: (lines: number) => void): { write(line: string): void } {
  let queue: string[] = [];
  let queuedBytes = 0;
  let lost = 0;
  let closed = false;
  /** Bytes of a write to a full pipe. */
  let unwritten: Buffer | undefined;
  let writing = false;
  let gathering: NodeJS.Timeout | undefined;

  const next = () => {
    clearTimeout(gathering);
    gathering = undefined;
    if (queue.length === 0) return;
    const count = chunkLines(queue);
    const lines = queue.splice(0, count);
    for (const line of lines) queuedBytes -= sizeOf(line);
    send(Buffer.from(lines.join('')), count);
  };
  const send = (bytes: Buffer, count: number) => {
    writing = true;
    unwritten = undefined;
    write(STDOUT, bytes, (error, written) => {
      if (error?.code === 'EAGAIN') {
        unwritten = bytes;
        setTimeout(send, PAUSE_MS, bytes, count).unref();
      } else if (!error && written < bytes.length) send(bytes.subarray(written), count);
      else {
        writing = false;
        settled(error, count);
        next();
      }
    });
  };
  const settled = (error: NodeJS.ErrnoException | null, count: number) => {
    if (error) {
      lost += count;
      // The reader has closed the pipe.
      if (error.code === 'EPIPE') closed = true;
    } else if (lost > 0) {
      const lines = lost;
      lost = 0;
      onLost(lines);
    }
    if (closed) queue = [];
  };
  process.once('exit', () => {
    if (!closed) writeLast(Buffer.concat([unwritten ?? Buffer.alloc(0), Buffer.from(queue.join(''))]));
  });
  return {
    write(line) {
      if (closed) return;
      if (queue.length >= MAX_LINES || queuedBytes >= MAX_BYTES) {
        lost++;
        return;
      }
      queue.push(line);
      queuedBytes += sizeOf(line);
      if (writing) return;
      if (queuedBytes >= 2 * CHUNK_BYTES) next();
      else gathering ??= setTimeout(next, GATHER_MS).unref();
    },
  };
}

/** An upper limit of the memory that a string takes. */
const sizeOf = (line: string): number => 2 * line.length;

/** How many lines fit into one write; at least one. */
function chunkLines(lines: readonly string[]): number {
  let size = 0;
  const excess = lines.findIndex((line) => {
    size += Buffer.byteLength(line);
    return size > CHUNK_BYTES;
  });
  return excess === -1 ? lines.length : Math.max(1, excess);
}

function writeLast(bytes: Buffer): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  let left = bytes;
  for (let attempt = 0; left.length > 0 && attempt < MAX_LAST_ATTEMPTS; ) {
    try {
      left = left.subarray(writeSync(STDOUT, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      attempt++;
      Atomics.wait(pause, 0, 0, PAUSE_MS);
    }
  }
}
