import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { type Memory, NotFoundError, version } from '../../clients/typescript/src/index.ts';
import { count } from './format.tsx';
import { Failure } from './load.tsx';
import { useSession } from './session.ts';

/** Time to change one's mind, in milliseconds. Until then nothing is deleted. */
const DELAY = 8_000;
/** Deletions at a time. */
const AT_ONCE = 4;

interface Deletion {
  /** Ids of memories that will be deleted, or whose deletion runs. */
  readonly leaving: ReadonlySet<string>;
  /** Ids of all memories that were deleted in this tab. */
  readonly deleted: ReadonlySet<string>;
  /** Deletes them after the delay, unless it is undone. */
  start(memories: readonly Memory[]): void;
}

const DeletionContext = createContext<Deletion>({ leaving: new Set(), deleted: new Set(), start: () => {} });
export const useDeletion = (): Deletion => useContext(DeletionContext);

/**
 * Deletes memories after a delay, and shows below every page what is deleted soon, with the way to undo it. Another page of
 * the console changes nothing; leaving the console before asks first. A key that is forgotten before deletes nothing.
 */
export function Deletions({ children }: { children: ComponentChildren }) {
  const { client, capabilities } = useSession();
  const [waiting, setWaiting] = useState<readonly Memory[]>([]);
  const [running, setRunning] = useState<readonly Memory[]>([]);
  const [deleted, setDeleted] = useState<ReadonlySet<string>>(new Set());
  const [failures, setFailures] = useState<readonly unknown[]>([]);

  const carryOut = async () => {
    const batch = waiting;
    setWaiting([]);
    setRunning((before) => [...before, ...batch]);
    const [rest, done, failed] = [[...batch], [] as string[], [] as unknown[]];
    const worker = async () => {
      for (let memory = rest.shift(); memory; memory = rest.shift()) {
        const { id } = memory;
        const options = capabilities.features.etags ? { ifMatch: version(memory) } : {};
        await client.memories.delete(id, options).then(
          () => done.push(id),
          (error) => (error instanceof NotFoundError ? done.push(id) : failed.push(error)),
        );
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    setRunning((before) => before.filter((memory) => !batch.includes(memory)));
    setDeleted((before) => new Set([...before, ...done]));
    setFailures((before) => [...before, ...failed]);
  };
  useEffect(() => {
    if (waiting.length === 0) return;
    const timer = setTimeout(carryOut, DELAY);
    return () => clearTimeout(timer);
  }, [waiting]);
  const open = waiting.length + running.length > 0;
  useEffect(() => {
    if (!open) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [open]);

  const leaving = new Set([...waiting, ...running].map(({ id }) => id));
  const start = (memories: readonly Memory[]) => {
    setFailures([]);
    setWaiting((before) => [...before, ...memories.filter(({ id }) => !leaving.has(id))]);
  };
  return (
    <DeletionContext.Provider value={{ leaving, deleted, start }}>
      {children}
      <div class="notice" role="status">
        {waiting.length > 0 && (
          <p>
            {waiting.length === 1 ? 'One memory' : `${count(waiting.length)} memories`} will be deleted in a few
            seconds.
            <button type="button" onClick={() => setWaiting([])}>
              Undo
            </button>
            <button type="button" onClick={carryOut}>
              Delete now
            </button>
          </p>
        )}
        {failures.length > 0 && (
          <p>
            {count(failures.length)} could not be deleted. <Failure error={failures[0]} />
            <button type="button" onClick={() => setFailures([])}>
              Close
            </button>
          </p>
        )}
      </div>
    </DeletionContext.Provider>
  );
}
