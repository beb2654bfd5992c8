import { it, type TestContext } from 'vitest';
import type { Client } from '../support/client.ts';
import type { Subject } from '../support/gateway.ts';
import type { Rights } from '../support/known-callers.ts';
import { VERBS, type WireCapabilities, type WireMemory } from '../support/wire.ts';

/** Suites call this inside tests: the subject opens once, before the first test. */
export type GetSubject = () => Subject;

/** A client for a new caller with exactly these rights. Only inside tests. */
export type Admit = (rights: Rights) => Client;

type Field = Exclude<keyof WireMemory, `x-${string}`> | 'extensions';
/** What a test needs of a provider: verbs, features, and fields that its memories can store. */
export type Need =
  | (typeof VERBS)[number]
  | keyof WireCapabilities['features']
  | 'native_scopes'
  | 'supersession'
  | 'holdings'
  | Field;

export const supports = (subject: Subject, verb: string): boolean => subject.capabilities.verbs.includes(verb);

function isMissing(subject: Subject, need: Need): boolean {
  const { features } = subject.capabilities;
  if (need === 'scopes' || need === 'scope') return features.scopes === 'none';
  if (need === 'native_scopes') return subject.raw.capabilities.scopes !== 'native';
  if (need === 'holdings') return subject.raw.holdings === undefined;
  if (need === 'supersession' || need === 'supersedes') return !features.supports_supersession;
  if (VERBS.some((verb) => verb === need)) return !supports(subject, need);
  if (subject.without?.includes(need)) return true;
  return need in features && !features[need as keyof typeof features];
}

/** Skips the test, with the reason, unless the subject has all of these. */
export function needs(skip: TestContext['skip'], subject: Subject, ...all: readonly Need[]): void {
  const missing = all.filter((one) => isMissing(subject, one));
  skip(missing.length > 0, `has no ${missing.join(', ')}`);
}

/** `it` for tests that begin with what they need of the provider. */
export const testOf =
  (subject: GetSubject) =>
  (title: string, work: (need: (...all: readonly Need[]) => void) => Promise<unknown>): void =>
    it(title, ({ skip }) => work((...all) => needs(skip, subject(), ...all)));
