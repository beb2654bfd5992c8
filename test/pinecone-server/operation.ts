import { checkNamespaceName } from './limits.ts';
import type { Settings } from './options.ts';
import { createRecordSet } from './record-set.ts';
import { check, Refusal } from './refusal.ts';
import type { Namespace, Store } from './store.ts';

/** A request that the OpenAPI file has nothing against. */
export interface Asked {
  /** The JSON body; undefined where there is none. */
  readonly body: unknown;
  /** Bytes of the body. */
  readonly bytes: number;
  readonly query: URLSearchParams;
  /** The namespace in the path, where there is one. */
  readonly name: string;
}

export interface Answer {
  readonly body: object;
  /** Of a write: its log sequence number. */
  readonly written?: number;
  /** Of a query: the log sequence number up to which the index was read. */
  readonly indexed?: number;
}

export interface Index {
  readonly settings: Settings;
  readonly store: Store;
  /** Throws a 429 when a namespace was asked too often. */
  readonly countFetchByMetadata: (namespace: string) => void;
}

/** Answers, or throws a `Refusal`. */
export type Operation = (asked: Asked, index: Index) => Answer;

const DEFAULT_NAMESPACE = '__default__';

/**
 * The namespace a request means. From 2025-04 on the default one is called `__default__` and '' is the same; before, it is
 * '' and the name is not allowed.
 */
export function namespaceName(given: string | null | undefined, { settings }: Index): string {
  const name = given ?? '';
  checkNamespaceName(name);
  if (settings.apiVersion === '2025-01') {
    check(name !== DEFAULT_NAMESPACE, `Use of namespace='${DEFAULT_NAMESPACE}' is not allowed`);
    return name;
  }
  return name === '' ? DEFAULT_NAMESPACE : name;
}

export const isDefault = (name: string): boolean => name === '' || name === DEFAULT_NAMESPACE;

/** The namespace of this name. Throws the documented 404 where there is none. */
export function existing(name: string, { store }: Index): Namespace {
  const namespace = store.find(name);
  if (!namespace?.exists) throw new Refusal(404, 'Namespace not found');
  return namespace;
}

const NOTHING = createRecordSet();

/** What fetch and list see of a namespace: nothing of one that was never written to. */
export const fetchedFrom = (name: string, { store }: Index) => store.find(name)?.fetched() ?? NOTHING;

/** The same for queries; without a sequence number where there is no log. */
export const indexedIn = (name: string, { store }: Index) =>
  store.find(name)?.indexed() ?? { records: NOTHING, lsn: undefined };

export const usage = (readUnits: number) => ({ usage: { readUnits } });
