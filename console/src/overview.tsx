import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Change, type Memory, ScopeDeniedError } from '../../clients/typescript/src/index.ts';
import { Lines } from './chart.tsx';
import { count, counted, Time } from './format.tsx';
import { Icon, type IconName } from './icon.tsx';
import { Failure } from './load.tsx';
import { histogramOf, isSearch, milliseconds, quantile, sumOf, sumOfReadings, totalOf } from './metrics.ts';
import { href } from './route.ts';
import { useSession } from './session.ts';
import { FirstSteps, NoReader } from './start.tsx';
import { Empty, Title } from './ui.tsx';
import { type Metrics, useMetrics } from './use-metrics.ts';
import { ASKED, growthOf, type Stock, useFeed, useStock } from './use-stock.ts';

/** The user of the examples. */
const EXAMPLE = 'ana';
/** Changes that the page shows. */
const SHOWN = 10;
/** How long after a change the numbers are asked again, in milliseconds. */
const SETTLED = 3_000;

/** What is remembered, what is new, and how the gateway does; or how the first memory comes. */
export function Overview() {
  const { capabilities } = useSession();
  const [version, setVersion] = useState(0);
  const feed = useFeed();
  const [stock, setStock] = useState<Stock>();
  const { data, error, reload } = useStock(version);
  useEffect(() => data && setStock(data), [data]);
  const [isOld, setOld] = useState(false);
  useEffect(() => setOld(feed.changes.length > 0), [feed.changes]);
  // Not by the changes: without a pause between them, the time would begin again and again.
  useEffect(() => {
    if (!isOld) return;
    const timer = setTimeout(() => {
      setOld(false);
      setVersion((n) => n + 1);
    }, SETTLED);
    return () => clearTimeout(timer);
  }, [isOld]);
  const metrics = useMetrics();
  if (error instanceof ScopeDeniedError) return <NoReader />;
  if (stock && stock.users.length === 0 && feed.changes.length === 0) {
    return (
      <Empty icon="memories" title="Nothing is remembered yet" isPage>
        <FirstSteps user={EXAMPLE} />
      </Empty>
    );
  }
  return (
    <>
      <Title text="Overview" about="What this key may read, and how the gateway does." />
      {error !== undefined && <Failure error={error} retry={reload} />}
      {!capabilities.features.users && <p>This backend cannot list its users, so nothing is counted here.</p>}
      <div class="tiles">
        {capabilities.features.users && <StockTiles stock={stock} />}
        <MetricTiles {...metrics} />
      </div>
      {metrics.error !== undefined && (
        <p class="soft">
          Searches, times and errors are not shown:{' '}
          {metrics.error instanceof Error ? metrics.error.message : 'no answer'}.{' '}
          <a href={href('health')}>What helps</a>
        </p>
      )}
      <div class="board">
        <div>
          {stock && <Growth stock={stock} />}
          <Feed stock={stock} {...feed} />
        </div>
        <div>
          {stock && <Writers {...stock.today} />}
          <Stores metrics={metrics} />
        </div>
      </div>
    </>
  );
}

interface TileProps {
  readonly name: string;
  /** Undefined or false: not known yet. */
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly to?: string;
}

const Tile = ({ name, value, note, to }: TileProps) => (
  <div class="tile">
    <h2>{to ? <a href={to}>{name}</a> : name}</h2>
    <b>{value || '–'}</b>
    <small>{note}</small>
  </div>
);

function StockTiles({ stock }: { stock: Stock | undefined }) {
  const memories = stock?.users.reduce((sum, { count: size }) => sum + size, 0);
  const atLeast = stock?.more ? 'at least ' : '';
  const { memories: today, isAll } = stock?.today ?? {};
  return (
    <>
      <Tile name="Memories" value={memories !== undefined && count(memories)} note={atLeast && 'at least'} />
      <Tile name="Users" value={stock && count(stock.users.length)} note={atLeast && 'at least'} to={href('users')} />
      <Tile name="Added today" value={today && count(today.length)} note={today && !isAll && 'at least'} />
    </>
  );
}

/** Of the time that the page is open; before there was a request, since the process started. */
function MetricTiles({ now, intervals }: Metrics) {
  if (!now) return null;
  const seconds = intervals.reduce((sum, interval) => sum + interval.seconds, 0);
  const recent = sumOf(intervals.map(({ times }) => histogramOf(times, undefined)));
  const isRecent = totalOf(recent) > 0;
  const all = histogramOf(now.times, undefined);
  const of = isRecent ? recent : all;
  const searches = intervals.reduce(
    (sum, { times }) =>
      sum + [...times].reduce((n, [verb, histogram]) => n + (isSearch(verb) ? totalOf(histogram) : 0), 0),
    0,
  );
  const [half, most] = [quantile(of, 0.5), quantile(of, 0.99)];
  const queued = sumOfReadings(now, 'omp_embedding_waiting_texts');
  const failed = sumOfReadings(now, 'omp_ingestion_memories', { state: 'failed' }) ?? 0;
  return (
    <>
      <Tile
        name="Searches a minute"
        value={seconds > 0 && ((60 * searches) / seconds).toFixed(seconds > 0 && searches > 0 ? 1 : 0)}
        note="while this page is open"
      />
      <Tile
        name="Time to answer"
        value={half !== undefined && milliseconds(half)}
        note={most !== undefined && `99 % within ${milliseconds(most)}`}
        to={href('health')}
      />
      <Tile
        name="Errors"
        value={count(now.failed)}
        note={`of ${counted(totalOf(all), 'request', 'requests')} since the start`}
      />
      {queued !== undefined && (
        <Tile name="Embedding queue" value={count(queued)} note={failed > 0 ? `${count(failed)} failed` : 'texts'} />
      )}
    </>
  );
}

function Growth({ stock: { stats, users, more } }: { stock: Stock }) {
  const growth = growthOf(stats);
  if (!growth) return null;
  const { labels, memories, users: people } = growth;
  const some = more || users.length > ASKED ? `, of the ${ASKED} users with most` : '';
  return (
    <section class="panel growth">
      <Lines title={`Memories${some}`} lines={[{ name: 'memories', values: memories }]} show={count} ends={labels} />
      {people.at(-1) !== 1 && (
        <Lines title={`Users${some}`} lines={[{ name: 'users', values: people }]} show={count} ends={labels} />
      )}
    </section>
  );
}

/** Who has written today, and which way. */
function Writers({ memories, isAll }: Stock['today']) {
  const sizes = new Map<string, number>();
  for (const { 'x-omp-origin': origin } of memories) {
    const by = origin && origin.via !== 'unknown' ? `${origin.key ?? 'anonymous'} (${origin.via})` : 'unknown';
    sizes.set(by, (sizes.get(by) ?? 0) + 1);
  }
  const sorted = [...sizes].sort(([, a], [, b]) => b - a);
  return (
    <section class="panel">
      <h2>Added today, by whom</h2>
      {sorted.length === 0 && <p class="soft">Nobody has added a memory today.</p>}
      <ul class="bars">
        {sorted.map(([by, size]) => (
          <li key={by}>
            <span dir="auto">{by}</span> <b>{count(size)}</b>
            <meter min={0} max={sorted[0]?.[1] ?? 1} value={size} aria-label={counted(size, 'memory', 'memories')} />
          </li>
        ))}
      </ul>
      {!isAll && <small>Among the newest of the {ASKED} users who changed last.</small>}
    </section>
  );
}

type Event = Pick<Change, 'id' | 'action' | 'user_id' | 'at' | 'caller' | 'memory'>;

const ICONS: Readonly<Record<string, IconName>> = { add: 'add', update: 'edit', import: 'save' };

/** The newest memories, and above them each change as it happens. */
function Feed({ stock, changes, error }: { stock: Stock | undefined; changes: readonly Change[]; error?: unknown }) {
  const { capabilities } = useSession();
  const seen = new Set(changes.map(({ id }) => id));
  const events: readonly Event[] = [
    ...changes.filter(({ id }, n) => id === null || changes.findIndex((one) => one.id === id) === n),
    ...(stock?.newest ?? []).filter(({ id }) => !seen.has(id)).map(eventOf),
  ];
  return (
    <section class="panel" aria-busy={!stock && capabilities.features.users === true}>
      <h2>
        Newest changes {capabilities.features.changes && error === undefined && <span class="mark good">live</span>}
      </h2>
      {error !== undefined && <Failure error={error} />}
      {!stock && capabilities.features.users && <p class="soft">Reading…</p>}
      <ol class="feed">
        {events.slice(0, SHOWN).map(({ id, action, user_id: user, at, caller, memory }) => (
          <li key={`${id} ${at}`}>
            <Icon name={ICONS[action] ?? 'remove'} />
            <div>
              {memory ? (
                <a href={href('memory', { id: memory.id, user })} dir="auto">
                  {memory.content.slice(0, 200)}
                </a>
              ) : (
                <span>
                  {id === null
                    ? 'All memories were erased'
                    : `A memory was ${action === 'delete' ? 'deleted' : 'changed'}`}
                </span>
              )}
              <small>
                <a href={href('memories', { user })} dir="auto">
                  {user}
                </a>{' '}
                · by {caller ?? 'anonymous'} · <Time of={at} />
              </small>
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}

const eventOf = (memory: Memory): Event => {
  const { id, user_id, created_at, updated_at, 'x-omp-origin': origin } = memory;
  const isChanged = Boolean(updated_at && updated_at !== created_at);
  const action = isChanged ? 'update' : origin?.via === 'import' ? 'import' : 'add';
  return { id, user_id, action, at: updated_at ?? created_at, caller: origin?.key ?? null, memory };
};

/** The stores, and whether each works. */
function Stores({ metrics }: { metrics: Metrics }) {
  const { capabilities, works } = useSession();
  const { provider, embedding, frozen, 'x-stores': mounted = [] } = capabilities;
  const isOpen = (name: string) =>
    metrics.error === undefined &&
    metrics.now?.samples.some(
      ({ name: metric, labels, value }) =>
        metric === 'omp_circuit_breaker_state' && labels.dependency === name && labels.state === 'open' && value === 1,
    );
  const stores = [
    { name: provider, what: 'root store', embedding, isDown: works === false || isOpen(provider) },
    ...mounted.map((store) => ({
      name: store.name,
      what: `${store.provider} at ${store.mount}`,
      embedding: store.embedding,
      isDown: isOpen(store.name),
    })),
  ];
  return (
    <section class="panel">
      <h2>Stores</h2>
      <ul class="stores">
        {stores.map((store) => (
          <li key={store.name}>
            <span class={`dot ${store.isDown ? 'bad' : frozen ? 'warn' : 'good'}`} />
            <div>
              <b>{store.name}</b> {store.isDown ? 'does not answer' : frozen ? 'takes no changes' : 'works'}
              <small>
                {store.what} · {store.embedding ? store.embedding.model : 'by words alone'}
              </small>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
