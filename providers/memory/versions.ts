import {
  type AuditEntry,
  type ExportedMemory,
  type Memory,
  type MemoryVersion,
  ORIGIN,
  type Ref,
  unchangedEntry,
  upToBytes,
  type VersionOptions,
  type VersionStore,
  visibleMatcher,
  type WrittenQuery,
} from '#provider';
import type { Entry, User } from './user.ts';

/** What a memory has of its versions. */
export interface Versions {
  /** The number of the current version. */
  version: number;
  /** The versions before it, oldest first. */
  before: KeptVersion[];
}

/** A version, and when it was replaced, in milliseconds. */
interface KeptVersion extends MemoryVersion {
  readonly replaced: number;
}

/** An entry with its user and its versions. */
export interface Home extends Versions {
  readonly user: User;
  readonly entry: Entry;
}

const DAY_MS = 86_400_000;

const withoutOld = ({ version: current, before }: Versions, { max, retention_days }: VersionOptions): KeptVersion[] => {
  const since = retention_days === null ? Number.NEGATIVE_INFINITY : Date.now() - retention_days * DAY_MS;
  return before.filter(({ version, replaced }) => version >= current - max && replaced > since);
};

/** The versions before the current one, newest first. */
export const versionsOf = (home: Versions, options: VersionOptions): MemoryVersion[] =>
  withoutOld(home, options)
    .reverse()
    .map(({ version, memory }) => ({ version, memory }));

/** The versions once the current one is replaced. `options`: undefined: they are counted only. */
export function replacedVersions(
  { version, before, entry: { memory } }: Home,
  options: VersionOptions | undefined,
): Versions {
  if (!options) return { version: version + 1, before };
  const replaced = { version, memory: { ...memory, embedding_model: null, status: null }, replaced: Date.now() };
  const all = { version: version + 1, before: [...before, replaced] };
  return { ...all, before: withoutOld(all, options) };
}

/** The versions of an imported memory. `old`: what it replaces. */
export function importedVersions(
  { memory, version = 1, versions = [] }: ExportedMemory,
  old: Home | undefined,
  options: VersionOptions | undefined,
): Versions {
  const own = old ? replacedVersions(old, options) : { version, before: [] };
  const current = Math.max(own.version, version);
  if (!options) return { version: current, before: own.before };
  const known = new Set(own.before.map((one) => one.version));
  const times = new Map(versions.map((one, i) => [one, (versions[i - 1]?.memory ?? memory).updated_at]));
  const added = versions
    .filter((one) => one.version < current && !known.has(one.version))
    .map((one) => ({ ...one, replaced: Date.parse(times.get(one) as string) }));
  const all = { version: current, before: [...own.before, ...added].sort((a, b) => a.version - b.version) };
  return { ...all, before: withoutOld(all, options) };
}

interface Options {
  readonly options: VersionOptions;
  readonly homes: ReadonlyMap<string, Home>;
  homeOf(ref: Ref): Home | undefined;
  note(entry: AuditEntry): void;
  requireThawed(): void;
}

export const createVersions = ({ options, homes, homeOf, note, requireThawed }: Options): VersionStore => ({
  async list({ ref, before = Number.POSITIVE_INFINITY, limit, max_bytes }) {
    const home = homeOf(ref);
    if (!home) return undefined;
    const admits = visibleMatcher(ref);
    const versions = versionsOf(home, options)
      .filter(({ version, memory }) => version < before && admits(memory.scope))
      .slice(0, limit);
    return {
      current: home.entry.memory,
      version: home.version,
      versions: upToBytes(versions, max_bytes, ({ memory }) => memory),
    };
  },
  async purge(ref, call) {
    const home = homeOf(ref);
    if (!home) return undefined;
    requireThawed();
    note(unchangedEntry('purge', home.entry.memory, call));
    return home.before.splice(0).length;
  },
  async writtenIn({ user_id, after, limit, ...query }) {
    const matches = versionMatcher(query);
    return [...homes.values()]
      .filter(({ entry: { memory } }) => memory.user_id === user_id)
      .filter((home) => [home.entry, ...versionsOf(home, options)].some(({ memory }) => matches(memory)))
      .map(({ entry }) => entry.memory.id)
      .filter((id) => after === undefined || id > after)
      .sort()
      .slice(0, limit);
  },
});

function versionMatcher({ since, key }: Pick<WrittenQuery, 'since' | 'key'>) {
  return ({ updated_at, extensions }: Memory): boolean => {
    const origin = extensions[ORIGIN] as { readonly at?: string; readonly key?: string } | undefined;
    const at = origin?.at ?? updated_at;
    const isByKey = key === undefined || (origin !== undefined && (origin.key ?? null) === key);
    return at >= since && isByKey;
  };
}
