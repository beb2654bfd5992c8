import type { Call, FoundPoint, Points } from '#provider';
import { MAX_LISTED } from '../client/client.ts';
import { type GatewayIndex, type Reads, wantedOf } from './gateway-reads.ts';
import { EARLIEST_MS, isIdOf, listOrder, movedId, timeOf, timePart, userPrefix } from './ids.ts';
import { createWalk, type Stretch } from './list-walk.ts';

/**
 * The first page and every page after one that this process read in the last minutes take one list for every 99 memories and one
 * fetch for every 100; sometimes one more if another gateway just deleted some. Any other position takes a few lists more: of
 * 10,000 memories mostly 2 to 8; up to 50 if nothing older follows for weeks.
 */
export function createScan(index: GatewayIndex, { records }: Reads): Points['scan'] {
  const { service, ids, namespaces, overlay, consistency } = index;
  const walk = createWalk(service, namespaces);
  return async ({ filter, after, limit }, call) => {
    const { user_id, from, to } = wantedOf(filter);
    const userPart = ids.userPart(user_id);
    await consistency.caughtUp(namespaces.of(userPart), call);
    const position = after && {
      created_ms: Math.max(EARLIEST_MS, after.value),
      id: isIdOf(after.memory_id, userPart)
        ? after.memory_id
        : movedId(ids, { id: after.memory_id, user_id, created_ms: after.value }),
    };
    const range = rangeOf({ from, to, position });
    const { live, deleted } = overlay.of(userPart);
    const recent = live.map(({ id }) => id).filter(range.has);
    const wanted = limit + deleted.size;
    const candidates = mergeIds(walk({ ...range, userPart, wanted }, call), recent.sort(listOrder), deleted);
    const points: FoundPoint[] = [];
    for (;;) {
      const chunk = await take(candidates, limit - points.length);
      for (const point of await records(chunk, call)) {
        const created = Number(point.fields.created);
        // All ids of times before the earliest have the earliest.
        if (point.fields.user_id === user_id && created >= from && created <= to) points.push(point);
      }
      // Without a record one was deleted since, or fetch does not show it yet.
      if (points.length === limit || chunk.length === 0) return points;
    }
  };
}

/** The range of a scan, and which ids in it belong to it: exactly, since ids hold the time of creation. */
function rangeOf({
  from: since,
  to: until,
  position,
}: {
  readonly from: number;
  readonly to: number;
  readonly position: { readonly created_ms: number; readonly id: string } | undefined;
}): Pick<Stretch, 'from' | 'to' | 'has' | 'resumed'> {
  const afterTime = position && timePart(position.created_ms);
  const untilTime = timePart(Math.max(EARLIEST_MS, until));
  const from = afterTime !== undefined && afterTime > untilTime ? afterTime : untilTime;
  const to = timePart(since);
  const has = (id: string): boolean => {
    const time = timeOf(id);
    return time >= from && time <= to && !(position && time === afterTime && id >= position.id);
  };
  return { from, to, has, resumed: position !== undefined };
}

/** The listed ids and those of recent writes, in the order of lists, without deleted ones. */
async function* mergeIds(
  ids: AsyncIterable<string>,
  recent: readonly string[],
  deleted: ReadonlySet<string>,
): AsyncGenerator<string, void> {
  const without = new Set([...deleted, ...recent]);
  const pending = [...recent];
  let next = pending.shift();
  for await (const id of ids) {
    for (; next !== undefined && listOrder(next, id) <= 0; next = pending.shift()) yield next;
    if (!without.has(id)) yield id;
  }
  if (next !== undefined) yield next;
  yield* pending;
}

/** The next `count` items, fewer at the end. */
async function take<Item>(items: AsyncIterator<Item>, count: number): Promise<Item[]> {
  const chunk: Item[] = [];
  while (chunk.length < count) {
    const { done, value } = await items.next();
    if (done) break;
    chunk.push(value);
  }
  return chunk;
}

/**
 * A page of the list of ids of one namespace after another, with the recent writes of this process where they belong: each comes once, whether the
 * list shows it already or not. `after`: a namespace, the last id before the page, and the token of the page that has the next one.
 */
export function createPage(index: GatewayIndex, { records }: Reads): NonNullable<Points['page']> {
  const { service, ids, namespaces } = index;
  return async ({ filter, after, limit }, call) => {
    const userPart = filter && ids.userPart(wantedOf(filter).user_id);
    const all = userPart === undefined ? await namespacesOf(index, call) : [namespaces.of(userPart)];
    const [from = all[0] ?? '', past = '', token] = after?.split('\n') ?? [];
    const page = { prefix: userPrefix(userPart ?? ''), limit: Math.min(limit, MAX_LISTED), token: token || undefined };
    const { ids: listed, next } = await service.list(from, page, call);
    const end = next === undefined ? undefined : listed.at(-1);
    const recent = recentOf(index, userPart).filter(({ namespace }) => namespace === from);
    const here = [...new Set([...listed, ...recent.map(({ id }) => id)])]
      .filter((id) => id > past && (end === undefined || id <= end))
      .sort();
    const taken = here.slice(0, limit);
    const rest = [from, taken.at(-1) ?? past];
    return {
      points: await records(taken, call),
      next:
        taken.length < here.length
          ? [...rest, token ?? ''].join('\n')
          : next === undefined
            ? all[all.indexOf(from) + 1]
            : [...rest, next].join('\n'),
    };
  };
}

/** Memories that this process wrote a short time ago. */
const recentOf = ({ overlay, namespaces }: GatewayIndex, userPart?: string) =>
  overlay
    .of(userPart)
    .live.flatMap(({ id, owner }) => (isIdOf(id, owner) ? [{ id, namespace: namespaces.of(owner) }] : []));

/** Compares in byte order. The index may not know those of recent writes yet. */
async function namespacesOf(index: GatewayIndex, call: Call): Promise<string[]> {
  const { base } = index.namespaces;
  const { namespaces } = await index.service.stats(call);
  const known = namespaces.filter((name) => name === base || name.startsWith(`${base}-`));
  return [...new Set([...known, ...recentOf(index).map(({ namespace }) => namespace)])].sort();
}
