import { write, writeSync } from 'node:fs';

/** Lines that may wait while nobody takes them; what comes on top is given up. */
const MOST_WAITING = 20_000;
const MOST_WAITING_BYTES = 32 * 1024 * 1024;
/** Bytes that the system takes in one piece (`PIPE_BUF`), so that lines of several processes are never torn apart. */
const PIECE = 4_096;
/** Pause before offering again what the reader had no room for, in milliseconds. */
const PAUSE_MS = 50;
/** How often that is done when the process ends. */
const LAST_ATTEMPTS = 10;

const STDOUT = 1;

export interface LineWriter {
  write(line: string): void;
}

/**
 * Standard output that can neither hold up the gateway nor end it: lines are written in the background, and given up where
 * nobody takes them, be it a full disk, a terminal that is gone, or a reader that has ended or does not read. `onLost`
 * is told how many, once lines are taken again. What waits when the process ends is written then, in half a second at most.
 */
export function openStandardOutput(onLost: (lines: number) => void): LineWriter {
  let waiting: string[] = [];
  let waitingBytes = 0;
  let lost = 0;
  let closed = false;
  /** What the reader had no room for. */
  let refused: Buffer | undefined;
  let writing = false;

  const next = () => {
    if (waiting.length === 0) return;
    const count = piece(waiting);
    const lines = waiting.splice(0, count);
    for (const line of lines) waitingBytes -= sizeOf(line);
    send(Buffer.from(lines.join('')), count);
  };
  const send = (bytes: Buffer, count: number) => {
    writing = true;
    refused = undefined;
    write(STDOUT, bytes, (error, written) => {
      if (error?.code === 'EAGAIN') {
        refused = bytes;
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
      // Its reader never comes back.
      if (error.code === 'EPIPE') closed = true;
    } else if (lost > 0) {
      const told = lost;
      lost = 0;
      onLost(told);
    }
    if (closed) waiting = [];
  };
  process.once('exit', () => {
    if (!closed) writeLast(Buffer.concat([refused ?? Buffer.alloc(0), Buffer.from(waiting.join(''))]));
  });
  return {
    write(line) {
      if (closed) return;
      if (waiting.length >= MOST_WAITING || waitingBytes >= MOST_WAITING_BYTES) {
        lost++;
        return;
      }
      waiting.push(line);
      waitingBytes += sizeOf(line);
      if (!writing) next();
    },
  };
}

/** At most: what a string takes of memory. */
const sizeOf = (line: string): number => 2 * line.length;

/** How many lines fit; one that is too long goes alone. */
function piece(lines: readonly string[]): number {
  let size = 0;
  const tooMany = lines.findIndex((line) => {
    size += Buffer.byteLength(line);
    return size > PIECE;
  });
  return tooMany === -1 ? lines.length : Math.max(1, tooMany);
}

function writeLast(bytes: Buffer): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  let left = bytes;
  for (let attempt = 0; left.length > 0 && attempt < LAST_ATTEMPTS; ) {
    try {
      left = left.subarray(writeSync(STDOUT, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      attempt++;
      Atomics.wait(pause, 0, 0, PAUSE_MS);
    }
  }
}
