import { type Call, invalidRequest, type OmpError } from '#contract';
import { newUuidIdentity } from '#toolbox';
import type {
  Collection,
  Filter,
  FoundPoint,
  Match,
  Measure,
  PageRequest,
  Point,
  Points,
  QueryRequest,
  ScanRequest,
  Selection,
} from './collection.ts';
import { holds } from './filters.ts';
import { changedFields, foreignFilter, type Mapping, mappedFields, newFields, toOwn, unsupported } from './mapping.ts';
import { pointBytes } from './points.ts';
import { MAX_SORTED, numberOf } from './walk.ts';

/** What serves a mapped collection. */
export type ForeignCollection = Omit<Collection, 'prepare' | 'scan' | 'count'> &
  Required<Pick<Collection, 'page' | 'change'>>;

/** Points of a page while all of a user are read. */
const PAGE = 1_000;
/** If some of the nearest are no memories, or do not match, the next query asks for this many times as many. */
const GROWTH = 4;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

interface View {
  readonly provider: string;
  readonly mapping: Mapping;
  readonly measure: Measure;
  /** Whether the measure gives the cosine: false if it depends on lengths, and vectors have other ones than 1. */
  readonly comparable: boolean;
}

/**
 * A collection that another application fills, as one of the gateway's: points that are no memories are not there. The user is decided by the
 * database; whatever it cannot decide, here, on what it returns, until enough are found. Every order takes all points of a user: it has none.
 */
export function createMappedView(
  raw: ForeignCollection,
  { provider, mapping, measure, comparable }: View,
): Points & Pick<ForeignCollection, 'page'> & Pick<Collection, 'count'> {
  const { traits, sizeOf = pointBytes } = raw;
  const { slow_pages } = traits;
  const inForeign = (point: Point): Point => ({ ...point, fields: newFields(mapping, point) });
  const fields = mappedFields(mapping);
  const withoutText = fields.filter((field) => field !== mapping.text && field !== mapping.node);
  const isId = (id: string): boolean =>
    // Written in one way only: `007` would be the point 7 under another name.
    (traits.ids === 'text' && id !== '') ||
    UUID.test(id) ||
    (Number.isSafeInteger(Number(id)) && /^\d+$/.test(id) && String(Number(id)) === id);

  /** Those of the points that are memories and match. */
  const matching = (points: readonly FoundPoint[], filter: Filter | undefined, hasText = true): FoundPoint[] =>
    points
      .filter(({ id }) => isId(id))
      .flatMap((point) => toOwn(mapping, point, hasText) ?? [])
      .filter((point) => filter === undefined || holds(filter, point.fields));
  const foreign = (filter: Filter | undefined) => {
    const asksTags = (part: Filter): boolean =>
      part.op === 'and' ? part.filters.some(asksTags) : part.op === 'allOf' && part.field === 'tags';
    if (mapping.tags === undefined && filter && asksTags(filter))
      throw unsupported(provider, `tag: the ${mapping.noun} stores no tags`);
    return foreignFilter(mapping, traits.filters, filter);
  };
  const fetch = async (ids: readonly string[], { vector }: Selection, call: Call, filter?: Filter) => {
    const valid = ids.filter(isId);
    return valid.length === 0 ? [] : matching(await raw.fetch(valid, { fields, vector }, call), filter);
  };
  async function* pages(filter: Filter, names: readonly string[], { vector }: Selection, call: Call) {
    const asked = {
      filter: foreign(filter),
      limit: Math.min(PAGE, traits.max_limit),
      select: { fields: names, vector },
    };
    let read = 0;
    for (let after: string | undefined; ; ) {
      const { points, next } = await raw.page({ ...asked, after }, call);
      read += points.length;
      if (slow_pages && read > slow_pages.points) throw tooMany(provider, mapping, slow_pages.points);
      yield matching(points, filter, names === fields);
      if (next === undefined) return;
      after = next;
    }
  }
  /** Those that match after a place in an order. Without their texts, unless pages are slow. */
  async function inOrder({ filter, order, after }: ScanRequest, call: Call): Promise<FoundPoint[]> {
    const { by, descending } = order ?? { by: 'created', descending: true };
    const sign = descending ? -1 : 1;
    const compare = (point: FoundPoint, value: number, id: string) =>
      sign * (numberOf(point, by) - value || (point.id === id ? 0 : point.id < id ? -1 : 1));
    // By id: a point that moves between pages might come twice.
    const found = new Map<string, FoundPoint>();
    let bytes = 0;
    for await (const points of pages(filter, slow_pages ? fields : withoutText, { vector: false }, call)) {
      for (const point of points) {
        found.set(point.id, point);
        bytes += numberOf(point, 'bytes');
      }
      if (found.size > MAX_SORTED || (slow_pages && bytes > slow_pages.bytes))
        throw tooMany(provider, mapping, Math.min(found.size, MAX_SORTED));
    }
    return [...found.values()]
      .filter((point) => !after || compare(point, after.value, after.memory_id) > 0)
      .sort((a, b) => compare(a, numberOf(b, by), b.id));
  }

  return {
    async remove(ids, call) {
      if (traits.shared_ids) requireOneOwner(await raw.fetch(ids, { fields, vector: false }, call), mapping, provider);
      await raw.remove(ids, call);
    },

    sizeOf: (point) => sizeOf(inForeign(point)),
    traits: {
      ...traits,
      ...{ measure, exact: traits.exact && comparable, ids: 'text', order: 'position' },
      filters: ['anyOf', 'allOf', 'prefix', 'not'],
    },

    async page({ filter, select: { vector }, ...rest }: PageRequest, call: Call) {
      const request = { ...rest, filter: foreign(filter), select: { fields, vector } };
      const { points, next } = await raw.page(request, call);
      return { points: matching(points, filter), next };
    },

    identify: newUuidIdentity,
    fetch: (ids, select, call) => fetch(ids, select, call),

    async query({ vector, filter, limit, select }: QueryRequest, call: Call): Promise<readonly Match[]> {
      // Then the vectors are compared by the gateway.
      if (!comparable) return [];
      // There is always a user.
      const asked = { vector, filter: foreign(filter) as Filter, select: { fields, vector: select.vector } };
      for (let count = limit; ; count = Math.min(count * GROWTH, traits.max_limit)) {
        const matches = await raw.query({ ...asked, limit: count }, call);
        const measures = new Map(matches.map(({ id, measure: measured }) => [id, measured]));
        const found = matching(matches, filter);
        if (found.length >= limit || matches.length < count)
          return found.slice(0, limit).map((point) => ({ ...point, measure: Number(measures.get(point.id)) }));
        if (count === traits.max_limit)
          throw invalidRequest(
            'too many points that do not match rank before these; lower limit, or narrow the request',
          );
      }
    },

    async scan(request: ScanRequest, call: Call) {
      const { filter, order, limit, select } = request;
      const points: FoundPoint[] = [];
      if (!order) {
        for await (const part of pages(filter, fields, select, call)) {
          points.push(...part);
          if (points.length >= limit) break;
        }
        return points.slice(0, limit);
      }
      const sorted = await inOrder(request, call);
      if (slow_pages) return sorted.slice(0, limit);
      const ids = sorted.map(({ id }) => id);
      const size = Math.min(limit, traits.max_batch);
      for (let start = 0; start < ids.length && points.length < limit; start += size) {
        const part = ids.slice(start, start + size);
        const found = new Map((await fetch(part, select, call, filter)).map((point) => [point.id, point]));
        points.push(...part.flatMap((id) => found.get(id) ?? []));
      }
      return points.slice(0, limit);
    },

    async count(filter: Filter, call: Call) {
      let count = 0;
      for await (const points of pages(filter, fields, { vector: false }, call)) count += points.length;
      return count;
    },

    upsert: (points, call) => raw.upsert(points.map(inForeign), call),

    /** Sets what changes, and nothing else. */
    async replace(after: Point, updated: number, call: Call): Promise<boolean> {
      const [stored, other] = await raw.fetch([after.id], { vector: false }, call);
      if (other) throw shared(provider, mapping);
      const before = stored && toOwn(mapping, stored);
      if (!before || before.fields.updated !== updated || before.fields.user_id !== after.fields.user_id) return false;
      const vector = before.fields.content === after.fields.content ? undefined : after.vector;
      const fields = changedFields(mapping, provider, { stored, before, after });
      return raw.change({ id: after.id, fields, vector, stored }, call);
    },
  };
}

/** Throws if users share an id: what removes the point of one would remove that of the other. */
function requireOneOwner(points: readonly FoundPoint[], mapping: Mapping, provider: string): void {
  const owners = new Map<string, unknown>();
  for (const point of points) {
    const owner = toOwn(mapping, point)?.fields.user_id;
    if (owners.has(point.id) && owners.get(point.id) !== owner) throw shared(provider, mapping);
    owners.set(point.id, owner);
  }
}

const shared = (provider: string, { noun }: Mapping): OmpError =>
  unsupported(
    provider,
    `several points of the ${noun} have this id: a change would be one of each; give each an id of its own`,
  );

const tooMany = (provider: string, { tags }: Mapping, most: number): OmpError =>
  unsupported(
    provider,
    `list: the user has more memories than the ${most} that can be sorted here; search${tags === undefined ? '' : ', or list by tag,'} instead`,
  );
