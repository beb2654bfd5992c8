import { z } from 'zod';
import { isStorableTime } from '#toolbox';
import { ADMIN_GRANT, isGrant, isKeyGrant } from '../core/grants.ts';
import { idOf } from './credentials.ts';

const HASHED = /^omp_([a-z0-9]{12}):sha256:([0-9a-f]{64})$/;

/** The audit log and `keys list` show the name. Format characters could make one name look like another (U+202E, U+200B). */
export const keyNameSchema = z
  .string()
  .regex(
    /^(?!\s)[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,100}(?<!\s)$/u,
    'must be 1 to 100 characters without control characters, invisible format characters or outer spaces',
  );

/** A date means 00:00 UTC. */
export const expirySchema = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })], {
    error: 'must be a date such as 2027-01-01 or a date-time with offset such as 2027-01-01T12:00:00Z',
  })
  .refine((value) => isStorableTime(Date.parse(value)), 'must be between the years 0001 and 9999 in UTC');

/** A grant of a token. */
export const grantSchema = z
  .string()
  .refine(
    isGrant,
    'must be <action>:<scope glob> with the action read, write, delete or *, such as read:coding/* or *:*',
  );

/** A grant of a key. */
export const keyGrantSchema = z
  .string()
  .refine(
    isKeyGrant,
    'must be <action>:<scope glob> with the action read, write, delete or *, such as read:coding/* or *:*, or admin:*',
  );

export const keyUserSchema = z
  .string()
  .regex(/\S/, 'must not be blank')
  .max(256, 'must be at most 256 characters')
  .refine((user) => user.isWellFormed() && !user.includes('\0'), 'must not contain NUL or lone surrogates');

/** Rejects a key with a grant that would do nothing. */
export const hasUse = ({
  grants,
  untrusted,
}: {
  grants: readonly string[];
  untrusted?: boolean | null | undefined;
}): boolean => untrusted !== true || !grants.includes(ADMIN_GRANT);
export const NO_USE = 'admin:* does nothing for an untrusted key: leave out one of them';

const hashedKeySchema = z.string().regex(HASHED, {
  error: ({ input }) =>
    idOf(String(input).trim()) === undefined
      ? 'must be omp_<id>:sha256:<64 hexadecimal digits>, as "omp-gateway keys create NAME --print" prints it'
      : 'must be the hash of a key, not the key itself; "omp-gateway keys create NAME --print" makes a key with its hash',
});

/** An API key in the configuration: only its hash, never the key itself. No error message quotes the value. */
const configuredKeySchema = z
  .strictObject({
    name: keyNameSchema,
    key: hashedKeySchema,
    /** The only users it may access; omitted: all. */
    users: z.array(keyUserSchema).min(1, 'must name a user; omit it to allow all').optional(),
    grants: z.array(keyGrantSchema).min(1, 'must contain a grant, such as read:coding/*'),
    expires_at: expirySchema.optional(),
    /** Whether what it writes is marked. */
    untrusted: z.boolean().optional(),
  })
  .refine(hasUse, { path: ['grants'], message: NO_USE });
export type ConfiguredKey = z.output<typeof configuredKeySchema>;

/** All configured keys. Names and ids are unique. */
export const configuredKeysSchema = z.array(configuredKeySchema).superRefine((keys, context) => {
  const rejectDuplicates = (field: 'name' | 'key', texts: readonly (string | undefined)[]) =>
    texts.forEach((text, index) => {
      const first = texts.indexOf(text);
      if (text === undefined || first === index) return;
      context.addIssue({ code: 'custom', path: [index, field], message: `is the same as in entry ${first + 1}` });
    });
  rejectDuplicates(
    'name',
    keys.map(({ name }) => name),
  );
  rejectDuplicates(
    'key',
    keys.map(({ key }) => HASHED.exec(key)?.[1]),
  );
});

/** Id and hash of a configured `key`. Throws unless it is well formed. */
export function hashedKey(text: string): { id: string; hash: string } {
  const [, id, hash] = HASHED.exec(text) ?? [];
  if (id === undefined || hash === undefined) throw new Error('not the hash of a key');
  return { id, hash };
}

/** The inverse of `hashedKey`. */
export const toHashedKey = ({ id, hash }: { id: string; hash: string }): string => `omp_${id}:sha256:${hash}`;
