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

/** Memories that are deleted together, and whether that runs. */
interface Batch {
  readonly memories: readonly Memory[];
  readonly isRunning: boolean;
}

/**
 * Deletes memories after a delay, and shows below every page what is deleted soon, with the way to undo it. Another page of the
 * console changes nothing, and each deletion waits for itself; leaving the console before asks first. A key that is forgotten before
 * deletes nothing.
 */
export function Deletions({ children }: { children: ComponentChildren }) {
  const { client, capabilities } = useSession();
  const [batches, setBatches] = useState<readonly Batch[]>([]);
  const [deleted, setDeleted] = useState<ReadonlySet<string>>(new Set());
  const [failures, setFailures] = useState<readonly unknown[]>([]);

  /** Ends the batch with these memories, or lets it run. */
  const leave = ({ memories }: Batch, isRunning = false) =>
    setBatches((all) =>
      all.flatMap((one) => (one.memories !== memories ? [one] : isRunning ? [{ memories, isRunning }] : [])),
    );
  const carryOut = async (batch: Batch) => {
    leave(batch, true);
    const [rest, done, failed] = [[...batch.memories], [] as string[], [] as unknown[]];
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
    leave(batch);
    setDeleted((before) => new Set([...before, ...done]));
    setFailures((before) => [...before, ...failed]);
  };
  const open = batches.length > 0;
  useEffect(() => {
    if (!open) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [open]);

  const leaving = new Set(batches.flatMap(({ memories }) => memories.map(({ id }) => id)));
  const start = (wanted: readonly Memory[]) => {
    const memories = wanted.filter(({ id }) => !leaving.has(id));
    if (memories.length > 0) setBatches((all) => [...all, { memories, isRunning: false }]);
  };
  return (
    <DeletionContext.Provider value={{ leaving, deleted, start }}>
      {children}
      <div class="notice" role="status">
        {batches.map((batch) => (
          <Waiting
            key={batch.memories[0]?.id}
            batch={batch}
            onUndo={() => leave(batch)}
            onDelete={() => void carryOut(batch)}
          />
        ))}
        {failures.length > 0 && (
          <p>
            <span>{count(failures.length)} could not be deleted.</span>
            <Failure error={failures[0]} />
            <button type="button" onClick={() => setFailures([])}>
              Close
            </button>
          </p>
        )}
      </div>
    </DeletionContext.Provider>
  );
}

interface WaitingProps {
  readonly batch: Batch;
  readonly onUndo: () => void;
  readonly onDelete: () => void;
}

/** Says what is deleted soon. Its own timer: another deletion does not prolong this one. */
function Waiting({ batch: { memories, isRunning }, onUndo, onDelete }: WaitingProps) {
  useEffect(() => {
    if (isRunning) return;
    const timer = setTimeout(onDelete, DELAY);
    return () => clearTimeout(timer);
  }, [isRunning]);
  const [only] = memories;
  const what = memories.length === 1 ? `“${only?.content.slice(0, 40)}”` : `${count(memories.length)} memories`;
  if (isRunning) return <p>Deleting {what}…</p>;
  return (
    <p>
      <span>
        {what} of {only?.user_id} will be deleted in a few seconds.
      </span>
      <button type="button" class="main" onClick={onUndo}>
        Undo
      </button>
      <button type="button" onClick={onDelete}>
        Delete now
      </button>
    </p>
  );
}
