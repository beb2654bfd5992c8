/** Runs work after all earlier work with the same key has ended. */
export type KeyedMutex = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>;

/** For backends without conditional writes. Works within this process only, and keeps no idle keys. */
export function createKeyedMutex(): KeyedMutex {
  const tails = new Map<string, Promise<unknown>>();
  return async <Result>(key: string, work: () => Promise<Result>): Promise<Result> => {
    const result = (tails.get(key) ?? Promise.resolve()).then(work);
    const tail = result.catch(() => {});
    tails.set(key, tail);
    try {
      return await result;
    } finally {
      if (tails.get(key) === tail) tails.delete(key);
    }
  };
}

/** Reads a body into one buffer. Rejects once it exceeds `maxBytes`. */
export async function readAtMost(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
    read.push(chunk);
  }
  return Buffer.concat(read);
}
