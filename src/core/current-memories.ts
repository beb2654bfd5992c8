import { isUntrusted, type Memory, type SearchHit } from '#contract';
import { newestFirst } from '#toolbox';

/** A hit, with the ids of those hits that supersede it, and of those that it stands for. */
export interface MarkedHit extends SearchHit {
  readonly superseded_by?: readonly string[] | undefined;
  readonly copies?: readonly string[];
}

/** What decides which memories are current: the time, and whether memories of untrusted keys supersede others (Decision 54). */
export interface Currency {
  readonly now: Date;
  readonly untrusted: boolean;
}

/** Tells which of these memories are current (Decision 12): valid now, and superseded by no other of them. */
export function currentAmong(memories: readonly Memory[], currency: Currency): (memory: Memory) => boolean {
  const time = currency.now.toISOString();
  const replacements = supersededAmong(memories, currency);
  return (memory) =>
    hasBegun(memory, time) && (memory.valid_to === null || memory.valid_to >= time) && !replacements.has(memory.id);
}

/** Those of the hits that are current among them. */
export function currentHits(hits: readonly SearchHit[], currency: Currency): SearchHit[] {
  const isCurrent = currentAmong(hits.map(recordOf), currency);
  return hits.filter(({ memory }) => isCurrent(memory));
}

/** Marks each hit that others supersede. */
export function markSuperseded(hits: readonly SearchHit[], currency: Currency): MarkedHit[] {
  const replacements = supersededAmong(hits.map(recordOf), currency);
  return hits.map((hit) => {
    const superseded_by = replacements.get(hit.memory.id);
    return superseded_by ? { ...hit, superseded_by } : hit;
  });
}

const recordOf = ({ memory }: SearchHit): Memory => memory;
const hasBegun = ({ valid_from }: Memory, time: string): boolean => valid_from === null || valid_from <= time;

const NONE: ReadonlyMap<string, readonly string[]> = new Map();

/**
 * The memories that others of the same user supersede, each with the ids of those that name it. A memory that is not yet valid
 * supersedes nothing. Of memories that supersede each other, directly or through others, the newest counts as not superseded.
 * Takes time in proportion to the number of ids in `supersedes`.
 */
function supersededAmong(
  memories: readonly Memory[],
  { now, untrusted }: Currency,
): ReadonlyMap<string, readonly string[]> {
  if (memories.every(({ supersedes }) => supersedes.length === 0)) return NONE;
  const time = now.toISOString();
  const supersedes = (memory: Memory) => hasBegun(memory, time) && (untrusted || !isUntrusted(memory));
  const byId = new Map(memories.map((memory) => [memory.id, memory]));
  const predecessors = new Map<Memory, Memory[]>();
  for (const memory of memories) {
    const candidates = supersedes(memory) ? [...new Set(memory.supersedes)].map((id) => byId.get(id)) : [];
    const others = candidates.filter((other) => other !== undefined && other !== memory);
    predecessors.set(
      memory,
      (others as Memory[]).filter(({ user_id }) => user_id === memory.user_id),
    );
  }
  const newest = newestOfCycles(predecessors);
  const edges = [...predecessors].flatMap(([memory, others]) => others.map((other) => [memory, other] as const));
  const fromOutside = new Set(
    edges.flatMap(([memory, other]) => (newest.get(memory) === newest.get(other) ? [] : [newest.get(other)])),
  );
  const replacements = new Map<string, string[]>();
  for (const [memory, other] of edges) {
    if (newest.get(other) === other && !fromOutside.has(other)) continue;
    const by = replacements.get(other.id);
    if (by) by.push(memory.id);
    else replacements.set(other.id, [memory.id]);
  }
  return replacements;
}

/** The newest of the memories that a memory supersedes and that supersede it, itself included (Tarjan's algorithm). */
function newestOfCycles(predecessors: ReadonlyMap<Memory, readonly Memory[]>): ReadonlyMap<Memory, Memory> {
  const newest = new Map<Memory, Memory>();
  const order = new Map<Memory, number>();
  const open: Memory[] = [];
  /** The smallest number of an open memory that this one leads to. */
  const visit = (memory: Memory): number => {
    const number = order.size;
    let least = number;
    order.set(memory, number);
    open.push(memory);
    for (const other of predecessors.get(memory) ?? []) {
      if (!newest.has(other)) least = Math.min(least, order.get(other) ?? visit(other));
    }
    if (least === number) {
      const cycle = open.splice(open.indexOf(memory));
      const last = cycle.reduce((a, b) => (newestFirst(a, b) < 0 ? a : b));
      for (const each of cycle) newest.set(each, last);
    }
    return least;
  };
  for (const memory of predecessors.keys()) if (!order.has(memory)) visit(memory);
  return newest;
}
