import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type Memory, NotFoundError, version } from '../../clients/typescript/src/index.ts';
import { useSession } from './session.ts';

/** Time to change one's mind, in milliseconds. Until then nothing is deleted. */
const DELAY = 8_000;
/** Deletions at a time. */
const AT_ONCE = 4;

/** Deletes after a delay, in which it can be undone. Leaving the page before asks first. */
export function useDeletion(onDeleted: (ids: ReadonlySet<string>) => void) {
  const { client, capabilities } = useSession();
  const [waiting, setWaiting] = useState<readonly Memory[]>([]);
  const [failures, setFailures] = useState<readonly unknown[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  const carryOut = useCallback(
    async (memories: readonly Memory[]) => {
      clearTimeout(timer.current);
      const [rest, deleted, failed] = [[...memories], new Set<string>(), [] as unknown[]];
      const worker = async () => {
        for (let memory = rest.shift(); memory; memory = rest.shift()) {
          const options = capabilities.features.etags ? { ifMatch: version(memory) } : {};
          await client.memories.delete(memory.id, options).then(
            () => deleted.add(memory.id),
            (error) => (error instanceof NotFoundError ? deleted.add(memory.id) : failed.push(error)),
          );
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      setWaiting([]);
      setFailures(failed);
      onDeleted(deleted);
    },
    [client, capabilities, onDeleted],
  );
  const start = (memories: readonly Memory[]) => {
    const all = [...waiting, ...memories.filter((memory) => !waiting.includes(memory))];
    clearTimeout(timer.current);
    timer.current = setTimeout(() => carryOut(all), DELAY);
    setFailures([]);
    setWaiting(all);
  };
  const undo = () => {
    clearTimeout(timer.current);
    setWaiting([]);
  };
  useEffect(() => {
    if (waiting.length === 0) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [waiting]);
  // Another page of the console: what was asked for is done.
  const last = useRef<(() => void) | undefined>(undefined);
  last.current = () => waiting.length > 0 && carryOut(waiting);
  useEffect(() => () => last.current?.(), []);
  return { waiting, failures, start, undo, now: () => carryOut(waiting) };
}
