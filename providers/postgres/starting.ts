import pg from 'pg';
import { codeOf, toOmpError } from './errors.ts';

/**
 * A connection for what has to be looked at before the first request, closed in the end. Throws an `Error` an operator
 * can act on when there is none.
 */
export async function withStartingClient<Result>(
  config: pg.ClientConfig,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(config);
  // A connection that is lost fails what is asked of it; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (cause) {
    throw new Error(
      `cannot connect to the database: ${toOmpError(cause).message} (${codeOf(cause) ?? 'no code'}); check DATABASE_URL`,
      { cause },
    );
  }
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
