import type { Finding } from '#provider';
import { withStartupClient } from '../client/startup-client.ts';
import { ok, problem, type Read, warning } from '../commands/doctor-common.ts';
import type { Names } from '../tables/names.ts';
import { ID_WITH_BUCKET } from './placement.ts';

interface Node {
  readonly name: string;
  readonly shards: number;
  readonly megabytes: number;
}

/** Ids that are looked at. */
const SAMPLE = 10_000;
/** Less is moved in no time, and uneven by chance. */
const SMALL_MEGABYTES = 1_000;

/** The nodes of Citus that do not answer. */
export async function checkReachable(read: Read): Promise<Finding[]> {
  const lost = await read<Pick<Node, 'name'>>(
    `select nodename || ':' || nodeport as name from run_command_on_all_nodes('select 1') join pg_dist_node using (nodeid)
     where noderole = 'primary' and not success order by nodename, nodeport`,
  );
  return lost.map(({ name }) =>
    problem('connection', `the node ${name} of Citus cannot be reached: requests of its users fail`),
  );
}

/** The nodes of Citus, how evenly they share the memories, and which requests ask all of them. */
export async function checkNodes(read: Read, { memories }: Names): Promise<Finding[]> {
  const nodes = await read<Node>(
    `select nodename || ':' || nodeport as name, count(shardid)::int as shards,
       coalesce(round(sum(shard_size) / 1e6), 0)::float8 as megabytes
     from pg_dist_node left join citus_shards using (nodename, nodeport)
     where noderole = 'primary' and shouldhaveshards and (table_name is null or table_name = $1::regclass)
     group by nodename, nodeport order by nodename, nodeport`,
    [memories],
  );
  const each = nodes.map(({ name, shards, megabytes }) => `${name} ${shards} shards, ${megabytes} MB`);
  const findings = [ok('size', `the memories are distributed over ${nodes.length} nodes of Citus: ${each.join('; ')}`)];
  const sizes = nodes.map(({ megabytes }) => megabytes);
  if (Math.max(...sizes) > SMALL_MEGABYTES && Math.max(...sizes) > 2 * Math.min(...sizes)) {
    const remedy = { sql: 'select citus_rebalance_start();', reason: 'moves shards while gateways serve' };
    findings.push(warning('size', 'one node holds more than twice as much as another', remedy));
  }
  const [{ elsewhere } = { elsewhere: 0 }] = await read<{ elsewhere: number }>(
    `select count(*)::int as elsewhere from (select id from ${memories} limit ${SAMPLE}) as ids where id !~ $1`,
    [ID_WITH_BUCKET.source],
  );
  if (elsewhere > 0) {
    const message = `of ${SAMPLE.toLocaleString('en')} ids, ${elsewhere} were made elsewhere or by an older version: a get, update or delete of such an id asks all shards`;
    findings.push(ok('size', message));
  }
  return findings;
}

/** Whether the read replica answers and follows. Without it the primary serves everything. */
export const checkReplica = (connectionString: string, connectionTimeoutMillis: number): Promise<Finding> =>
  withStartupClient({ connectionString, connectionTimeoutMillis }, async (client) => {
    const { rows } = await client.query<{ standby: boolean; seconds: number | null }>(
      `select pg_is_in_recovery() as standby,
         round(date_part('epoch', now() - pg_last_xact_replay_timestamp())) as seconds`,
    );
    const { standby = false, seconds = null } = rows[0] ?? {};
    if (!standby)
      return warning('connection', 'OMP_POSTGRES_READ_URL leads to a server that is no replica, so it is not used');
    return ok('connection', `the read replica answers; its last transaction is ${seconds ?? '?'} seconds old`);
  }).catch((error: unknown) =>
    warning('connection', `read replica: ${error instanceof Error ? error.message : String(error)}`),
  );
