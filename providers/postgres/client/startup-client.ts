import pg from 'pg';
import { explainFailure } from './connection-failure.ts';

/**
 * Opens one connection for the checks before the first request and closes it afterwards. Throws an `Error` that an
 * operator can act on if the database cannot be reached or has the wrong encoding.
 */
export async function withStartupClient<Result>(
  config: pg.ClientConfig,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(config);
  // Losing the connection rejects the statement in progress; without a listener it would also end the process.
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    // Without the cause: the driver's message may hold parts of the password.
    throw new Error(explainFailure(error, config.connectionTimeoutMillis ?? 0));
  }
  try {
    const problem = await encodingProblem(client);
    if (problem !== undefined) throw new Error(problem);
    return await use(client);
  } finally {
    await client.end();
  }
}

/** In another encoding than UTF8 the server would compare, match and return texts wrongly. Undefined: no problem. */
export async function encodingProblem(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ encoding: string }>(`select current_setting('server_encoding') as encoding`);
  const [{ encoding } = { encoding: 'unknown' }] = rows;
  return encoding === 'UTF8'
    ? undefined
    : `the encoding of the database is ${encoding}, and the gateway needs UTF8; create a database with "createdb -E UTF8 -T template0 NAME", move the data there, and set DATABASE_URL to it`;
}
