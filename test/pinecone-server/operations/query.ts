import { compileFilter } from '../filter.ts';
import { checkId, checkResultSize, toVector } from '../limits.ts';
import { type Index, indexedIn, namespaceName, type Operation, usage } from '../operation.ts';
import type { RecordSet } from '../record-set.ts';
import { check } from '../refusal.ts';
import { LOWER_IS_BETTER, score } from '../score.ts';

interface Query {
  readonly namespace?: string;
  readonly topK: number;
  readonly filter?: object;
  readonly includeValues?: boolean;
  readonly includeMetadata?: boolean;
  readonly vector?: readonly number[];
  readonly id?: string;
}

/** Parameters of the file that only other kinds of indexes know. */
const ELSEWHERE = ['queries', 'sparseVector', 'scanFactor', 'maxCandidates'] as const;

/** The records nearest to a vector, or to the vector of a record; the nearest first, then by id. */
export const query: Operation = ({ body }, index) => {
  const asked = body as Query;
  for (const name of ELSEWHERE) check(!(name in asked), `${name} is not supported by this index`);
  const namespace = namespaceName(asked.namespace, index);
  const { records, lsn } = indexedIn(namespace, index);
  const { filter } = asked;
  const matches = filter ? compileFilter(filter, index.store.find(namespace)?.filterable) : () => true;
  const vector = vectorFor(asked, records, index);
  const { metric } = index.settings;
  const found = vector
    ? [...records.entries()]
        .filter(([, { metadata = {} }]) => matches(metadata))
        .map(([id, record]) => ({ id, record, score: score[metric](vector, record.values) }))
    : [];
  const sign = LOWER_IS_BETTER[metric] ? 1 : -1;
  found.sort((a, b) => sign * (a.score - b.score) || (a.id < b.id ? -1 : 1));
  const top = found.slice(0, asked.topK).map(({ id, score, record: { values, metadata } }) => ({
    id,
    score,
    ...(asked.includeValues && { values: [...values] }),
    ...(asked.includeMetadata && metadata && { metadata }),
  }));
  const answer = { results: [], matches: top, namespace, ...usage(1) };
  checkResultSize(answer);
  return { body: answer, indexed: lsn };
};

/** Undefined: there is no record of the given id. */
function vectorFor({ vector, id }: Query, records: RecordSet, { settings }: Index): Float32Array | undefined {
  check((vector === undefined) !== (id === undefined), 'either vector or id is required');
  if (vector) return toVector(vector, settings.dimension);
  checkId(id as string);
  return records.get(id as string)?.values;
}
