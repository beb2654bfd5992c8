import type pg from 'pg';

/** Longest time for one statement, in milliseconds: a doctor must not hang, nor keep a busy server busy. */
const STATEMENT_MS = 30_000;

/** Sends one statement and returns its rows. */
export type Read = <Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

/**
 * Runs what only looks, in a transaction in which the server refuses every change, also behind a transaction pooler.
 * What fails in one does not hinder the next.
 */
export async function reading<Result>(client: pg.Client, work: (read: Read) => Promise<Result>): Promise<Result> {
  await client.query(`begin transaction read only; set local statement_timeout = ${STATEMENT_MS}`);
  try {
    return await work(
      async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
        (await client.query<Row>(text, [...values])).rows,
    );
  } finally {
    // Where the connection is lost there is nothing to end.
    await client.query('rollback').catch(() => {});
  }
}
