import { choiceOf } from './effect.ts';
import type { Given } from './given.ts';
import { settingFor } from './settings.ts';

/** What settings demand of each other and did not get, each as a mistake. Secrets in use must be among the given. */
export function unmet(given: ReadonlyMap<string, Given>): string[] {
  const choice = (key: string) => choiceOf(key, given);
  const mistakes: string[] = [];
  const require = (key: string, why: string) => {
    if (!given.has(key)) mistakes.push(`${named(key)} is required ${why}`);
  };

  // Compatible services on one's own machines often need no key; OpenAI always does.
  if (choice('embedding.kind') === 'openai' && !given.has('embedding.base_url')) {
    require('embedding.api_key', `while embedding.kind is openai, unless ${named('embedding.base_url')} names a service that needs none`);
  }
  if (choice('provider') === 'pinecone') {
    require('pinecone.api_key', 'while provider is pinecone');
    require('pinecone.index_host', 'while provider is pinecone');
    mistakes.push(...beyond(given, 'while provider is pinecone'));
  }
  if (choice('mapping.preset') !== undefined) {
    require('postgres.url', 'while mapping.preset is set: the table is on a server');
    // Nothing in a table says who made its vectors, and a wrong guess answers nonsense.
    require('embedding.kind', 'while mapping.preset is set: it has to be what made the vectors of the table');
    if (choice('embedding.kind') === 'openai')
      require('embedding.model', 'while mapping.preset is set: it has to be the model that made the vectors of the table');
    mistakes.push(...beyond(given, 'while mapping.preset is set'));
  }
  if (choice('ingestion') === 'async' && choice('search.mode') === 'keyword') {
    mistakes.push('ingestion cannot be async while search.mode is keyword: there are no vectors to compute later');
  }
  if (given.has('jwt.jwks_url')) {
    require('jwt.issuer', 'while jwt.jwks_url is set');
    require('jwt.audience', 'while jwt.jwks_url is set');
  }
  if (choice('rate_limit.store') === 'redis') require('rate_limit.redis_url', 'while rate_limit.store is redis');
  if (choice('rate_limit.store') === 'postgres') {
    if (choice('provider') === 'postgres') {
      if (choice('mapping.preset') !== undefined) {
        mistakes.push(
          'rate_limit.store cannot be postgres while mapping.preset is set: nothing of ours is made in the database',
        );
      }
      require('postgres.url', 'while rate_limit.store is postgres: an embedded Postgres has no other gateways to share with');
    } else if (choice('provider') !== undefined) {
      mistakes.push(`rate_limit.store can be postgres only while provider is, but provider is ${choice('provider')}`);
    }
  }
  return mistakes;
}

/** What was asked for where vectors alone are searched, and nothing but memories is recorded. `where` completes a mistake. */
function beyond(given: ReadonlyMap<string, Given>, where: string): string[] {
  const told = (key: string, ...values: unknown[]) => {
    const each = given.get(key);
    const value = each && choiceOf(key, given);
    return value !== undefined && (values.length === 0 || values.includes(value)) ? [each?.name] : [];
  };
  return [
    ...told('search.mode', 'keyword', 'hybrid').map(
      (name) => `${name} must be vector ${where}, which is searched by vectors alone`,
    ),
    ...told('search.keyword_weight').map(
      (name) => `${name} has no effect ${where}, which is searched by vectors alone`,
    ),
    ...[...told('audit.record', 'all', 'writes'), ...told('audit.retention_days')].map(
      (name) => `${name} has no effect ${where}, where no audit log is kept`,
    ),
  ];
}

/** `postgres.url (DATABASE_URL or DATABASE_URL_FILE)`. */
function named(key: string): string {
  const { env = '', secret } = settingFor(key) ?? {};
  return `${key} (${env}${secret ? ` or ${env}_FILE` : ''})`;
}
