import { type Metric, toValues } from '../score.ts';
import { type Embedder, OmpError } from '#contract';
import { atBoot, checkedMetric } from '../boot.ts';
import type { Service } from '../client/client.ts';
import { Failure } from '../client/errors.ts';
import { userFilter } from '../filter.ts';
import type { Options } from '../options.ts';

export interface Examined {
  readonly metric: Metric;
  /** Whether all records of one user can be asked for. */
  readonly lists: boolean;
}

/**
 * What the index can do, found out at the start. Throws a plain `Error` for one that does not fit the embedder or cannot
 * be asked for the records of one user.
 */
export const examine = (
  service: Service,
  options: Pick<Options, 'namespace' | 'metric'>,
  { dimensions }: Embedder,
  userField: string,
): Promise<Examined> =>
  atBoot(async (call) => {
    const metric = await checkedMetric(service, options, dimensions, call);
    const { namespace } = options;
    // Nobody's: no user has an empty name.
    const filter = userFilter('', [], { user: userField, tags: '' });
    const { values } = toValues(new Float32Array(dimensions));
    const request = { vector: values, topK: 1, filter, includeMetadata: false };
    await service.query(namespace, request, call).catch((error: unknown) => {
      throw isRefusal(error) ? cannotBeAsked(namespace, userField) : error;
    });
    const page = await service.fetchByMetadata(namespace, { filter, limit: 1 }, call);
    return { metric, lists: page !== undefined };
  });

const isRefusal = (error: unknown): boolean =>
  error instanceof OmpError && error.cause instanceof Failure && error.cause.status === 400;

const cannotBeAsked = (namespace: string, userField: string): Error =>
  new Error(
    namespace === '__default__'
      ? 'Pinecone refuses the namespace "__default__" (an index whose API is older than 2025-04 has no name for it), ' +
          `or does not let records be found by "${userField}" (OMP_PINECONE_USER_FIELD); the records have to be in a namespace with a name, and that key filterable`
      : `Pinecone does not let records be found by "${userField}"; check OMP_PINECONE_USER_FIELD and which metadata keys of the index are filterable`,
  );
