import { compileFilter } from '../filter.ts';
import { checkId, checkMetadata, checkMetadataSize, toStoredVector } from '../limits.ts';
import { type Answer, existing, type Index, namespaceName, type Operation } from '../operation.ts';
import type { Metadata, Stored } from '../record-set.ts';
import { check } from '../refusal.ts';
import type { Namespace } from '../store.ts';

interface Update {
  readonly id?: string;
  readonly values?: readonly number[];
  readonly sparseValues?: object;
  readonly setMetadata?: Readonly<Record<string, unknown>>;
  readonly namespace?: string;
  readonly filter?: object;
  readonly dryRun?: boolean;
}

/** Sets keys of one record's metadata, or of all that a filter finds; never removes any. One record's values too. */
export const update: Operation = ({ body }, index) => {
  const asked = body as Update;
  check((asked.id === undefined) !== (asked.filter === undefined), 'either id or filter is required');
  check(asked.sparseValues === undefined, 'this index holds dense vectors only');
  if (asked.setMetadata) checkMetadata(asked.setMetadata);
  return asked.id === undefined ? updateWhere(asked, index) : updateOne(asked.id, asked, index);
};

function updateOne(id: string, { namespace, values, setMetadata, dryRun }: Update, index: Index): Answer {
  checkId(id);
  check(dryRun === undefined, 'dryRun needs a filter');
  const vector = values && toStoredVector(values, index.settings.dimension);
  const target = existing(namespaceName(namespace, index), index);
  return { body: {}, written: set(target, [id], { vector, metadata: setMetadata as Metadata | undefined }) };
}

function updateWhere({ namespace, values, setMetadata, filter, dryRun }: Update, index: Index): Answer {
  check(index.settings.apiVersion !== '2025-01', 'id is required');
  check(values === undefined, 'values cannot be updated by filter');
  check(setMetadata !== undefined, 'setMetadata is required with a filter');
  const target = existing(namespaceName(namespace, index), index);
  const matches = compileFilter(filter, target.filterable);
  const ids = [...target.whole.entries()].filter(([, { metadata = {} }]) => matches(metadata)).map(([id]) => id);
  const answer = { body: { matchedRecords: ids.length } };
  return dryRun ? answer : { ...answer, written: set(target, ids, { metadata: setMetadata as Metadata }) };
}

interface Values {
  readonly vector?: Float32Array;
  readonly metadata?: Metadata;
}

/** One write for all of them. Ids that are not there have no effect. */
function set(target: Namespace, ids: readonly string[], change: Values): number {
  for (const id of ids) {
    const { metadata } = merged(target.whole.get(id), change) ?? {};
    if (metadata) checkMetadataSize(metadata);
  }
  return target.write((records) => {
    for (const id of ids) {
      const record = merged(records.get(id), change);
      if (record) records.set(id, record);
    }
  });
}

const merged = (record: Stored | undefined, { vector, metadata }: Values): Stored | undefined =>
  record && {
    values: vector ?? record.values,
    ...(metadata || record.metadata ? { metadata: { ...record.metadata, ...metadata } } : {}),
  };
