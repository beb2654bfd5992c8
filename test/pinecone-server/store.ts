import type { Lag } from './options.ts';
import { createRecordSet, type RecordSet } from './record-set.ts';

/** What a write does to the records of its namespace. */
type Change = (records: RecordSet) => void;

export interface Namespace {
  readonly name: string;
  /** The whole log applied. */
  readonly whole: RecordSet;
  /** Appends to the log and answers the write's sequence number. */
  write(change: Change): number;
  /** What queries see now, and the sequence number of the last write among it. */
  indexed(): { readonly records: RecordSet; readonly lsn: number };
  /** What fetch and list see now. */
  fetched(): RecordSet;
}

export interface Store {
  /** Undefined: never written to. */
  find(name: string): Namespace | undefined;
  /** Makes it exist. */
  ensure(name: string): Namespace;
  /** Those that exist, in byte order. */
  existing(): Namespace[];
  /** Takes the place of the lag there was. */
  lag(lag: Lag): void;
  /** Everything written becomes visible. */
  settle(): void;
}

interface Entry {
  readonly lsn: number;
  readonly writtenAt: number;
  readonly change: Change;
}

/** A reader's state of a namespace: the log up to a sequence number, applied. */
interface View {
  readonly records: RecordSet;
  lsn: number;
}

/** Says whether a write can be seen, given the number of the namespace's last write. */
type Visible = (entry: Entry, last: number) => boolean;

const EVERYTHING: Visible = () => true;
const KEPT_APPLIED_ENTRIES = 1_000;

export function createStore(initial: Lag): Store {
  const namespaces = new Map<string, Tracked>();
  let lag = initial;
  const late = (entry: Entry, ms: number) => performance.now() - entry.writtenAt < ms;
  const indexed: Visible = (entry, last) =>
    !lag.held && !late(entry, lag.ms ?? 0) && last - entry.lsn >= (lag.writes ?? 0);
  const fetched: Visible = (entry, last) =>
    lag.fetchMs === undefined ? indexed(entry, last) : !late(entry, lag.fetchMs);
  const all = () => [...namespaces.values()];
  const find = (name: string) => namespaces.get(name);
  return {
    find,
    ensure: (name) => {
      const namespace = find(name) ?? createNamespace(name, { indexed, fetched });
      namespaces.set(name, namespace);
      return namespace;
    },
    existing: () => all().sort((a, b) => (a.name < b.name ? -1 : 1)),
    lag: (wanted) => {
      // What could be seen until now stays visible.
      for (const namespace of all()) namespace.advance(indexed, fetched);
      lag = wanted;
    },
    settle: () => {
      for (const namespace of all()) namespace.advance(EVERYTHING, EVERYTHING);
    },
  };
}

interface Tracked extends Namespace {
  advance(indexed: Visible, fetched: Visible): void;
}

function createNamespace(name: string, visible: { readonly indexed: Visible; readonly fetched: Visible }): Tracked {
  let log: Entry[] = [];
  let last = 0;
  const whole = createRecordSet();
  const index: View = { records: createRecordSet(), lsn: 0 };
  const storage: View = { records: createRecordSet(), lsn: 0 };

  const advanceView = (view: View, isVisible: Visible): void => {
    for (const entry of log.slice(view.lsn - (last - log.length))) {
      if (!isVisible(entry, last)) return;
      entry.change(view.records);
      view.lsn = entry.lsn;
    }
  };
  const advance = (indexed: Visible, fetched: Visible): void => {
    advanceView(index, indexed);
    advanceView(storage, fetched);
    const done = Math.min(index.lsn, storage.lsn) - (last - log.length);
    if (done > KEPT_APPLIED_ENTRIES) log = log.slice(done);
  };
  return {
    name,
    whole,
    write: (change) => {
      last += 1;
      log.push({ lsn: last, writtenAt: performance.now(), change });
      change(whole);
      return last;
    },
    indexed: () => {
      advance(visible.indexed, visible.fetched);
      return index;
    },
    fetched: () => {
      advance(visible.indexed, visible.fetched);
      return storage.records;
    },
    advance,
  };
}
