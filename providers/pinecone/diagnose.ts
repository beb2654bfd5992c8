import type { EmbedderIdentity, Finding, ProviderContext } from '#contract';
import { atBoot, checkedMetric } from './boot.ts';
import type { Service } from './client/client.ts';
import { connect } from './client/client.ts';
import { readIndex } from './identity.ts';
import { examine } from './mapped/examine.ts';
import { fieldsOf } from './mapped/mapped-record.ts';
import type { Options } from './options.ts';

const finding = (area: Finding['area'], level: Finding['level'], message: string): Finding => ({
  area,
  level,
  message,
});
const ANSWERS = 'the index on Pinecone answers';

/**
 * What can be told by reading: whether the index answers, takes the embedder's vectors, and holds those of the same
 * model. Not whether the key may write. Without an embedder no more than the first.
 */
export async function diagnose(options: Options, { embedder }: Pick<ProviderContext, 'embedder'>): Promise<Finding[]> {
  try {
    const service = connect(options);
    if (!embedder) {
      await atBoot((call) => service.stats(call));
      return [
        finding('connection', 'ok', `${ANSWERS}; what is in it was not held against the embedder, which does not`),
      ];
    }
    return await (options.preset ? lookAtExisting : lookAtOwn)(service, options, embedder);
  } catch (error) {
    return [finding('connection', 'problem', error instanceof Error ? error.message : String(error))];
  }
}

async function lookAtOwn(service: Service, options: Options, embedder: EmbedderIdentity): Promise<Finding[]> {
  const { metric, found } = await atBoot(async (call) => ({
    metric: await checkedMetric(service, options, embedder.dimensions, call),
    found: await readIndex(service, options, embedder, call),
  }));
  const told = found ? `made by "${embedder.model}"` : 'none yet: the gateway says at its first start who makes them';
  return [
    finding('connection', 'ok', `${ANSWERS}, and measures by ${metric}; whether the key may write was not tried`),
    finding('embedding', 'ok', `the vectors in the namespace "${options.namespace}" are ${told}`),
  ];
}

async function lookAtExisting(service: Service, options: Options, embedder: EmbedderIdentity): Promise<Finding[]> {
  const fields = fieldsOf(options);
  const { metric, lists } = await examine(service, options, embedder, fields.user);
  const trusted = `that "${embedder.model}" made the vectors is what the configuration says`;
  return [
    finding('connection', 'ok', `${ANSWERS}, and measures by ${metric}`),
    finding('mapping', 'ok', `its records can be found by "${fields.user}"`),
    finding('embedding', 'ok', `vectors of ${embedder.dimensions} dimensions; ${trusted}`),
    ...(lists
      ? []
      : [finding('mapping', 'warning', 'it speaks an API older than 2025-10 and cannot list the memories of a user')]),
  ];
}
