import type { TestContext } from 'vitest';
import type { Client } from '../support/client.ts';
import type { Rights } from '../support/known-callers.ts';
import type { Subject } from '../support/subject.ts';

/** Suites ask for the subject inside tests: it opens once, before the first of them. */
export type GetSubject = () => Subject;

/** Speaks for a new caller that may do just this. Inside tests only. */
export type Admit = (rights: Rights) => Client;

export const supports = (subject: Subject, verb: string): boolean => subject.capabilities.verbs.includes(verb);

type Skip = TestContext['skip'];

/** Skips the test, saying why, unless the subject declares all these verbs. */
export const needVerbs = (skip: Skip, subject: Subject, ...verbs: readonly string[]): void => {
  const missing = verbs.filter((verb) => !supports(subject, verb));
  skip(missing.length > 0, `declares no ${missing.join(', ')}`);
};

export const needScopes = (skip: Skip, subject: Subject): void =>
  skip(subject.capabilities.features.scopes === 'none', 'declares no scopes');

export const needSupersession = (skip: Skip, subject: Subject): void =>
  skip(!subject.capabilities.features.supports_supersession, 'tracks no supersession');

export const needIdempotency = (skip: Skip, subject: Subject): void =>
  skip(!subject.capabilities.features.idempotency, 'does not honour Idempotency-Key');

/** Skips the test, saying why, unless memories of the subject have a place for all these fields. */
export const needFields = (skip: Skip, { without = [] }: Subject, ...fields: readonly string[]): void => {
  const missing = fields.filter((field) => without.includes(field));
  skip(missing.length > 0, `has no place for ${missing.join(', ')}`);
};
