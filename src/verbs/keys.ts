import { z } from 'zod';
import { type Call, OmpError, type StoredKey } from '#contract';
import { expirySchema, hasUse, keyGrantSchema, keyNameSchema, keyUserSchema, NO_USE } from '../auth/configured-keys.ts';
import { newKey, storeKey } from '../auth/credentials.ts';
import type { Access } from '../core/access.ts';
import { NO_FACTS } from '../core/audit-queue.ts';
import { idCursor } from '../core/cursor.ts';
import { callerOf } from '../core/demands.ts';
import { cursor, isStorable, LIMITS, next_cursor, optional, strings, time, upToMany, wholeNumber } from './fields.ts';
import { verb } from './verb.ts';
import { memoryExample } from './wire-memory.ts';

/*
 * API keys over HTTP (Decision 41). They belong to the gateway, not to a memory: users and scopes of the caller do not matter.
 */

const REMEDY =
  'keys are part of the configuration here; make one with: omp-gateway keys create NAME --grant GRANT --print';
const OWN_KEY =
  'a key cannot revoke itself; use another key with the grant admin:*, or: omp-gateway keys revoke NAME|ID';

const toWire = ({ hash: _, untrusted = false, ...key }: StoredKey) => ({ ...key, untrusted });

/** The log says who made or revoked which key: the store and the audit log do not. */
const logChange = ({ log }: Access, { id }: StoredKey, { requestId, caller }: Call, message: string): void =>
  log.info({ request_id: requestId, app: caller.app, key_id: id }, message);

const KeyFields = z
  .looseObject({
    id: z.string().meta({ description: 'The public part of the key.' }),
    name: z.string().meta({ description: 'Unique, also among revoked keys.' }),
    grants: strings.meta({ description: '`<action>:<scope glob>`, or `admin:*`.' }),
    users: strings.nullable().meta({ description: 'Users whose memories it may access; null: all.' }),
    untrusted: z.boolean().meta({ description: 'Whether what it writes is marked with `x-omp-untrusted`.' }),
    created_at: time('Creation time, UTC.'),
    expires_at: time('The key is valid before this time; null: without end.').nullable(),
    revoked_at: time('Time of revocation; null: not revoked.').nullable(),
    last_used_at: time('Time of the last use, to about a minute; null: never.').nullable(),
  })
  .meta({ id: 'Key' });

const newKeyExample = { name: 'editor', grants: ['read:coding/*', 'write:coding/*'], users: ['u1'] };
const keyExample = {
  id: 'k3j2h1g0f9e8',
  ...newKeyExample,
  untrusted: false,
  created_at: memoryExample.created_at,
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
};

const KeyCursor = idCursor('keys');

export const listKeys = verb({
  name: 'list_keys',
  method: 'GET',
  path: '/keys',
  input: z.object({ limit: wholeNumber('Maximum keys per page', 1, 100).default(50), cursor }),
  needs: ['keys'],
  remedy: REMEDY,
  feature: 'keys',
  demands: { admin: true },
  facts: () => NO_FACTS,
  async run({ cursor, limit }, { store }, call) {
    const after = KeyCursor.read(cursor, {});
    // One more than requested shows whether there is a next page.
    const keys = await store.keys.list({ after, limit: limit + 1 }, call);
    const items = keys.slice(0, limit).map(toWire);
    const last = keys.length > limit ? items.at(-1) : undefined;
    return { items, next_cursor: KeyCursor.write(last?.id, {}) };
  },
  id: 'listKeys',
  summary: 'List the stored keys',
  description: 'Newest first, revoked and expired ones included. Available if `features.keys` is true.',
  success: {
    description: 'One page.',
    schema: z
      .looseObject({ items: z.array(KeyFields).meta({ description: 'Newest first.' }), next_cursor })
      .meta({ id: 'KeyPage' }),
    example: { items: [keyExample], next_cursor: null },
  },
  consistent: false,
  tag: 'keys',
});

const grantsError = `must hold 1 to ${LIMITS.grants} grants`;
const keyUsersError = `must hold 1 to ${LIMITS.keyUsers} users; leave it out to allow all`;

/** Strict: a key with a misspelt `users` would be for every user. */
const KeyInput = z
  .strictObject({
    name: keyNameSchema.meta({ description: 'Unique, also among revoked keys.', examples: ['editor'] }),
    grants: upToMany(keyGrantSchema, LIMITS.grants, grantsError)
      .refine((all) => all.length > 0, grantsError)
      .meta({ description: '`<action>:<scope glob>`, or `admin:*`.', examples: [['read:coding/*']] }),
    users: optional(
      upToMany(keyUserSchema, LIMITS.keyUsers, keyUsersError).refine((all) => all.length > 0, keyUsersError),
    ).meta({ description: 'Users whose memories it may access; null: all.' }),
    expires_at: optional(
      expirySchema
        .transform((value) => new Date(value).toISOString())
        .refine((value) => Date.parse(value) > Date.now(), 'must be in the future'),
    ).meta({
      description: 'Date, from 00:00 UTC on, or date-time with offset; null: never.',
      format: 'date-time',
      type: ['string', 'null'],
    }),
    untrusted: optional(z.boolean()).meta({
      description: 'Whether what it writes is marked with `x-omp-untrusted`. Such a key has no `admin:*`.',
      default: false,
    }),
  })
  .refine(hasUse, { path: ['grants'], message: NO_USE })
  .meta({ id: 'NewKey' });

/** Throws `invalid_request` if the name exists. */
export const createKey = verb({
  name: 'create_key',
  method: 'POST',
  path: '/keys',
  input: KeyInput,
  body: { example: newKeyExample },
  needs: ['keys'],
  remedy: REMEDY,
  demands: { admin: true },
  facts: () => NO_FACTS,
  async run({ untrusted, users = null, expires_at = null, ...input }, access, call) {
    const { id, hash, key } = newKey();
    const newOne = { id, hash, ...input, users, expires_at, untrusted: untrusted ?? false };
    const storedKey = await storeKey(access.store.keys, newOne, call);
    logChange(access, storedKey, call, 'an API key was created');
    return { ...toWire(storedKey), key };
  },
  id: 'createKey',
  summary: 'Create a key',
  description: `Answers the key itself, this time only: the gateway keeps its hash. It may have any grants. Unknown fields are
rejected. Available if \`features.keys\` is true.`,
  success: {
    status: 201,
    description: 'The key.',
    schema: z
      .looseObject({
        ...KeyFields.shape,
        key: z.string().meta({ description: 'The key itself. No other answer has it.' }),
      })
      .meta({ id: 'CreatedKey' }),
    example: { ...keyExample, key: `omp_${keyExample.id}_${'x'.repeat(43)}` },
  },
  consistent: false,
  tag: 'keys',
});

/** Throws `not_found` for an unknown id, `scope_denied` for the key of the caller. */
export const revokeKey = verb({
  name: 'revoke_key',
  method: 'DELETE',
  path: '/keys/{id}',
  input: z.object({ id: z.string().meta({ description: 'Id of the key.' }) }),
  needs: ['keys'],
  remedy: REMEDY,
  demands: { admin: true },
  facts: () => NO_FACTS,
  async run({ id }, access, call) {
    const { keys } = access.store;
    const unknown = () => new OmpError('not_found', 'no stored key has this id');
    if (!isStorable(id) || id.length > LIMITS.id) throw unknown();
    if (access.principal.id === callerOf(id)) throw new OmpError('scope_denied', OWN_KEY);
    // The store revokes by name too.
    const revokedKey = (await keys.find(id, call)) && (await keys.revoke(id, call));
    if (!revokedKey) throw unknown();
    logChange(access, revokedKey, call, 'an API key was revoked');
    return toWire(revokedKey);
  },
  id: 'revokeKey',
  summary: 'Revoke a key',
  description: `Within five seconds no gateway accepts it. A key that is revoked already keeps its \`revoked_at\`. A key cannot
revoke itself. Available if \`features.keys\` is true.`,
  success: {
    description: 'The revoked key.',
    schema: KeyFields,
    example: { ...keyExample, revoked_at: '2026-03-02T08:00:00.000Z' },
  },
  errors: ['unsupported_capability', 'not_found'],
  consistent: false,
  tag: 'keys',
});
