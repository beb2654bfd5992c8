import type pg from 'pg';
import type { Row, Task } from './task.ts';

/**
 * Queues all that the task needs in one go; `answered` is called once, when its turn is over. `open`: the commit
 * failed, and should it not even have begun, the transaction is still there.
 */
export function send(
  client: pg.Client,
  task: Task,
  answered: (task: Task, error: unknown, rows: Row[], open: boolean) => void,
): void {
  if (task.settings === undefined) {
    return void sendStatement(client, task, (error, rows) => answered(task, error, rows, false));
  }
  // The first failure is told: those after it only say that the transaction is aborted.
  let first: unknown;
  let rows: Row[] = [];
  const note = (error: unknown) => {
    first ??= error ?? undefined;
  };
  task.begun = false;
  void client.query('begin', (error) => {
    note(error);
    task.begun = !error;
  });
  void client.query(task.settings, note);
  sendStatement(client, task, (error, result) => {
    note(error);
    rows = result;
  });
  void client.query('commit', (error) => {
    note(error);
    answered(task, first, rows, Boolean(error));
  });
}

const NO_ROWS: Row[] = [];

function sendStatement(client: pg.Client, task: Task, answered: (error: unknown, rows: Row[]) => void): void {
  const { name, text } = task.statement;
  const values = task.values as unknown[];
  let early: unknown;
  let sending = true;
  void client.query<Row>(task.named ? { name, text, values } : { text, values }, (error, result) => {
    // A value that cannot be written is told at once, and once more when its turn comes.
    if (sending) early = error;
    else answered(early ?? error ?? undefined, result?.rows ?? NO_ROWS);
  });
  sending = false;
}
