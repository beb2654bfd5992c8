import { useState } from 'preact/hooks';
import { type Explanation, groupResults, type SearchResult } from '../../clients/typescript/src/index.ts';
import { Marks, Written } from './format.tsx';
import { Failure, Missing, useLoad } from './load.tsx';
import { go, href } from './route.ts';
import { useSession } from './session.ts';

interface Parameters {
  readonly user?: string;
  readonly q?: string;
  readonly scope?: string;
  readonly limit?: string;
  readonly min_score?: string;
  readonly order?: string;
  readonly budget?: string;
  /** `untrusted` of the request; empty: its default. */
  readonly untrusted?: string;
}

/** Results that the other orders are made of. */
const MOST_RESULTS = 100;

const ORDERS = {
  score: { name: 'By score', of: ({ score }: SearchResult) => score },
  cosine: { name: 'By meaning alone', of: ({ explanation }: SearchResult) => explanation?.cosine ?? 0 },
  coverage: { name: 'By words alone', of: ({ explanation }: SearchResult) => explanation?.coverage ?? 0 },
} as const;

/** Why a query finds what it finds, and what a model would be given. */
export function SearchLab({ user, q = '', limit = '10', budget = '500', ...rest }: Parameters) {
  const { scope = '', min_score = '', untrusted = '' } = rest;
  const { client, capabilities } = useSession();
  const { verbs, features, limits } = capabilities;
  const most = Math.min(MOST_RESULTS, limits?.max_search_results ?? MOST_RESULTS);
  const asked = user !== undefined && q !== '' && verbs.includes('search');
  const parameters = { user, q, scope, limit, min_score, budget, untrusted };
  const query = {
    q,
    user_id: user ?? '',
    scope: scope || undefined,
    min_score: min_score === '' ? undefined : Number(min_score),
    untrusted: untrusted === '' ? undefined : untrusted === 'true',
  };
  const { data, error, reload } = useLoad(asked ? JSON.stringify(query) : undefined, (signal) =>
    client.memories.search({ ...query, limit: most, explain: features.explain || undefined }, { signal }),
  );
  const submit = (event: Event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    go('search', { ...parameters, ...(Object.fromEntries(given) as Record<string, string>) });
  };
  if (!verbs.includes('search')) return <p class="empty">This backend cannot search.</p>;
  const parts = features.explain && data?.results[0]?.explanation;
  const orders = (['score', 'cosine', 'coverage'] as const).filter(
    (order) => order === 'score' || (parts && parts.cosine !== null && parts.coverage !== null),
  );
  return (
    <>
      <h1>Search {user === undefined ? '' : `the memories of ${user}`}</h1>
      <form class="filters" key={JSON.stringify(parameters)} onSubmit={submit}>
        <label class="wide">
          Query
          <input type="search" name="q" defaultValue={q} required />
        </label>
        {features.scopes !== 'none' && (
          <label>
            Scope begins with
            <input name="scope" defaultValue={scope} />
          </label>
        )}
        <label>
          Results
          <input type="number" name="limit" min="1" max="100" defaultValue={limit} />
        </label>
        <label>
          Lowest score
          <input type="number" name="min_score" min="0" max="1" step="any" defaultValue={min_score} />
        </label>
        <label>
          Untrusted memories
          <select name="untrusted" defaultValue={untrusted}>
            <option value="">marked; no model gets them</option>
            <option value="true">like others, marked</option>
            <option value="false">left out</option>
          </select>
        </label>
        <button type="submit" class="main" disabled={user === undefined}>
          Search
        </button>
      </form>
      {user === undefined && <p class="empty">Type the id of a user above.</p>}
      {error !== undefined && <Failure error={error} retry={reload} />}
      <Missing from={data} />
      {data?.results.length === 0 && <p class="empty">Nothing is found. A lower score or no scope finds more.</p>}
      {data && data.results.length > 0 && (
        <div class="orders">
          {orders.map((order) => (
            <section key={order}>
              <h2>{ORDERS[order].name}</h2>
              <Results order={order} results={data.results} limit={Number(limit)} />
            </section>
          ))}
        </div>
      )}
      {orders.length > 1 && <p>The orders by meaning and by words are of the {most} best by score.</p>}
      {data && !features.explain && <p>This backend does not tell the parts of a score.</p>}
      {asked && verbs.includes('context') && (
        <Prompt
          query={query}
          budget={Number(budget)}
          onBudget={(chosen) => go('search', { ...parameters, budget: chosen })}
        />
      )}
    </>
  );
}

interface ResultsProps {
  readonly order: keyof typeof ORDERS;
  readonly results: readonly SearchResult[];
  readonly limit: number;
}

/** The best results in an order. By score, those that are far below the best are shown apart. */
function Results({ order, results, limit }: ResultsProps) {
  const { of } = ORDERS[order];
  const shown = results
    .filter((result) => order === 'score' || of(result) > 0)
    .sort((a, b) => of(b) - of(a))
    .slice(0, limit);
  const { best, lessLikely } = order === 'score' ? groupResults(shown) : { best: shown, lessLikely: [] };
  const list = (group: readonly SearchResult[]) => (
    <ol class="results">
      {group.map((result) => (
        <Result key={result.memory.id} result={result} value={of(result)} />
      ))}
    </ol>
  );
  return (
    <>
      {list(best)}
      {lessLikely.length > 0 && (
        <>
          <h3>Less likely</h3>
          {list(lessLikely)}
        </>
      )}
    </>
  );
}

function Result({ result: { memory, explanation }, value }: { result: SearchResult; value: number }) {
  return (
    <li>
      <meter min={0} max={1} value={value} aria-label={`Score ${value}`} />
      <b>{value.toFixed(3)}</b>
      <a href={href('memory', { id: memory.id, user: memory.user_id })} dir="auto">
        <Marked text={memory.content.slice(0, 600)} terms={explanation?.terms ?? []} />
      </a>
      <small>
        <Marks memory={memory} />
        {memory.scope && <span class="scope">{memory.scope}</span>}
        <Written memory={memory} />
        {explanation && <Parts {...explanation} />}
      </small>
    </li>
  );
}

function Parts({ cosine, coverage, weights, store, store_weight = 1 }: Explanation) {
  const sum = [
    ...(cosine === null ? [] : [`${weights.vector} × meaning ${cosine.toFixed(3)}`]),
    ...(coverage === null ? [] : [`${weights.keyword} × words ${coverage.toFixed(3)}`]),
  ].join(' + ');
  return (
    <>
      {store && <span class="mark">{store}</span>}
      <span class="parts">{store_weight === 1 ? sum : `${store_weight} × (${sum})`}</span>
    </>
  );
}

/** Characters at the end of a word that may differ from the query's, such as a plural. */
const ENDING = 3;

/** The words of the text that the query has, in another form too. */
function Marked({ text, terms }: { text: string; terms: readonly string[] }) {
  const stems = terms.map((term) => {
    const word = term.toLowerCase();
    return word.slice(0, Math.max(3, word.length - ENDING));
  });
  return (
    <>
      {text.split(/(\p{L}[\p{L}\p{N}]*|\p{N}+)/u).map((word, n) =>
        // Every second piece is a word.
        n % 2 === 1 && stems.some((stem) => word.toLowerCase().startsWith(stem)) ? <mark key={n}>{word}</mark> : word,
      )}
    </>
  );
}

interface PromptProps {
  readonly query: {
    readonly q: string;
    readonly user_id: string;
    readonly scope?: string | undefined;
    readonly min_score?: number | undefined;
    readonly untrusted?: boolean | undefined;
  };
  readonly budget: number;
  readonly onBudget: (budget: string) => void;
}

/** `POST /context` for the same query. */
function Prompt({ query: { q, ...query }, budget, onBudget }: PromptProps) {
  const { client } = useSession();
  const [chosen, setChosen] = useState(budget);
  const { data, error } = useLoad(JSON.stringify([q, query, budget]), (signal) =>
    client.context({ query: q, ...query, token_budget: budget }, { signal }),
  );
  return (
    <section>
      <h2>What a model gets</h2>
      <label class="slider">
        At most {chosen} tokens
        <input
          type="range"
          min="50"
          max="4000"
          step="50"
          value={chosen}
          onInput={(event) => setChosen(Number(event.currentTarget.value))}
          onChange={(event) => onBudget(event.currentTarget.value)}
        />
      </label>
      {error !== undefined && <Failure error={error} />}
      {data && (
        <>
          <Missing from={data} />
          <p>
            {data.token_count} tokens, {data.citations.length} {data.citations.length === 1 ? 'memory' : 'memories'}
          </p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
          <pre dir="auto" tabIndex={0}>
            {data.text || '(nothing)'}
          </pre>
        </>
      )}
    </section>
  );
}
