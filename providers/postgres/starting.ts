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
    const mistake = await encodingMistake(client);
    if (mistake !== undefined) throw new Error(mistake);
    return await use(client);
  } finally {
    await client.end();
  }
}

/** Why texts would be compared, matched and sent back wrongly. Undefined: they are not. */
export async function encodingMistake(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ encoding: string }>(`select current_setting('server_encoding') as encoding`);
  const [{ encoding } = { encoding: 'unknown' }] = rows;
  return encoding === 'UTF8'
    ? undefined
    : `the encoding of the database is ${encoding}, and the gateway needs UTF8; create one with "createdb -E UTF8 -T template0 NAME", move the data there, and name it in DATABASE_URL`;
}
