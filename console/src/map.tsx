import { useMemo, useState } from 'preact/hooks';
import {
  ApiError,
  type ExportedMemory,
  type LeftOut,
  type ListQuery,
  type Memory,
  type MemoryClient,
} from '../../clients/typescript/src/index.ts';
import { count, Time } from './format.tsx';
import { Failure, Missing, useLoad } from './load.tsx';
import type { Point } from './map-worker.ts';
import { go, href } from './route.ts';
import { useSession } from './session.ts';
import { NoUser } from './start.tsx';
import { Empty, Title } from './ui.tsx';

interface Parameters {
  readonly user?: string;
  readonly scope?: string;
  readonly tag?: string;
  readonly colour?: string;
}

interface Dot extends Point, Pick<Memory, 'id' | 'scope' | 'created_at'> {
  /** The beginning of the content. */
  readonly text: string;
}

interface Drawing {
  /** Newest first. */
  readonly items: readonly Dot[];
  /** Older memories are left out. */
  readonly more: boolean;
  /** Memories left out because they have no vector that can be compared with the others. */
  readonly apart: number;
  readonly leftOut: LeftOut;
}

const MOST = 2_000;
const PAGE = 200;
/** Ids of one request: they are in its address. */
const IDS = 50;

/** Places that are drawn alike: in the colour `.g0` to `.g7` of map.css, and in a form of their own. */
interface Group {
  readonly label: string;
  readonly form: number;
}

/** Forms of the groups, around 0, about 20 wide. All other places have the last one. */
const FORMS = [
  'M9 0A9 9 0 1 1-9 0A9 9 0 1 1 9 0Z',
  'M-8-8H8V8H-8Z',
  'M0-10L10 8H-10Z',
  'M0-11L11 0L0 11L-11 0Z',
  'M0 10L10-8H-10Z',
  'M-3-10H3V-3H10V3H3V10H-3V3H-10V-3H-3Z',
  'M-10-5L-5-10L0-5L5-10L10-5L5 0L10 5L5 10L0 5L-5 10L-10 5L-5 0Z',
  'M5 0A5 5 0 1 1-5 0A5 5 0 1 1 5 0Z',
] as const;
const OTHERS = FORMS.length - 1;
const AGES = 5;
/** How near the pointer must be, in pixels. */
const REACH = 24;

/** The newest memories on a plane: those with a like meaning are near each other. */
export function MapPage({ user, scope = '', tag = '', colour = 'scope' }: Parameters) {
  const { client, capabilities } = useSession();
  const { features } = capabilities;
  const canDraw = features.export === true && features.vector_search;
  const asked = user !== undefined && canDraw;
  const { data, error, reload } = useLoad(asked ? JSON.stringify([user, scope, tag]) : undefined, (signal) =>
    draw(client, { user_id: user ?? '', scope: scope || undefined, tag: tag || undefined }, signal),
  );
  const submit = (event: Event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Record<string, string>;
    go('map', { user, ...given });
  };
  if (!canDraw) return <NoMap />;
  if (user === undefined) return <NoUser icon="map" title="Whose memories?" />;
  return (
    <>
      <Title text={`Map of the memories of ${user}`} about="Memories with a like meaning are near each other." />
      <form class="filters" key={JSON.stringify([user, scope, tag, colour])} onSubmit={submit}>
        {features.scopes !== 'none' && (
          <label>
            Scope
            <input name="scope" defaultValue={scope} placeholder="work/*" />
          </label>
        )}
        {features.tags !== false && (
          <label>
            Tag
            <input name="tag" defaultValue={tag} />
          </label>
        )}
        <label>
          Colour by
          <select name="colour" defaultValue={colour}>
            {features.scopes !== 'none' && <option value="scope">scope</option>}
            <option value="age">age</option>
          </select>
        </label>
        <button type="submit" class="main">
          Draw
        </button>
      </form>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {error instanceof ApiError && error.code === 'scope_denied' && (
        <p class="empty">A map needs a key that may read every scope of the user.</p>
      )}
      {asked && !data && error === undefined && <p class="empty">Comparing the memories with each other…</p>}
      <Missing from={data?.leftOut} />
      {data?.items.length === 0 && (
        <Empty icon="map" title="No memory to draw">
          <p>
            {data.apart > 0
              ? `${count(data.apart)} have no vector yet, or no known word.`
              : 'Another scope, tag or user may have some.'}
          </p>
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <Drawn map={data} user={user} byAge={colour === 'age' || features.scopes === 'none'} />
      )}
    </>
  );
}

/** The newest memories that a list shows, each at a place that its vector decides (Decision 42). */
async function draw(client: MemoryClient, query: ListQuery, signal: AbortSignal): Promise<Drawing> {
  const listed: Memory[] = [];
  let leftOut: LeftOut = {};
  let cursor: string | undefined;
  do {
    const page = await client.memories.list({ ...query, limit: PAGE, cursor }, { signal }).page();
    listed.push(...page.items);
    leftOut = page;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && listed.length < MOST);
  const exported = new Map<string, ExportedMemory>();
  for (let from = 0; from < listed.length; from += IDS) {
    const id = listed.slice(from, from + IDS).map((memory) => memory.id);
    const found = client.export({ id, user_id: query.user_id, vectors: true }, { signal });
    for await (const memory of found) exported.set(memory.id, memory);
  }
  const embedded = listed.flatMap((memory) => {
    const { vector, embedding_model } = exported.get(memory.id) ?? {};
    // One of zeros, which a text without a known word has, is near to nothing.
    return vector === undefined || /^A*=*$/.test(vector) ? [] : [{ memory, vector, embedding_model }];
  });
  // Vectors of different models cannot be compared.
  const comparable = embedded.filter((one) => one.embedding_model === embedded[0]?.embedding_model);
  const points = await pointsOf(
    comparable.map(({ vector }) => vector),
    signal,
  );
  return {
    items: comparable.map(({ memory: { id, scope, created_at, content } }, n) => ({
      ...{ id, scope, created_at, text: /^.{0,200}/su.exec(content)?.[0] ?? '' },
      ...(points[n] as Point),
    })),
    more: cursor !== undefined,
    apart: listed.length - comparable.length,
    leftOut,
  };
}

/** A thread for one map, so that the page stays usable and can give up. */
function pointsOf(vectors: readonly string[], signal: AbortSignal): Promise<readonly Point[]> {
  const worker = new Worker(new URL('./map-worker.ts', import.meta.url), { type: 'module' });
  return new Promise<readonly Point[]>((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message || 'the map could not be drawn'));
    signal.addEventListener('abort', () => reject(signal.reason));
    worker.postMessage(vectors);
  }).finally(() => worker.terminate());
}

const NoMap = () => (
  <Empty icon="map" title="This gateway draws no map" isPage>
    <p>It needs stored vectors, which there are unless OMP_SEARCH_MODE is keyword, and a backend that exports.</p>
  </Empty>
);

function Drawn({ map, user, byAge }: { map: Drawing; user: string; byAge: boolean }) {
  const { items, more, apart } = map;
  const { groups, groupOf } = useMemo(() => (byAge ? agesOf(items) : scopesOf(items)), [items, byAge]);
  const [near, setNear] = useState<Dot>();
  return (
    <>
      <p>
        {count(items.length)} memories{more && ', the newest'}.{' '}
        {apart > 0 && `${count(apart)} more have no vector yet, no known word, or another model. `}
        Memories near each other are mostly alike; a distance across the map means little.
      </p>
      <div class="map">
        <div>
          <Plane
            items={items}
            groupOf={groupOf}
            near={near}
            onNear={setNear}
            onOpen={(id) => go('memory', { id, user })}
          />
          <ul class="legend" aria-label="Legend">
            {groups.map((group) => (
              <li key={group.form}>
                <Mark form={group.form} /> <span dir="auto">{group.label}</span>
              </li>
            ))}
          </ul>
        </div>
        <section aria-label="The memories of the map">
          <ul class="results">
            {items.map((place) => (
              <li key={place.id}>
                <Mark form={groupOf(place).form} />
                <a
                  href={href('memory', { id: place.id, user })}
                  dir="auto"
                  onFocus={() => setNear(place)}
                  onBlur={() => setNear(undefined)}
                  onMouseEnter={() => setNear(place)}
                  onMouseLeave={() => setNear(undefined)}
                >
                  {place.text}
                </a>
              </li>
            ))}
          </ul>
        </section>
      </div>
    </>
  );
}

const Mark = ({ form }: { form: number }) => (
  <svg class="mark-of" viewBox="-12 -12 24 24" aria-hidden="true">
    <path class={`g${form}`} d={FORMS[form]} />
  </svg>
);

interface PlaneProps {
  readonly items: readonly Dot[];
  readonly groupOf: (place: Dot) => Group;
  readonly near: Dot | undefined;
  readonly onNear: (place: Dot | undefined) => void;
  readonly onOpen: (id: string) => void;
}

/** The plane is for the pointer; the list beside it has the same for the keyboard and for screen readers. */
function Plane({ items, groupOf, near, onNear, onOpen }: PlaneProps) {
  const nearest = (event: MouseEvent): Dot | undefined => {
    const { left, top, width } = (event.currentTarget as Element).getBoundingClientRect();
    const far = ({ x, y }: Dot) =>
      Math.hypot(inner(x) * width + left - event.clientX, inner(y) * width + top - event.clientY);
    const best = items.reduce((one, other) => (far(other) < far(one) ? other : one));
    return far(best) <= REACH ? best : undefined;
  };
  const marks = useMemo(
    () =>
      items.map((place) => {
        const { form } = groupOf(place);
        return (
          <path
            key={place.id}
            class={`g${form}`}
            d={FORMS[form]}
            transform={`translate(${1000 * inner(place.x)} ${1000 * inner(place.y)})`}
          />
        );
      }),
    [items, groupOf],
  );
  return (
    <div class="plane">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the links of the list open memories with the keyboard */}
      <svg
        viewBox="0 0 1000 1000"
        role="img"
        aria-label={`${items.length} memories as points; the list after it has their texts`}
        onMouseMove={(event) => onNear(nearest(event))}
        onMouseLeave={() => onNear(undefined)}
        onClick={(event) => {
          const place = nearest(event);
          if (place) onOpen(place.id);
        }}
      >
        {marks}
        {near && <circle class="ring" cx={1000 * inner(near.x)} cy={1000 * inner(near.y)} r="22" />}
      </svg>
      {near && (
        <div
          class={`tip ${near.x > 0.5 ? 'left' : ''} ${near.y > 0.5 ? 'above' : ''}`}
          style={{ left: `${100 * inner(near.x)}%`, top: `${100 * inner(near.y)}%` }}
        >
          <span dir="auto">{near.text}</span>
          <small>
            {near.scope && `${near.scope} · `}
            <Time of={near.created_at} />
          </small>
        </div>
      )}
    </div>
  );
}

/** Leaves room for the marks at the edge. */
const inner = (part: number): number => 0.02 + 0.96 * part;

interface Groups {
  readonly groups: readonly Group[];
  readonly groupOf: (place: Dot) => Group;
}

/** Groups by scope, or by its first segment if there are many scopes; the smallest groups form one. */
function scopesOf(items: readonly Dot[]): Groups {
  const first = ({ scope }: Dot) => scope?.split('/')[0];
  const many = new Set(items.map(({ scope }) => scope)).size > OTHERS && new Set(items.map(first)).size > 1;
  const nameOf = (place: Dot) => (many ? first(place) : place.scope) ?? 'without a scope';
  const sizes = new Map<string, number>();
  for (const place of items) sizes.set(nameOf(place), (sizes.get(nameOf(place)) ?? 0) + 1);
  const largest = [...sizes].sort(([, a], [, b]) => b - a).slice(0, OTHERS);
  const groups = new Map(largest.map(([label, size], form) => [label, { label: `${label} (${count(size)})`, form }]));
  const rest = items.length - largest.reduce((sum, [, size]) => sum + size, 0);
  const others = { label: `others (${count(rest)})`, form: OTHERS };
  return {
    groups: [...groups.values(), ...(rest > 0 ? [others] : [])],
    groupOf: (place) => groups.get(nameOf(place)) ?? others,
  };
}

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

/** Groups by age in fifths, newest first, which is the order of the items. */
function agesOf(items: readonly Dot[]): Groups {
  const size = Math.max(1, Math.ceil(items.length / AGES));
  const groups: Group[] = [];
  const groupOfPlace = new Map<Dot, Group>();
  for (let start = 0; start < items.length; start += size) {
    const part = items.slice(start, start + size);
    const [from, to] = [part.at(-1), part[0]].map((place) => DAY.format(new Date(place?.created_at ?? '')));
    const group = { label: from === to ? `${from}` : `${from} to ${to}`, form: groups.length };
    groups.push(group);
    for (const place of part) groupOfPlace.set(place, group);
  }
  return { groups, groupOf: (place) => groupOfPlace.get(place) as Group };
}
