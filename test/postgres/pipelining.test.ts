import { describe, expect, it } from 'vitest';
import { openConnections, statement } from '../../providers/postgres/client/connections.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { call } from './store.ts';
import { openWay } from './way.ts';

describe('fifty statements at once on one connection', () => {
  it.for([
    ['by name are under way together', 'on', false],
    ['without names follow one another, whatever a pooler in between makes of halves', 'off', true],
  ] as const)('%s', async ([, prepared_statements, single], { skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    const { seen, connectionString } = await openWay(SERVER_URL);
    const database = openConnections({
      config: { connectionString },
      connections: 1,
      prepared_statements,
      acquire_timeout_ms: 60_000,
      query_timeout_ms: 60_000,
    });
    const numbers = Array.from({ length: 50 }, (_, i) => i);
    const answers = await Promise.all(numbers.map((n) => database.query(statement('select $1::int as n'), [n], call)));
    await database.close();
    expect(answers.map(([row]) => row?.n)).toEqual(numbers);
    expect(seen.underWay).toBe(0);
    expect(seen.most === 1).toBe(single);
  });
});
