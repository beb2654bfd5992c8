import { z } from 'zod';
import { type Call, isReserved, type Memory, type MemoryPatch, type MemoryVersion, OmpError } from '#contract';
import { type Access, denied, recordFacts, type Target } from '../../core/access.ts';
import type { AuditFacts } from '../../core/audit-queue.ts';
import { cursorKind, NO_TIME } from '../../core/cursor.ts';
import { pageOf } from '../../core/read-shares.ts';
import { differenceOf, restoringPatch } from '../../core/restoring.ts';
import type { Store } from '../../core/store.ts';
import { changeChecked } from '../../core/with-origin.ts';
import {
  cursor,
  LIMITS,
  leftOut,
  MAX_VERSION,
  next_cursor,
  short,
  strings,
  versionNumber,
  wholeNumber,
} from '../../verbs/fields.ts';
import { CHANGE_HEADERS, changeTarget, factsOfId, readChangeTarget } from '../../verbs/get-list-update-delete.ts';
import { verb } from '../../verbs/verb.ts';
import { MemoryFields, memoryExample, memoryTarget, readTarget, toWire } from '../../verbs/wire-memory.ts';

/*
 * Versions of memories, and undo (Decision 55). A caller sees a version if it may read the memory now, and the scope that it had then.
 */

const NEEDS = ['versions'] as const;
const REMEDY = 'it keeps no versions (OMP_VERSIONS)';

type Versioned = Access & { readonly store: Required<Pick<Store, 'versions'>> };

/** The fields that differ, and the `x-` keys. */
function changedFields(memory: Memory, before: Memory): string[] {
  const { extensions = {}, ...fields } = differenceOf(before, memory) ?? {};
  return [...Object.keys(fields), ...Object.keys(extensions).filter((key) => !isReserved(key))];
}

const VersionFields = z
  .looseObject({
    version: z.int().min(1).meta({ description: 'Counts up from 1 with each change.' }),
    memory: MemoryFields.meta({ description: 'As it was. `updated_at`: when this version was written.' }),
    changed: strings.nullable().meta({
      description: 'Fields that differ from the version before it; null: that one is not kept, or not readable.',
    }),
    current: z.boolean().meta({ description: 'Whether the memory is this version now.' }),
  })
  .meta({ id: 'MemoryVersion' });

const versionExample = { version: 1, memory: memoryExample, changed: null, current: true };

type ShownVersion = MemoryVersion & { readonly changed: string[] | null; readonly current: boolean };

interface Shown {
  readonly current: Memory;
  readonly items: readonly ShownVersion[];
  readonly more: boolean;
}

/** The versions below `before` that the caller may read, at most `limit`; undefined: from the current one on. */
async function readVersions(
  access: Versioned,
  { target, before, limit }: { readonly target: Target; readonly before?: number | undefined; readonly limit: number },
  call: Call,
  facts: AuditFacts,
): Promise<Shown> {
  const { store, shares, bounds } = access;
  const { max_bytes } = bounds;
  return shares.records(limit, call, async () => {
    const ref = access.ref(target, 'read');
    // One more than the limit tells whether the list continues, and what changed in the last of them.
    const found = await store.versions.list({ ref, before, limit: limit + 1, max_bytes }, call);
    if (!found) throw await access.absenceError('read', target, call, facts);
    recordFacts(facts, access.readable(found.current, target.user_id));
    const isFirst = before === undefined || before > found.version;
    const all = [...(isFirst ? [{ version: found.version, memory: found.current }] : []), ...found.versions];
    for (const { memory } of all) {
      if (memory.id !== found.current.id) throw access.mismatch();
      access.readable(memory, found.current.user_id);
    }
    const sized = pageOf(
      all,
      all.map(({ memory }) => memory),
      limit,
    );
    const items = sized.result.items.map(({ version, memory }, i) => {
      const previous = all[i + 1];
      const changed = previous?.version === version - 1 ? changedFields(memory, previous.memory) : null;
      return { version, memory, changed, current: version === found.version };
    });
    return { ...sized, result: { current: found.current, items, more: sized.result.more } };
  });
}

const toShown = ({ memory, ...rest }: ShownVersion) => ({ ...rest, memory: toWire(memory) });

const isNumber = (text: string): boolean => /^[1-9]\d{0,9}$/.test(text) && Number(text) <= MAX_VERSION;

const VersionCursor = cursorKind<number>('versions', {
  position: (version) => ({ created_at: NO_TIME, id: String(version) }),
  place: ({ id }) => (isNumber(id) ? Number(id) : undefined),
});

/** Newest first: the current version is the first of the first page. */
export const versions = verb({
  name: 'versions',
  method: 'GET',
  path: '/memories/{id}/versions',
  input: z.object({ ...memoryTarget, limit: wholeNumber('Maximum versions per page', 1, 100).default(50), cursor }),
  headers: { user_id: 'X-User-Id' },
  needs: NEEDS,
  remedy: REMEDY,
  feature: 'versions',
  read({ limit, cursor, ...input }) {
    const target = readTarget(input);
    return { target, before: VersionCursor.read(cursor, { id: target.id }), limit };
  },
  facts: ({ target }) => factsOfId(target),
  async run(request, access, call, facts) {
    const { items, more } = await readVersions(access, request, call, facts);
    const last = more ? items.at(-1) : undefined;
    const next_cursor = VersionCursor.write(last?.version, { id: request.target.id });
    return { items: items.map(toShown), next_cursor };
  },
  id: 'listVersions',
  summary: 'List the versions of a memory',
  description: `Newest first, the current one included. Leaves out versions in scopes that the caller may not read. Available if
\`features.versions\` is true.`,
  success: {
    description: 'One page.',
    schema: z.looseObject({ items: z.array(VersionFields), next_cursor, ...leftOut }).meta({ id: 'VersionPage' }),
    example: { items: [versionExample], next_cursor: null },
  },
  errors: ['invalid_request', 'unsupported_capability', 'not_found'],
});

/** A part of a path is required, as a parameter of `wholeNumber` need not be. */
const versionInPath = short(LIMITS.number)
  .refine(isNumber, `must be a whole number from 1 to ${MAX_VERSION}`)
  .transform(Number)
  .meta({ description: 'Number of the version.', type: 'integer', minimum: 1, maximum: MAX_VERSION });

export const version = verb({
  name: 'versions',
  method: 'GET',
  path: '/memories/{id}/versions/{version}',
  input: z.object({ ...memoryTarget, version: versionInPath }),
  headers: { user_id: 'X-User-Id' },
  needs: NEEDS,
  remedy: REMEDY,
  read: ({ version, ...input }) => ({ target: readTarget(input), version }),
  facts: ({ target }) => factsOfId(target),
  run: async (request, access, call, facts) => toShown((await readVersion(access, request, call, facts)).found),
  id: 'getVersion',
  summary: 'Read one version of a memory',
  success: { description: 'The version.', schema: VersionFields, example: versionExample },
  errors: ['invalid_request', 'unsupported_capability', 'not_found'],
});

/** One version, and the memory as it is now. */
async function readVersion(
  access: Versioned,
  { target, version }: { readonly target: Target; readonly version: number },
  call: Call,
  facts: AuditFacts,
): Promise<{ readonly found: ShownVersion; readonly current: Memory }> {
  const { items, current } = await readVersions(access, { target, before: version + 1, limit: 1 }, call, facts);
  const [found] = items;
  if (found?.version === version) return { found, current };
  throw new OmpError('not_found', 'the memory has no such version; its list of versions has those that are kept');
}

/** A change like any other: it makes a new version, and nothing is lost. */
export const restoreVersion = verb({
  name: 'restore',
  method: 'POST',
  path: '/memories/{id}/restore',
  input: z.object({ ...changeTarget, version: versionNumber }),
  headers: CHANGE_HEADERS,
  body: {
    schema: z.object({ version: versionNumber }).meta({ id: 'Restore' }),
    example: { version: 1 },
  },
  needs: [...NEEDS, 'update'],
  remedy: REMEDY,
  writes: true,
  read: ({ version, ...input }, access) => ({ target: readChangeTarget(input, access), version }),
  facts: ({ target }) => factsOfId(target),
  run: (request, access, call, facts) => restored(access, request, call, facts),
  id: 'restoreVersion',
  summary: 'Restore a version of a memory',
  description: `Gives the fields that PATCH may change the values that they had, and removes \`x-\` keys that the version lacks. This
makes a new version. Needs to read the memory and the version, and to write the scopes of both.`,
  success: { description: 'The full memory.', schema: MemoryFields, example: memoryExample, tagged: true },
  errors: ['invalid_request', 'unsupported_capability', 'not_found'],
});

async function restored(
  access: Versioned & { readonly store: Required<Pick<Store, 'update'>> },
  { target, version }: { readonly target: Target; readonly version: number },
  call: Call,
  facts: AuditFacts,
) {
  let patch: MemoryPatch = {};
  const find = async () => {
    const { found, current } = await readVersion(access, { target, version }, call, facts);
    if (!access.admitsWrite(found.memory.scope)) throw denied();
    patch = restoringPatch(current, found.memory) ?? {};
    return current;
  };
  const restoring = access.through('restore', version);
  const memory = await changeChecked(access.store, access.ref(target, 'write'), find, (ref) =>
    restoring.update({ ref, patch }, call),
  );
  if (!memory) throw await access.absenceError('write', target, call, facts);
  return toWire(access.readable(access.writable(memory, target.user_id)));
}

/** Needs the grant to delete where the memory is now: what it removes is gone. */
export const purgeVersions = verb({
  name: 'purge',
  method: 'DELETE',
  path: '/memories/{id}/versions',
  input: z.object(memoryTarget),
  headers: { user_id: 'X-User-Id' },
  needs: NEEDS,
  remedy: REMEDY,
  writes: true,
  read: readTarget,
  facts: factsOfId,
  async run(target, access, call, facts) {
    const purged = await access.store.versions.purge(access.ref(target, 'delete'), call);
    if (purged === undefined) throw await access.absenceError('delete', target, call, facts);
    return { purged };
  },
  id: 'purgeVersions',
  summary: 'Delete the versions of a memory before its current one, permanently',
  description:
    'For a secret that was overwritten. The memory stays, and its versions count on. Needs the grant to delete it.',
  success: {
    description: 'The number of versions.',
    schema: z.looseObject({ purged: z.int().min(0) }).meta({ id: 'Purged' }),
    example: { purged: 2 },
  },
  errors: ['unsupported_capability', 'not_found'],
});
