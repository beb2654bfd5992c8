import type { Socket } from 'node:net';
import pg from 'pg';
import type { Finding } from '#contract';
import { encodingProblem } from '../client/startup-client.ts';
import { codeOf } from '../errors.ts';
import type { Options } from '../options.ts';
import { ok, problem, warning } from './findings.ts';

/** What is wrong and what to look at, by SQLSTATE or its class or the system's error code. */
const ADVICE: Readonly<Record<string, string>> = {
  '28': 'the database refused the credentials; check user and password in DATABASE_URL',
  '3D': 'the database does not exist; check its name in DATABASE_URL, or make it with "create database"',
  '42501': 'the role in DATABASE_URL may not connect to this database',
  '53300': 'the server has no connection left; lower OMP_POSTGRES_CONNECTIONS, or raise max_connections of the server',
  '57P03': 'the server is starting up or shutting down; try again',
  ECONNREFUSED: 'nothing listens there; check host and port in DATABASE_URL, and whether the server runs',
  ENOENT: 'there is no such unix socket; check the host in DATABASE_URL, and whether the server runs',
  EAI_AGAIN: 'the name service does not answer for the host in DATABASE_URL; check it',
  ENOTFOUND: 'the host in DATABASE_URL is not known; a password with / ? # or @ in it has to be percent-encoded',
  ERR_INVALID_URL: 'DATABASE_URL cannot be read; a password with / ? # or @ in it has to be percent-encoded',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the server is made out to another host than DATABASE_URL names',
};
const CERTIFICATE = /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER_CERT|VERIFY).*)$/;
const OTHERWISE = 'the database cannot be reached; check DATABASE_URL, and whether this machine may connect to it';

/**
 * Connects to the server. A `Finding` says why it could not, in our words: the driver's may hold parts of the URL, and
 * where that is mistaken those are parts of the password.
 */
export async function connect(
  config: pg.ClientConfig,
  timeoutMs: number,
): Promise<{ client: pg.Client } | { trouble: Finding }> {
  let client: pg.Client | undefined;
  try {
    client = new pg.Client({ ...config, connectionTimeoutMillis: timeoutMs, application_name: 'omp-gateway doctor' });
    // What waits for it is told anyway; without a listener a lost connection would end the process.
    client.on('error', () => {});
    await client.connect();
    return { client };
  } catch (error) {
    await client?.end().catch(() => {});
    return { trouble: problem('connection', explained(error, timeoutMs)) };
  }
}

function explained(error: unknown, timeoutMs: number): string {
  const message = error instanceof Error ? error.message : '';
  if (message === 'timeout expired')
    return `the database did not answer within ${timeoutMs} ms (OMP_POSTGRES_CONNECT_TIMEOUT_MS); check DATABASE_URL, and whether this machine may connect to it`;
  if (message === 'The server does not support SSL connections')
    return 'the server takes no encrypted connections; take sslmode out of DATABASE_URL, or give the server a certificate';
  const code = codeOf(error) ?? '';
  const advice = CERTIFICATE.test(code)
    ? 'nobody known signed the certificate of the server; name who did by sslrootcert in DATABASE_URL'
    : (ADVICE[code] ?? ADVICE[code.slice(0, 2)] ?? OTHERWISE);
  return `cannot connect (${code || 'no code'}): ${advice}`;
}

/** What answers, and what lies between. */
export async function lookAtConnection(client: pg.Client, options: Options, writes: boolean): Promise<Finding[]> {
  const { rows } = await client.query<{ version: string; pid: number; role: string; read_only: string }>(
    `select current_setting('server_version') as version, pg_backend_pid() as pid, current_user as role,
       current_setting('transaction_read_only') as read_only`,
  );
  const [{ version, pid, role, read_only }] = rows as [(typeof rows)[number]];
  const findings = [ok('connection', `PostgreSQL ${version} answers, as role "${role}"`)];
  if (options.url !== undefined) findings.push(encryption(client), ...pooler(client, pid, options));
  const mistake = await encodingProblem(client);
  if (mistake !== undefined) findings.push(problem('connection', mistake));
  if (writes && read_only === 'on') {
    findings.push(
      problem(
        'connection',
        'the server takes no writes: it is a standby, or default_transaction_read_only is on; connect to the primary',
      ),
    );
  }
  return findings;
}

/** The parts of the driver's client that its types leave out. */
interface Inside {
  readonly host: string;
  readonly processID: number | null;
  readonly connection: { readonly stream: Socket & { readonly encrypted?: boolean; readonly authorized?: boolean } };
}
const inside = (client: pg.Client): Inside => client as unknown as Inside;

function encryption(client: pg.Client): Finding {
  const { host, connection } = inside(client);
  const { encrypted, authorized } = connection.stream;
  if (encrypted)
    return ok('connection', `encrypted, and the certificate of the server is ${authorized ? '' : 'not '}checked`);
  if (/^(\/|localhost$|127\.|::1$)/.test(host)) return ok('connection', 'not encrypted, and stays on this machine');
  return warning(
    'connection',
    'not encrypted: passwords and memories can be read on the way; set sslmode=verify-full in DATABASE_URL',
  );
}

/** A pooler answers with a session id of its own making. */
function pooler(client: pg.Client, pid: number, { prepared_statements }: Options): Finding[] {
  if (inside(client).processID === pid) return [];
  if (prepared_statements === 'on') {
    return [
      warning(
        'connection',
        'a pooler such as PgBouncer stands before the server, where named statements can fail; set OMP_POSTGRES_PREPARED_STATEMENTS to auto',
      ),
    ];
  }
  return [ok('connection', 'a pooler such as PgBouncer stands before the server')];
}
