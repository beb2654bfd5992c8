import { z } from 'zod';
import { Options as LibsqlOptions } from '../../providers/collections/libsql.ts';
import { settingFacts } from './facts.ts';

/*
 * Settings of the vector databases whose adapters are in `providers/collections`, each under its name. The adapters' schemas decide what is allowed.
 */

const LIBSQL = { only: ['provider', 'libsql'] } as const;
const { shape } = LibsqlOptions;

const libsql = z.strictObject({
  url: shape.url.register(settingFacts, {
    env: 'OMP_LIBSQL_URL',
    description: 'Database; unset: the file libsql.db in data_dir',
    allowed: 'an address that begins with libsql://, http://, https://, ws:// or wss://, or file: and a path',
    example: 'libsql://memories-me.turso.io',
    ...LIBSQL,
  }),
  auth_token: shape.auth_token.register(settingFacts, {
    env: 'OMP_LIBSQL_AUTH_TOKEN',
    description: 'Token of a database on a server',
    allowed: 'printable ASCII characters without spaces',
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: '${TURSO_AUTH_TOKEN}',
    ...LIBSQL,
  }),
  table: shape.table.register(settingFacts, {
    env: 'OMP_LIBSQL_TABLE',
    description: 'Table of the memories, created by the first start',
    allowed: 'letters, digits and _, at most 63, no digit first',
    ...LIBSQL,
  }),
});

/** By name of the provider. */
export const collections = { libsql: libsql.prefault({}) };
/** The providers of this kind. */
export const COLLECTION_NAMES = Object.keys(collections) as (keyof typeof collections)[];
