import { createHmac, timingSafeEqual } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Call } from '#provider';
import type { Lsn } from '../client/client.ts';

/** How far reads of a namespace are behind its writes, and what a client's consistency token asks for. */
export interface IndexConsistency {
  /** Records a write: the answer gets a token that names it. */
  wrote(namespace: string, lsn: Lsn, call: Call): void;
  /** Records the position of a query's answer. */
  saw(namespace: string, lsn: Lsn): void;
  /**
   * Waits until queries of the namespace show the write that the call's token names. If they do not in time, the answer
   * says so.
   */
  caughtUp(namespace: string, call: Call): Promise<void>;
  /** Whether the call's token names a write to the namespace. */
  names(namespace: string, call: Call): boolean;
  /** Whether queries are known to show this write. */
  shows(namespace: string, lsn: number): boolean;
}

export interface ConsistencyOptions {
  /** The secret of the index: every replica reads the tokens of every other, and no other tokens. */
  readonly secret: Uint8Array;
  /** Longest wait for the write that a token names, in milliseconds. */
  readonly wait_ms: number;
  /** Sends a query that returns the current position of a namespace. */
  readonly look: (namespace: string, call: Call) => Promise<Lsn>;
}

/** Maximum namespaces whose latest position is remembered. Forgetting one costs a query. */
const REMEMBERED_NAMESPACES = 10_000;

/** Only queries report positions; `fetch` and `list` report none. */
export function createConsistency({ secret, wait_ms, look }: ConsistencyOptions): IndexConsistency {
  const tokens = createTokens(secret);
  const positions = new LRUCache<string, number>({ max: REMEMBERED_NAMESPACES });
  const shows = (namespace: string, lsn: number) => (positions.get(namespace) ?? -1) >= lsn;
  const saw = (namespace: string, lsn: Lsn) => {
    if (lsn !== undefined && !shows(namespace, lsn)) positions.set(namespace, lsn);
  };
  /** Calls that waited in vain. They wait once. */
  const behind = new WeakSet<Call>();
  const lsnOf = ({ consistency }: Call, namespace: string) => tokens.read(consistency?.token, namespace);
  return {
    shows,
    saw,
    names: (namespace, call) => lsnOf(call, namespace) !== undefined,
    wrote(namespace, lsn, { consistency }) {
      if (lsn !== undefined) consistency?.answer(tokens.add(consistency.token, namespace, lsn));
    },
    async caughtUp(namespace, call) {
      const lsn = lsnOf(call, namespace);
      if (lsn === undefined || shows(namespace, lsn) || behind.has(call)) return;
      const isShown = async () => {
        saw(namespace, await look(namespace, call));
        return shows(namespace, lsn);
      };
      if (await waitUntil(isShown, wait_ms, call)) return;
      behind.add(call);
      call.consistency?.behind();
    },
  };
}

/** Milliseconds between checks; the last one repeats. */
const PAUSES = [25, 50, 100, 200] as const;

/**
 * Repeats the check until it is true or about `wait_ms` milliseconds have passed, at least once. Returns whether it became
 * true. Rejects when the call's signal fires.
 */
export async function waitUntil(check: () => Promise<boolean>, wait_ms: number, { signal }: Call): Promise<boolean> {
  const end = performance.now() + wait_ms;
  for (let checks = 0; !(await check()); checks++) {
    const rest = end - performance.now();
    if (rest <= 0) return false;
    const pause = Math.min(rest, PAUSES[Math.min(checks, PAUSES.length - 1)] as number);
    await sleep(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
  return true;
}

/** Consistency tokens: for a few namespaces, the log sequence number of the client's latest write. */
export interface TokenCodec {
  /** The client's token with this write added: at most 172 characters of base64url. */
  add(token: string | undefined, namespace: string, lsn: number): string;
  /** The number that a token names for a namespace. Undefined: none, or the token is invalid. */
  read(token: string | undefined, namespace: string): number | undefined;
}

/*
 * Version (1 byte), seal (16), then for each namespace, latest write first: name (6) and number (8).
 *
 * Names are keyed hashes, since a namespace may contain the user part of ids. The seal stops clients from making a gateway
 * wait for a number that was never given. A token of another index, or with a replaced secret, is invalid.
 */
const VERSION = 1;
const SEAL_BYTES = 16;
const NAME_BYTES = 6;
const ENTRY_BYTES = NAME_BYTES + 8;
const HEAD_BYTES = 1 + SEAL_BYTES;
const MAX_NAMESPACES = 8;

export function createTokens(secret: Uint8Array): TokenCodec {
  const digest = (label: string, data: string | Uint8Array) =>
    createHmac('sha256', secret).update(label).update(data).digest();
  const seal = (entries: Uint8Array) => digest('token:', entries).subarray(0, SEAL_BYTES);
  const nameOf = (namespace: string) => digest('namespace:', namespace).subarray(0, NAME_BYTES);

  const open = (token: string | undefined): Buffer[] => {
    const bytes = Buffer.from(token ?? '', 'base64url');
    const entries = bytes.subarray(HEAD_BYTES);
    const isValid =
      bytes.length >= HEAD_BYTES &&
      bytes[0] === VERSION &&
      entries.length % ENTRY_BYTES === 0 &&
      entries.length <= MAX_NAMESPACES * ENTRY_BYTES &&
      timingSafeEqual(bytes.subarray(1, HEAD_BYTES), seal(entries));
    if (!isValid) return [];
    return Array.from({ length: entries.length / ENTRY_BYTES }, (_, index) =>
      entries.subarray(index * ENTRY_BYTES, (index + 1) * ENTRY_BYTES),
    );
  };
  const numberOf = (entries: readonly Buffer[], name: Buffer): number | undefined => {
    const entry = entries.find((candidate) => candidate.subarray(0, NAME_BYTES).equals(name));
    return entry && Number(entry.readBigUInt64BE(NAME_BYTES));
  };

  return {
    read: (token, namespace) => (token === undefined ? undefined : numberOf(open(token), nameOf(namespace))),
    add(token, namespace, lsn) {
      const name = nameOf(namespace);
      const before = open(token);
      const entry = Buffer.alloc(ENTRY_BYTES);
      name.copy(entry);
      entry.writeBigUInt64BE(BigInt(Math.max(lsn, numberOf(before, name) ?? 0)), NAME_BYTES);
      const others = before.filter((candidate) => !candidate.subarray(0, NAME_BYTES).equals(name));
      const entries = Buffer.concat([entry, ...others].slice(0, MAX_NAMESPACES));
      return Buffer.concat([Uint8Array.of(VERSION), seal(entries), entries]).toString('base64url');
    },
  };
}
