import { checkId, checkMetadata, checkMetadataSize, LIMITS, toStoredVector } from '../limits.ts';
import { namespaceName, type Operation } from '../operation.ts';
import type { Stored } from '../record-set.ts';
import { check } from '../refusal.ts';

interface Vector {
  readonly id: string;
  readonly values?: readonly number[];
  readonly sparseValues?: object;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Puts whole records in the place of what was there. */
export const upsert: Operation = ({ body, bytes }, index) => {
  const { vectors, namespace } = body as { vectors: readonly Vector[]; namespace?: string };
  check(bytes <= LIMITS.upsertBytes, `Request size ${bytes} exceeds the limit of ${LIMITS.upsertBytes} bytes`);
  check(vectors.length > 0, 'at least one vector is required');
  check(vectors.length <= LIMITS.upsertRecords, `at most ${LIMITS.upsertRecords} vectors are allowed`);
  const name = namespaceName(namespace, index);
  const records = vectors.map((vector) => [vector.id, toStored(vector, index.settings.dimension)] as const);
  const written = index.store.ensure(name).write((stored) => {
    for (const [id, record] of records) stored.set(id, record);
  });
  return { body: { upsertedCount: records.length }, written };
};

function toStored({ id, values = [], sparseValues, metadata }: Vector, dimension: number): Stored {
  checkId(id);
  check(sparseValues === undefined, 'this index holds dense vectors only');
  const vector = toStoredVector(values, dimension);
  if (metadata === undefined) return { values: vector };
  checkMetadata(metadata);
  checkMetadataSize(metadata);
  return { values: vector, metadata };
}
