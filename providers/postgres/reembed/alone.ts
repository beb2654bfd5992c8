import pg from 'pg';

export interface Turn {
  /** Aborted when others may begin although this one is not done. */
  readonly lost: AbortSignal;
  end(): Promise<void>;
}

/**
 * Makes sure that nobody else embeds the memories of this schema anew. The lock belongs to a transaction on a connection
 * of its own: a transaction pooler leaves that alone, and it ends with the process, however that dies. It holds no
 * snapshot and no row, so neither vacuum nor a concurrent index build waits for it. What must not go wrong does not rest
 * on it: it saves two processes from embedding everything twice.
 */
export async function takeTurn(config: pg.ClientConfig, schema: string): Promise<Turn> {
  const client = new pg.Client({ ...config, keepAlive: true });
  const lost = new AbortController();
  const lose = () =>
    lost.abort(new Error('the connection that keeps other runs away was lost; run "omp-gateway reembed" again'));
  client.on('error', lose);
  client.on('end', lose);
  await client.connect();
  try {
    await client.query('begin isolation level read committed; set local idle_in_transaction_session_timeout = 0');
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as taken',
      [`omp-gateway reembed ${schema}`],
    );
    // Sent alone, it ends the one before also where it would keep its snapshot: with parameters, until the next statement.
    await client.query('select');
    if (!rows[0]?.taken) throw new Error('another "omp-gateway reembed" is under way on this schema');
  } catch (error) {
    await client.end();
    throw error;
  }
  return { lost: lost.signal, end: () => client.end() };
}
