import { groupResults, type SearchResult } from '../../clients/typescript/src/index.ts';
import { Chips, Marks, Written } from './format.tsx';
import { Icon } from './icon.tsx';
import { Failure, Missing, useLoad } from './load.tsx';
import { Prompt } from './prompt.tsx';
import { go, href } from './route.ts';
import { Marked, Parts } from './score.tsx';
import { useSession } from './session.ts';
import { NoUser } from './start.tsx';
import { Empty, Title } from './ui.tsx';

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
  if (!verbs.includes('search')) return <Empty icon="search" title="This backend cannot search" isPage />;
  if (user === undefined) return <NoUser icon="search" title="What would a model be told?" />;
  const parts = features.explain && data?.results[0]?.explanation;
  const orders = (['score', 'cosine', 'coverage'] as const).filter(
    (order) => order === 'score' || (parts && parts.cosine !== null && parts.coverage !== null),
  );
  return (
    <>
      <Title
        text={`Context lab of ${user}`}
        about="What a model gets for a query, why it gets that, and what it does not get."
      />
      <form class="filters" key={JSON.stringify(parameters)} onSubmit={submit}>
        <label class="whole">
          Query
          <input type="search" name="q" defaultValue={q} required placeholder="What a person asks an assistant" />
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
            <option value="">not for models</option>
            <option value="true">like others</option>
            <option value="false">left out</option>
          </select>
        </label>
        <button type="submit" class="main">
          <Icon name="find" />
          Search
        </button>
      </form>
      {q === '' && (
        <Empty icon="search" title="Ask something">
          <p>The page shows the block that an assistant would get, line by line, with the memories behind it.</p>
        </Empty>
      )}
      {error !== undefined && <Failure error={error} retry={reload} />}
      <Missing from={data} />
      {data?.results.length === 0 && (
        <Empty icon="search" title="Nothing is found">
          <p>A lower score or no scope finds more.</p>
        </Empty>
      )}
      {asked && verbs.includes('context') && (
        <Prompt
          query={query}
          results={data?.results ?? []}
          budget={Number(budget)}
          onBudget={(chosen) => go('search', { ...parameters, budget: chosen })}
        />
      )}
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
      {orders.length > 1 && <p class="soft">The orders by meaning and by words are of the {most} best by score.</p>}
      {data && !features.explain && <p class="soft">This backend does not tell the parts of a score.</p>}
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
  const list = (group: readonly SearchResult[], before = 0) => (
    <ol class="results" start={before + 1}>
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
          {list(lessLikely, best.length)}
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
        <Chips memory={memory} to={(changed) => href('memories', { user: memory.user_id, ...changed })} />
        <Written memory={memory} />
        {explanation && <Parts {...explanation} />}
      </small>
    </li>
  );
}
