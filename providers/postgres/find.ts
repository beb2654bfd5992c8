import type { Call, RankingOptions, SearchQuery } from '#contract';
import type { Database, Row, Run } from './client/connections.ts';
import type { LargeUsers } from './maintenance/large-users.ts';
import { createRarity } from './rarity.ts';
import { indexSettings, keysOf, MOST_INDEXED, searchStatement } from './search.ts';
import type { Statements } from './statements.ts';
import type { Names } from './tables/names.ts';

export interface FindOptions {
  readonly db: Database;
  readonly names: Names;
  readonly statements: Statements;
  readonly ranking: RankingOptions;
  readonly largeUsers: LargeUsers;
}

/** Sends a search the way that is faster: over all memories of the user, or through the indexes. Best hits first. */
export function createFind({ db, names, statements, ranking, largeUsers }: FindOptions) {
  const heavy = (text: string) => ({ ...statements.query(text, []).statement, heavy: true });
  const run: Run = (text, values, call) => db.query(heavy(text), values, call);
  const rarityOf = createRarity(names, run);

  return async (query: SearchQuery, call: Call): Promise<Row[]> => {
    const indexable = query.limit <= MOST_INDEXED && (query.vector?.some((part) => part !== 0) ?? true);
    if (indexable && largeUsers.has(query.user_id)) {
      const rarity = await rarityOf(query, keysOf(ranking, query), call);
      if (largeUsers.indexPays(rarity.rows)) {
        const { text, values } = searchStatement(names, ranking, { query, rarity });
        return db.queryWith(indexSettings(rarity.rows), heavy(text), values, call);
      }
    }
    const { text, values } = searchStatement(names, ranking, { query });
    const rows = await run(text, values, call);
    largeUsers.observe(query.user_id, Number(rows[0]?.total ?? 0));
    return rows;
  };
}
