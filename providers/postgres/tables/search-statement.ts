import type { RankingOptions, SearchQuery } from '#provider';
import { queryTerms, weights } from '#provider';
import { conditionOf, conditions, firstWithin, whereWithin } from '../sql/conditions.ts';
import { materialized, part, type WithPart, withParts } from '../sql/parts.ts';
import { toBigintArray, toHalfvec, toKeys } from '../sql/values.ts';
import {
  UNINDEXED_USER,
  whereInTime,
  whereScopePrefix,
  whereTags,
  whereTagsOfLargeUser,
  whereUser,
  whereWritten,
} from './conditions.ts';
import { BYTES, columnsOf, queueStatus } from './memory-rows.ts';
import type { Names } from './names.ts';
import { type Covering, countedOf, coverageOf, HELD, type Rarity, rarest, rarityOf, termsOf } from './search-terms.ts';

export interface Search {
  readonly query: SearchQuery;
  /** If it is set, the user's memories are in the indexes of large users. */
  readonly rarity?: Rarity | undefined;
  /** Whether a search with `rarity` ranks all memories that match the filters, one of which must have an index. */
  readonly matching?: boolean;
  /** Limits the rows to `max_bytes`. Without it, which is cheaper, a large row has no content: then search again with it. */
  readonly within?: 'bytes';
}

interface SearchStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The largest limit that a search through the indexes can serve. */
export const MAX_INDEXED_LIMIT = 200;
/** At least this many nearest vectors compete with the keyword matches. */
const NEAREST = 50;

/**
 * Session settings of a statement over a large user. Its estimated cost is high enough for JIT, which takes 50 to 250 ms
 * to compile it and gains nothing.
 */
export const LARGE_USER_SETTINGS = 'set local jit = off; set local enable_seqscan = off';

/**
 * Session settings of a search through the vector index: it continues until it has found enough rows of this user, or
 * until an exact search of the user's `rows` would have cost no more. The planner, which knows only the average user, would
 * rather sort all rows of large users.
 */
export const indexSettings = (rows: number): string =>
  `${LARGE_USER_SETTINGS}; set local enable_sort = off; set local hnsw.iterative_scan = relaxed_order; set local hnsw.ef_search = 200; set local hnsw.max_scan_tuples = ${Math.ceil(rows / 2) + 1}`;

/** The keys of the query's terms; none if keywords do not count. */
export function keysOf(ranking: RankingOptions, { user_id, text }: SearchQuery): number[] {
  const keys = toKeys(user_id, queryTerms(text));
  return weights(ranking, keys.length).keyword > 0 ? keys : [];
}

/**
 * Makes the statements of searches. They rank with the same arithmetic as every provider: the weighted sum of cosine and
 * IDF-weighted term coverage, best first. Each row also has the number of memories that the search saw. Memories outside
 * the allowed scopes count nowhere, as if they were not stored.
 *
 * Without `rarity` it is an exact search of all memories of the user. With `rarity` it uses the vector and keyword indexes:
 * see `throughIndexes`. With `rarity` and `matching` it is an exact search of the memories that match the filters.
 */
export function searchStatements(names: Names, ranking: RankingOptions): (search: Search) => SearchStatement {
  /** The texts of exact searches that bind nothing more. Making one takes a seventh of the gateway's processor time of a search. */
  const texts = new Map<string, string>();
  return (search) => {
    const bound = bind(names, ranking, search);
    const { query } = search;
    const { values } = bound.where;
    if (search.rarity || bindsMore(query)) return { text: textOf(toParts(bound, search), search), values };
    const form = [
      bound.keyArray,
      bound.vector,
      bound.mostBytes,
      query.explain,
      query.written?.trusted,
      search.within,
    ].join();
    const text = texts.get(form) ?? textOf(toParts(bound, search), search);
    texts.set(form, text);
    return { text, values };
  };
}

/** The fields of a query whose values `bind` binds, or that the form of a text names; `written` is both. */
type InForm = 'user_id' | 'text' | 'vector' | 'limit' | 'max_bytes' | 'max_content_bytes' | 'explain' | 'written';
/** How a query has none of the other filters. A new field of queries belongs here or above, or this does not compile. */
const UNSET: { readonly [Field in Exclude<keyof SearchQuery, InForm>]: (value: SearchQuery[Field]) => boolean } = {
  within: (within) => within === null,
  tags: (tags) => tags.length === 0,
  outside: (outside) => outside === undefined,
  scope: (scope) => scope === undefined,
  since: (since) => since === undefined,
  until: (until) => until === undefined,
};

/** Whether it has filters whose values are bound while its text is made; contexts and agents have only the others. */
const bindsMore = (query: SearchQuery): boolean =>
  query.written?.origin !== undefined ||
  !Object.entries(UNSET).every(([field, isUnset]) =>
    (isUnset as (value: unknown) => boolean)(query[field as keyof typeof UNSET]),
  );

function textOf(parts: StatementParts, search: Search): string {
  const { names, ranking, where, limit, bytes } = parts;
  const { first, counted, hits, complete } = !search.rarity
    ? exact(parts)
    : search.matching
      ? exactlyMatching(parts, search.rarity)
      : throughIndexes(parts, search.rarity);
  // These are columns of `best`, not of the table: the join keeps the order, so nothing is sorted twice.
  const order = 'score desc, time desc, hit desc';
  const shown = search.query.explain ? 'score, cosine, coverage' : 'score';
  const best = `select id as hit, ${shown}, created_at as time from (${hits}) as hits ${ranking.mode === 'keyword' ? 'where score > 0' : ''}
        order by ${order} limit ${limit}`;
  const rows = `(${best}) as best join ${names.memories} m on id = hit and ${where.inShard('m.')}`;
  const [columns, from] = search.within
    ? [
        columnsOf(names),
        `${firstWithin(`select m.*, hit, time, ${shown}, ${BYTES} as bytes from ${rows}`, order, bytes)} as page`,
      ]
    : [columnsOf(names, queueStatus(names), `${bytes}::float8`), rows];
  return `
      ${withParts(first)}
      select ${columns}, ${shown}, (select ${counted.rows} from ${counted}) as total${complete ? `, ${complete} as complete` : ''}
      from ${from}
      order by ${order}`;
}

type StatementParts = ReturnType<typeof toParts>;

interface Plan {
  readonly first: readonly WithPart[];
  readonly counted: WithPart<'rows'>;
  /** Selects id, created_at and score. */
  readonly hits: string;
  /** Whether a search through the indexes compared all memories after all. */
  readonly complete?: string | undefined;
}

/** The parameters of every search, before those of its other filters. */
function bind(names: Names, ranking: RankingOptions, { query, within }: Search) {
  const where = conditions(names.placement.shardOf(query.user_id));
  const { max_content_bytes: most } = query;
  const keys = keysOf(ranking, query);
  const weight = weights(ranking, keys.length);
  return {
    names,
    ranking,
    where,
    keys,
    user: where.bind(query.user_id),
    limit: where.bind(query.limit),
    /** The limit of bytes of the answer, or of one row. */
    bytes: where.bind(within ? query.max_bytes : Math.floor(query.max_bytes / query.limit)),
    /** The limit of bytes of each content. */
    mostBytes: most === undefined ? undefined : where.bind(most),
    keyArray: keys.length > 0 ? `${where.bind(toBigintArray(keys))}::bigint[]` : undefined,
    vector: query.vector && weight.vector > 0 ? `${where.bind(toHalfvec(query.vector))}::${names.halfvec}` : undefined,
    vectorWeight: `${where.bind(weight.vector)}::float8`,
    keywordWeight: `${where.bind(weight.keyword)}::float8`,
  };
}

/** The parts that the plans share. */
function toParts(bound: ReturnType<typeof bind>, { query }: Search) {
  const { names, where, user, mostBytes, keyArray, vector, vectorWeight, keywordWeight } = bound;
  const visible = conditionOf(where, (inner) => whereWithin(inner, query));
  const distance = vector && `${names.embedding} ${names.cosineDistance} ${vector}`;
  const filter = conditionOf(where, (inner) => {
    whereScopePrefix(inner, query);
    whereTags(inner, query.tags);
    whereInTime(inner, query);
    whereWritten(inner, query.written);
    if (mostBytes) inner.and(`octet_length(content) <= ${mostBytes}::int8`);
  });
  return {
    query,
    filter,
    distance,
    ...bound,
    /** All visible memories. A function, because a parameter must only be added where it is used. */
    whole: () =>
      `${where.inShard()} and ${conditionOf(where, (inner) => whereUser(inner, query, user))} and ${visible}`,
    /** All matching memories of a large user, read through the indexes of the filters. */
    matching: () =>
      `${where.inShard()} and ${userOfMatching(query)} = ${user} and ${visible} and ${filter} and ${conditionOf(where, (inner) => whereTagsOfLargeUser(inner, query))}`,
    /** The same for a scan of the vector or keyword index: the `case` keeps the planner from using any other. */
    scanned: `${where.inShard()} and large and ${UNINDEXED_USER} = ${user} and case when large then ${visible} and ${filter} end`,
    cosine: distance ? cosineOf(distance) : '0',
    /** What ranking of a memory selects: its score and, to explain it, the parts. */
    score: `least(1, floor((${vectorWeight} * cosine + ${keywordWeight} * ${
      keyArray ? 'coalesce(coverage, 0)' : '0'
    }) * 1e6::float8 + 0.5::float8) / 1e6::float8) as score${
      query.explain ? `, cosine, ${keyArray ? 'coalesce(coverage, 0)' : '0'} as coverage` : ''
    }`,
  };
}

/** A zero vector has no direction: pgvector returns NaN, the score is 0. */
const cosineOf = (distance: string): string => `greatest(0, coalesce(nullif(1 - (${distance}), 'NaN'), 0))`;

/** Ranks every memory of the user: fast and complete for some thousands. */
function exact(parts: StatementParts): Plan {
  const { names, whole, filter, cosine, keyArray } = parts;
  // It has no contents and vectors, which would not fit into memory.
  const mine = materialized(
    'mine',
    ...SEEN,
    'cosine',
    'passes',
  )`select ${SEEN_TEXT}, ${cosine} as cosine, ${filter} as passes from ${names.memories} where ${whole()}`;
  const counted = materialized('counted', 'rows')`select count(*)::float8 as rows from ${mine}`;
  if (!keyArray) return { first: [mine, counted], counted, hits: `${scored(parts, mine)} where ${mine.passes}` };
  const terms = termsOf(mine, keyArray);
  const rarity = rarityOf(
    counted,
    `(select ${terms.n}, count(${terms.holder})::float8 as held
      from unnest(${keyArray}) with ordinality as term (key, n) left join ${terms} using (n) group by n) as term`,
  );
  const hits = `${scored(parts, mine, { terms, rarity })} where ${mine.passes}`;
  return { first: [mine, terms, counted, rarity], counted, hits };
}

/** Ranks every memory that matches the filters. */
function exactlyMatching(parts: StatementParts, known: Rarity): Plan {
  const { names, matching, cosine, keyArray } = parts;
  const seen = seenOf('seen', `select ${SEEN_TEXT}, ${cosine} as cosine from ${names.memories} where ${matching()}`);
  const counted = countedOf(parts, known);
  if (!keyArray) return { first: [counted, seen], counted, hits: scored(parts, seen) };
  const [rarity, terms] = [rarityOf(counted, HELD), termsOf(seen, keyArray)];
  return { first: [counted, seen, rarity, terms], counted, hits: scored(parts, seen, { terms, rarity }) };
}

/**
 * Three steps. First it ranks the nearest vectors and all memories with a rare term. The score of the last hit within the
 * limit is the threshold: any other memory is no nearer than the farthest of those vectors and contains only common terms.
 * Then it also ranks the memories with a common term that could still reach the threshold. So every term that matters
 * counts, and only the vector index is approximate.
 *
 * The index walk ends after a number of rows of other users and scopes. If it has found too few by then, the exact
 * search completes the result.
 */
function throughIndexes(parts: StatementParts, known: Rarity): Plan {
  const { where, keys, keyArray, distance } = parts;
  const counted = countedOf(parts, known);
  const nearest = distance ? walk(parts, distance) : undefined;
  const complete = nearest && `(select ${nearest.walked.gave_up} from ${nearest.walked})`;
  const walking = nearest ? [nearest.near, nearest.walked, nearest.rest] : [];
  const near = nearest
    ? [
        `select ${SEEN_TEXT}, ${cosineOf(nearest.near.distance)} as cosine from ${nearest.near}`,
        `select * from ${nearest.rest}`,
      ]
    : [];
  if (!keyArray) {
    const seen = part('seen', ...SEEN, 'cosine')`${nearest ? near.join(' union all ') : nowhere(parts)}`;
    return { first: [counted, ...walking, seen], counted, hits: scored(parts, seen), complete };
  }
  const rareKeys = `${where.bind(toBigintArray(rarest(keys, known.holding)))}::bigint[]`;
  const rarity = rarityOf(counted, HELD);
  const rare = seenOf('rare', sharing(parts, rareKeys, nearest));
  const seen = seenOf('seen', [...near, `select * from ${rare}`].join(' union all '));
  const terms = termsOf(seen, keyArray);
  const first = materialized('first', 'id', 'score')`${scored(parts, seen, { terms, rarity })}`;
  const common = commonOf(parts, { first, rarity, rare: rareKeys, walked: nearest?.walked });
  const others = sharing(parts, `(select ${common.keys} from ${common})::bigint[]`, nearest);
  const more = seenOf('more', `${others} and id not in (select ${first.id} from ${first})`);
  const moreTerms = termsOf(more, keyArray);
  return {
    first: [counted, ...walking, rarity, rare, seen, terms, first, common, more, moreTerms],
    counted,
    hits: `select * from ${first} union all ${scored(parts, more, { terms: moreTerms, rarity })}`,
    complete,
  };
}

/** The columns that ranking needs. */
const SEEN = ['id', 'created_at', 'keywords'] as const;
const SEEN_TEXT = SEEN.join(', ');
type Seen = WithPart<(typeof SEEN)[number] | 'cosine'>;
const seenOf = (name: string, sql: string): Seen => materialized(name, ...SEEN, 'cosine')`${sql}`;

type Walk = ReturnType<typeof walk>;

/** The nearest vectors, and all other memories if those are too few. */
function walk({ names, query, scanned, whole, filter, cosine }: StatementParts, distance: string) {
  const nearest = Math.max(NEAREST, 2 * query.limit);
  const near = materialized(
    'near',
    ...SEEN,
    'distance',
  )`select ${SEEN_TEXT}, ${distance} as distance from ${names.memories}
      where ${scanned} order by ${distance} limit ${nearest}`;
  const walked = materialized(
    'walk',
    'gave_up',
    'cosine',
  )`select count(*) < ${nearest} as gave_up, min(${cosineOf(near.distance)}) as cosine from ${near}`;
  const rest = seenOf(
    'rest',
    `select ${SEEN_TEXT}, ${cosine} as cosine from ${names.memories}
      where ${whole()} and ${filter} and (select ${walked.gave_up} from ${walked}) and id not in (select ${near.id} from ${near})`,
  );
  return { near, walked, rest };
}

/** Memories that contain one of the keys and are not among the nearest. */
const sharing = ({ names, scanned, cosine }: StatementParts, keys: string, nearest: Walk | undefined): string =>
  `select ${SEEN_TEXT}, ${cosine} as cosine from ${names.memories} where ${scanned} and keywords && ${keys} ${
    nearest
      ? `and not (select ${nearest.walked.gave_up} from ${nearest.walked}) and id not in (select ${nearest.near.id} from ${nearest.near})`
      : ''
  }`;

/** The score of each of these memories. `covering`: exactly if keywords count. */
const scored = (
  { score }: StatementParts,
  memories: WithPart<'id' | 'created_at' | 'cosine'>,
  covering?: Covering,
): string =>
  `select ${memories.id}, ${memories.created_at}, ${score} from ${memories}${covering ? coverageOf(covering) : ''}`;

/** A keyword search for stop words only finds nothing. */
const nowhere = ({ names, scanned }: StatementParts): string =>
  `select ${SEEN_TEXT}, 0 as cosine from ${names.memories} where ${scanned} and false`;

/**
 * The common terms that still matter: the rarest ones, until the remaining terms together cannot raise a memory above the
 * threshold.
 */
function commonOf(
  { limit, keyArray, vectorWeight, keywordWeight }: StatementParts,
  { first, rarity, rare, walked }: Ranked,
): WithPart<'keys'> {
  const bar = `(select ${first.score} from ${first} order by ${first.score} desc offset ${limit}::int - 1 limit 1)`;
  const cosine = walked ? `(select ${walked.cosine} from ${walked})` : '0';
  return materialized('common', 'keys')`select array_agg(key) as keys
    from (select key, sum(idf) over (order by idf, n) / ${rarity.whole} as share
      from ${rarity}, unnest(${keyArray}, ${rarity.idfs}) with ordinality as term (key, idf, n)) as shares
    where ${vectorWeight} * ${cosine} + ${keywordWeight} * share >= coalesce(${bar}, 0) - 1e-6::float8 and key <> all(${rare})`;
}

interface Ranked extends Pick<Covering, 'rarity'> {
  readonly first: WithPart<'score'>;
  /** SQL of the keys that it was ranked by. */
  readonly rare: string;
  readonly walked: Walk['walked'] | undefined;
}

/** Whether an index leads to the memories of a large user that match the filters. */
export const hasIndexedFilter = (query: SearchQuery): boolean =>
  hasOwnIndex(query) || query.since !== undefined || query.until !== undefined;
const hasOwnIndex = ({ scope, tags }: SearchQuery): boolean => Boolean(scope) || tags.length > 0;
/** The user, so that the index of another filter leads to the matches, or else that on user and time. */
const userOfMatching = (query: SearchQuery): string => (hasOwnIndex(query) ? UNINDEXED_USER : 'user_id');

/** Counts the memories that `exactlyMatching` would rank, up to a limit. */
export function countMatchesStatement(names: Names, query: SearchQuery, limit: number): SearchStatement {
  const where = conditions(names.placement.shardOf(query.user_id));
  where.and(where.inShard());
  where.and(`${userOfMatching(query)} = ${where.bind(query.user_id)}`);
  whereWithin(where, query);
  whereScopePrefix(where, query);
  whereTags(where, query.tags);
  whereInTime(where, query);
  whereTagsOfLargeUser(where, query);
  const matches = `select from ${names.memories} where ${where} limit ${where.bind(limit)}`;
  return { text: `select count(*)::float8 as matching from (${matches}) as matches`, values: where.values };
}
