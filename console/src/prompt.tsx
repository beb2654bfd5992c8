import { useState } from 'preact/hooks';
import type { ContextBlock, SearchResult } from '../../clients/typescript/src/index.ts';
import { Copyable } from './copyable.tsx';
import { Chips, count, counted, Marks, Written } from './format.tsx';
import { Failure, Missing, useLoad } from './load.tsx';
import { href } from './route.ts';
import { Marked, Parts } from './score.tsx';
import { useSession } from './session.ts';

interface PromptProps {
  readonly query: {
    readonly q: string;
    readonly user_id: string;
    readonly scope?: string | undefined;
    readonly min_score?: number | undefined;
    readonly untrusted?: boolean | undefined;
  };
  /** What the search finds, best first. */
  readonly results: readonly SearchResult[];
  readonly budget: number;
  readonly onBudget: (budget: string) => void;
}

/** Memories that a block leaves out, shown at first. */
const SHOWN = 10;
/** The lowest score of a block with vector search, unless another is asked for. */
const LEAST = 0.1;

/** `POST /context` for the same query: each line with the memory behind it, and what is left out. */
export function Prompt({ query: { q, ...query }, results, budget, onBudget }: PromptProps) {
  const { client, capabilities } = useSession();
  const [chosen, setChosen] = useState(budget);
  const { data, error } = useLoad(JSON.stringify([q, query, budget]), (signal) =>
    client.context({ query: q, ...query, token_budget: budget, explain: true }, { signal }),
  );
  const cited = new Set(data?.citations.flatMap(({ memory_id: id, 'x-copies': copies = [] }) => [id, ...copies]));
  const least = query.min_score ?? (capabilities.features.vector_search ? LEAST : 0);
  const left = results
    .filter(({ memory }) => !cited.has(memory.id))
    .map((result) => ({ result, why: whyLeftOut(result, { least, untrusted: query.untrusted === true }) }));
  return (
    <section class="panel">
      <h2>What a model gets</h2>
      <label class="slider">
        At most {count(chosen)} tokens
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
      <Missing from={data} />
      {!data && error === undefined && <p class="soft">Asking…</p>}
      {data && (
        <>
          <p>
            {counted(data.token_count, 'token', 'tokens')} of {count(budget)},{' '}
            {counted(data.citations.length, 'memory', 'memories')}
          </p>
          <Lines block={data} results={results} />
          <details>
            <summary>The block as it is sent</summary>
            <Copyable text={data.text || '(nothing)'} what="the block" />
          </details>
          {left.length > 0 && <LeftOut left={left} />}
        </>
      )}
    </section>
  );
}

/** The lines between the fences, each with its memory. Tokens of a line are its share of all. */
function Lines({ block: { text, citations, token_count }, results }: LinesProps) {
  const lines = linesOf(text);
  const known = new Map(results.map((result) => [result.memory.id, result]));
  return (
    <ol class="lines">
      {citations.map(({ memory_id: id, score, explanation: place, 'x-copies': copies = [] }, n) => {
        const { heading, line } = lines[n] ?? { line: '' };
        const { memory, explanation } = known.get(id) ?? {};
        return (
          <li key={id}>
            {heading && <code dir="auto">{heading}</code>}
            <code dir="auto">
              <Marked text={line} terms={explanation?.terms ?? []} />
            </code>
            <small>
              <b>{score.toFixed(3)}</b>
              <span>about {counted(Math.round((token_count * line.length) / text.length), 'token', 'tokens')}</span>
              {explanation && <Parts {...explanation} />}
              {place?.search === null && <span>no search found it: it stands next to one that was found</span>}
              {place?.search && place.neighbour !== null && <span>ranked with its conversation</span>}
              {copies.length > 0 && <span>also for {counted(copies.length, 'copy', 'copies')}</span>}
              {memory && (
                <>
                  <Chips memory={memory} to={(changed) => href('memories', { user: memory.user_id, ...changed })} />
                  <Written memory={memory} />
                </>
              )}
              <a href={href('memory', { id, user: memory?.user_id })}>Open</a>
            </small>
          </li>
        );
      })}
    </ol>
  );
}

/** The numbered lines between the fences, each with the heading above it. */
function linesOf(text: string): { heading?: string | undefined; line: string }[] {
  let heading: string | undefined;
  return text
    .split('\n')
    .slice(1, -1)
    .flatMap((line) => {
      if (!/^\[\d+\] /.test(line)) {
        heading = line || undefined;
        return [];
      }
      const numbered = { heading, line };
      heading = undefined;
      return [numbered];
    });
}

interface LinesProps {
  readonly block: ContextBlock;
  readonly results: readonly SearchResult[];
}

interface LeftOutProps {
  readonly left: readonly { readonly result: SearchResult; readonly why: string }[];
}

function LeftOut({ left }: LeftOutProps) {
  const [most, setMost] = useState(SHOWN);
  return (
    <>
      <h2>Found, and left out: {count(left.length)}</h2>
      <ul class="lines">
        {left.slice(0, most).map(({ result: { memory, score }, why }) => (
          <li key={memory.id}>
            <a href={href('memory', { id: memory.id, user: memory.user_id })} dir="auto">
              {memory.content.slice(0, 200)}
            </a>
            <small>
              <b>{score.toFixed(3)}</b>
              <span>{why}</span>
              <Marks memory={memory} />
            </small>
          </li>
        ))}
      </ul>
      {left.length > most && (
        <button type="button" onClick={() => setMost(most + SHOWN)}>
          Show {count(Math.min(SHOWN, left.length - most))} more
        </button>
      )}
    </>
  );
}

/** Why a block does not have a memory that the search finds. */
function whyLeftOut(
  { memory, score, 'x-superseded-by': newer }: SearchResult,
  { least, untrusted }: { readonly least: number; readonly untrusted: boolean },
): string {
  const { valid_from, valid_to, 'x-omp-untrusted': isUntrusted } = memory;
  const now = new Date().toISOString();
  if (isUntrusted && !untrusted) return 'an untrusted key wrote it';
  if (newer) return 'a newer memory replaces it';
  if (valid_to && valid_to < now) return 'it has expired';
  if (valid_from && valid_from > now) return 'it is not valid yet';
  if (score < least) return `its score is below ${least}`;
  return 'it does not fit into the tokens that are left';
}
