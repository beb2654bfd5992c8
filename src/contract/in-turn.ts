/** Runs what concerns one id, after everything before it that concerns the same id has ended. */
export type InTurn = <Result>(id: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * Takes turns by id, for backends that cannot tie a change to what it was decided on. Holds within this process; keeps
 * nothing for ids nobody is busy with.
 */
export function inTurnById(): InTurn {
  const queues = new Map<string, Promise<unknown>>();
  return async <Result>(id: string, work: () => Promise<Result>): Promise<Result> => {
    const turn = (queues.get(id) ?? Promise.resolve()).then(work);
    const settled = turn.catch(() => {});
    queues.set(id, settled);
    try {
      return await turn;
    } finally {
      if (queues.get(id) === settled) queues.delete(id);
    }
  };
}
