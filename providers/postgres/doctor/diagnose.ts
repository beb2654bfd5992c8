import type pg from 'pg';
import type { Finding, ProviderContext } from '#contract';
import type { Options } from '../options.ts';
import { connect, lookAtConnection } from './connection.ts';
import { openEmbedded } from './embedded.ts';
import { lookAtExtension } from './extension.ts';
import { notLookedAt } from './findings.ts';
import { lookAtMapped } from './mapped.ts';
import { lookAtOwn } from './own.ts';
import { reading } from './reading.ts';

/**
 * Everything that serving from this database takes, looked at and left as it is. Without an embedder in the context
 * (there is none in keyword mode, and none that works where the service does not) as much as can be told without one.
 */
export async function diagnose(options: Options, context: ProviderContext): Promise<Finding[]> {
  if (options.url !== undefined) return diagnoseServer({ connectionString: options.url }, options, context);
  const { findings, engine } = await openEmbedded(context.data_dir);
  if (!engine) return findings;
  try {
    return [...findings, ...(await diagnoseServer(engine.config, options, context))];
  } finally {
    await engine.close();
  }
}

async function diagnoseServer(config: pg.ClientConfig, options: Options, context: ProviderContext): Promise<Finding[]> {
  const connected = await connect(config, options.connect_timeout_ms);
  if ('trouble' in connected) return [connected.trouble];
  try {
    return await lookAtDatabase(connected.client, options, context);
  } finally {
    await connected.client.end();
  }
}

async function lookAtDatabase(client: pg.Client, options: Options, { embedder, ranking }: ProviderContext) {
  const { mapping } = options;
  const findings: Finding[] = [];
  /** One look that fails does not hinder the others. */
  const look = async <Result>(area: Finding['area'], what: string, work: () => Promise<Result>) => {
    try {
      return await work();
    } catch (error) {
      findings.push(notLookedAt(area, what, error));
      return undefined;
    }
  };
  const connection = await look('connection', 'the connection', () =>
    lookAtConnection(client, options, mapping === undefined || mapping.writable),
  );
  findings.push(...(connection ?? []));
  const found = await look('extension', 'the extension', () =>
    reading(client, (read) => lookAtExtension(read, !mapping)),
  );
  findings.push(...(found?.findings ?? []));
  const { extension } = found ?? {};
  const rest = mapping
    ? await look('mapping', 'the table', () => lookAtMapped(client, { ...options, mapping }, embedder))
    : await look('privileges', 'the tables', async () =>
        reading(client, (read) =>
          lookAtOwn(read, options, extension, ranking.mode === 'keyword' ? undefined : embedder),
        ),
      );
  return [...findings, ...(rest ?? [])];
}
