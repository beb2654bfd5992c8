import { COLLECTION_NAMES } from './collection-settings.ts';
import type { Input } from './mistakes.ts';
import { SETTINGS, type Setting, settingFor } from './schema-reader.ts';

/** The value of a choice such as `provider`; undefined: a mistake hides it. */
function choiceOf(key: string, inputs: ReadonlyMap<string, Input>): unknown {
  const each = inputs.get(key);
  if (each !== undefined && each.value === undefined) return;
  return settingFor(key)?.schema.safeParse(each?.value).data;
}

/** Why a setting would have no effect. */
export interface Obstacle {
  /** The setting that prevents it. */
  readonly key: string;
  /** Completes "has no effect while …". */
  readonly reason: string;
}

/** Undefined: the setting has an effect, or a mistake hides whether it has. */
export function obstacle({ only, unless, except }: Setting, inputs: ReadonlyMap<string, Input>): Obstacle | undefined {
  return (only && missing(only, inputs)) ?? excluded(except ?? (unless === undefined ? undefined : [unless]), inputs);
}

function missing([key, ...values]: NonNullable<Setting['only']>, inputs: ReadonlyMap<string, Input>) {
  const above = settingFor(key);
  const higher = above && obstacle(above, inputs);
  if (higher !== undefined) return higher;
  // A setting whose value is unknown counts as set.
  if (values.length === 0) return inputs.has(key) ? undefined : { key, reason: `${key} is not set` };
  const choice = choiceOf(key, inputs);
  return choice === undefined || values.some((value) => value === choice)
    ? undefined
    : { key, reason: `${key} is ${choice}` };
}

/** Without values: by any choice. */
function excluded([key, ...values]: readonly string[] = [], inputs: ReadonlyMap<string, Input>) {
  const choice = key === undefined ? undefined : choiceOf(key, inputs);
  if (key === undefined || choice === undefined) return undefined;
  return values.length === 0 || values.some((value) => value === choice)
    ? { key, reason: `${key} is ${choice}` }
    : undefined;
}

/**
 * A setting without effect is a mistake, with two exceptions among environment variables: those of a provider that is not
 * chosen, so that OMP_PROVIDER alone switches a deployment, and names that other software shares (OPENAI_API_KEY).
 */
export const mayBeIdle = ({ env }: Setting, origin: Input['origin'], { key }: Obstacle): boolean =>
  origin === 'environment' && (key === 'provider' || !env.startsWith('OMP_'));

/** Removes settings without effect, and reports those that are mistakes. */
export function dropIdle(inputs: Map<string, Input>, mistakes: string[]): void {
  for (const setting of SETTINGS) {
    const each = inputs.get(setting.key);
    const prevented = obstacle(setting, inputs);
    if (each === undefined || prevented === undefined) continue;
    inputs.delete(setting.key);
    if (each.value !== undefined && !mayBeIdle(setting, each.origin, prevented)) {
      mistakes.push(`${each.name} has no effect while ${prevented.reason}`);
    }
  }
}

/**
 * Requirements between settings that are not met, each as a mistake. `inputs` includes the secrets in use; `named` says how a
 * missing setting is given.
 */
export function unmet(inputs: ReadonlyMap<string, Input>, named = withVariable): string[] {
  const choice = (key: string) => choiceOf(key, inputs);
  const mistakes: string[] = [];
  const require = (key: string, why: string) => {
    if (!inputs.has(key)) mistakes.push(`${named(key)} is required ${why}`);
  };

  // Self-hosted services often need no key; OpenAI always does.
  if (choice('embedding.kind') === 'openai' && !inputs.has('embedding.base_url')) {
    require('embedding.api_key', `while embedding.kind is openai, unless ${named('embedding.base_url')} names a service that needs none`);
  }
  if (choice('provider') === 'pinecone') {
    require('pinecone.api_key', 'while provider is pinecone');
    require('pinecone.index_host', 'while provider is pinecone');
    mistakes.push(...vectorsOnly(inputs, 'while provider is pinecone'));
  }
  const collection = COLLECTION_NAMES.find((name) => name === choice('provider'));
  if (collection !== undefined) mistakes.push(...vectorsOnly(inputs, `while provider is ${collection}`));
  if (collection !== undefined && inputs.has(`${collection}.preset`))
    require('embedding.kind', `while ${collection}.preset is set: it must be the embedder that made the vectors of the collection`);
  if (inputs.has('postgres.read_url')) {
    require('postgres.url', 'while postgres.read_url is set: an embedded Postgres has no replica');
    if (choice('postgres.distributed') === 'citus') {
      mistakes.push(
        'postgres.read_url cannot be set while postgres.distributed is citus: a replica of the coordinator holds no memories',
      );
    }
  }
  if (choice('mapping.preset') !== undefined) {
    require('postgres.url', 'while mapping.preset is set: the mapped table is on a server');
    // A table does not say which model made its vectors.
    require('embedding.kind', 'while mapping.preset is set: it must be the embedder that made the vectors of the table');
    if (choice('embedding.kind') === 'openai')
      require('embedding.model', 'while mapping.preset is set: it must be the model that made the vectors of the table');
    mistakes.push(...vectorsOnly(inputs, 'while mapping.preset is set'));
  }
  if (choice('ingestion') === 'async' && choice('search.mode') === 'keyword') {
    mistakes.push('ingestion cannot be async while search.mode is keyword: there are no vectors to compute later');
  }
  if (inputs.has('jwt.jwks_url')) {
    require('jwt.issuer', 'while jwt.jwks_url is set');
    require('jwt.audience', 'while jwt.jwks_url is set');
  }
  if (choice('webhooks.private') === 'on') require('webhooks.secret', 'while webhooks.private is on');
  if (choice('rate_limit.store') === 'redis') require('rate_limit.redis_url', 'while rate_limit.store is redis');
  if (choice('rate_limit.store') === 'postgres') {
    if (choice('provider') === 'postgres') {
      if (choice('mapping.preset') !== undefined) {
        mistakes.push(
          'rate_limit.store cannot be postgres while mapping.preset is set: the gateway makes no tables in that database',
        );
      }
      require('postgres.url', 'while rate_limit.store is postgres: no other gateway can share an embedded Postgres');
    } else if (choice('provider') !== undefined) {
      mistakes.push(`rate_limit.store can be postgres only while provider is, but provider is ${choice('provider')}`);
    }
  }
  return mistakes;
}

/** Settings that need keyword search or an audit log, where there is neither. `where` completes each mistake. */
function vectorsOnly(inputs: ReadonlyMap<string, Input>, where: string): string[] {
  const chosen = (key: string, ...values: unknown[]) => {
    const each = inputs.get(key);
    const value = each && choiceOf(key, inputs);
    return value !== undefined && (values.length === 0 || values.includes(value)) ? [each?.name] : [];
  };
  return [
    ...[...chosen('versions.keep', 'on'), ...chosen('versions.max'), ...chosen('versions.retention_days')].map(
      (name) => `${name} has no effect ${where}, where no versions are kept`,
    ),
    ...chosen('search.mode', 'keyword', 'hybrid').map(
      (name) => `${name} must be vector ${where}, which is searched by vectors alone`,
    ),
    ...chosen('search.keyword_weight').map(
      (name) => `${name} has no effect ${where}, which is searched by vectors alone`,
    ),
    ...[
      ...chosen('audit.record', 'all', 'writes'),
      ...chosen('audit.retention_days'),
      ...chosen('audit.erased_users'),
    ].map((name) => `${name} has no effect ${where}, where no audit log is kept`),
  ];
}

/** `postgres.url (DATABASE_URL or DATABASE_URL_FILE)`. */
function withVariable(key: string): string {
  const { env = '', secret } = settingFor(key) ?? {};
  return `${key} (${env}${secret ? ` or ${env}_FILE` : ''})`;
}
