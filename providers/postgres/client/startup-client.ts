import pg from 'pg';
import { codeOf } from '../postgres-errors.ts';

/** A client that is connected. Throws an `Error` that an operator can act on, without a cause: the driver's message may hold parts of the password. */
export async function connectClient(config: pg.ClientConfig): Promise<pg.Client> {
  let client: pg.Client | undefined;
  try {
    client = new pg.Client(config);
    // Losing the connection rejects the statement in progress; without a listener it would also end the process.
    client.on('error', () => {});
    await client.connect();
    return client;
  } catch (error) {
    await client?.end().catch(() => {});
    throw new Error(explainFailure(error, config.connectionTimeoutMillis ?? 0));
  }
}

/**
 * Opens one connection for the checks before the first request and closes it afterwards. Throws an `Error` that an
 * operator can act on if the database cannot be reached or has the wrong encoding.
 */
export async function withStartupClient<Result>(
  config: pg.ClientConfig,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = await connectClient(config);
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

/** What is wrong and what to check, by SQLSTATE, its class, or the system's error code. */
const ADVICE: Readonly<Record<string, string>> = {
  '28': 'the database rejected the credentials; check user and password in DATABASE_URL, or PGPASSWORD if there is no password in it: with docker-compose.yml, POSTGRES_PASSWORD is the password with which the database was made',
  '3D': 'the database does not exist; check its name in DATABASE_URL, or create it with "create database"',
  '42501': 'the role in DATABASE_URL may not connect to this database',
  '53300': 'the server has no connection left; lower OMP_POSTGRES_CONNECTIONS, or raise max_connections of the server',
  '57P03': 'the server is starting up or shutting down; try again',
  ECONNREFUSED: 'nothing listens there; check host and port in DATABASE_URL, and whether the server runs',
  ENOENT: 'there is no such unix socket; check the host in DATABASE_URL, and whether the server runs',
  EAI_AGAIN: 'the name service does not answer for the host in DATABASE_URL; check it',
  ENOTFOUND: 'the host in DATABASE_URL is unknown; in a password, / ? # and @ must be percent-encoded',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the server is for another host than the one in DATABASE_URL',
};
const CERTIFICATE = /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER_CERT|VERIFY).*)$/;
const OTHERWISE = 'the database cannot be reached; check DATABASE_URL, and whether this machine may connect to it';

/**
 * Why a connection could not be opened, and what to check. Never quotes the driver: its message may hold parts of the URL, and
 * in a malformed URL those may be parts of the password.
 */
function explainFailure(error: unknown, deadlineMs: number): string {
  const message = error instanceof Error ? error.message : '';
  if (message === 'timeout expired')
    return `the database did not answer within ${deadlineMs} ms (OMP_POSTGRES_CONNECT_TIMEOUT_MS); check DATABASE_URL, and whether this machine may connect to it`;
  if (message === 'The server does not support SSL connections')
    return 'the server does not support encrypted connections; remove sslmode from DATABASE_URL, or give the server a certificate';
  const code = codeOf(error) ?? '';
  const advice = CERTIFICATE.test(code)
    ? 'the certificate of the server is not signed by a known authority; name that with sslrootcert in DATABASE_URL'
    : (ADVICE[code] ?? ADVICE[code.slice(0, 2)] ?? OTHERWISE);
  return `cannot connect to the database (${code || 'no code'}): ${advice}`;
}
