import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { IS_CITUS } from '../support/postgres-server.ts';

export type Sql = (text: string, values?: string[]) => Promise<Record<string, string | null>[]>;

/** A server, and the folder that its files are in. */
interface Node {
  readonly sql: Sql;
  readonly folder: string;
}

/** A file as it is on the disk. */
export interface StoredFile {
  /** Of its relation, without the number of a shard; of another file its path. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** The servers behind this connection: one, or all nodes of Citus. Undefined: their files are on another machine. */
export async function nodesOf(sql: Sql, url: string): Promise<readonly Node[] | undefined> {
  const nodes: Node[] = [];
  const servers = IS_CITUS ? await sql('select nodename as hostname, nodeport::text as port from pg_dist_node') : [{}];
  for (const server of servers) {
    const client = new pg.Client({ connectionString: Object.assign(new URL(url), server).href });
    await client.connect();
    onTestFinished(() => client.end());
    const ask: Sql = async (text, values) => (await client.query(text, values)).rows;
    // Shards are hidden in the catalogue of a node.
    if (IS_CITUS) await ask('set citus.override_table_visibility to off');
    const [{ folder } = {}] = await ask(`select current_setting('data_directory') as folder`);
    if (!existsSync(join(folder as string, 'base'))) return undefined;
    nodes.push({ sql: ask, folder: folder as string });
  }
  return nodes;
}

/** The files of all relations of a schema: tables, what they keep apart (toast), and indexes of both. */
export async function relationFiles(nodes: readonly Node[], schema: string): Promise<StoredFile[]> {
  const files: StoredFile[] = [];
  for (const { sql, folder } of nodes) {
    await sql('checkpoint');
    const relations = await sql(
      `with own as (select oid, reltoastrelid from pg_class where relnamespace = to_regnamespace($1)),
         all_of_them as (select oid from own union select reltoastrelid from own
           union select indexrelid from pg_index join own on indrelid in (own.oid, reltoastrelid))
       ${SELECT} where oid in (select oid from all_of_them) and pg_relation_filepath(oid) is not null`,
      [schema],
    );
    for (const { name, path } of relations) files.push(fileAt(join(folder, path as string), name as string));
  }
  return files;
}

/** All files of a data folder but the write-ahead log. */
export async function folderFiles({ sql, folder }: Node, database: string): Promise<StoredFile[]> {
  await sql('checkpoint');
  const names = new Map((await sql(SELECT)).map(({ path, name }) => [path, name]));
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.startsWith(join(folder, database, 'pg_wal')))
    .map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return fileAt(path, names.get(relative(join(folder, database), path)) ?? path);
    });
}

const SELECT = `select relname as name, pg_relation_filepath(oid) as path from pg_class`;

const fileAt = (path: string, name: string): StoredFile => ({
  name: name.replace(/_\d{6}$/, ''),
  bytes: readFileSync(path),
});

/** How often these bytes are in others. */
export function countIn(bytes: Buffer, sought: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(sought); at !== -1; at = bytes.indexOf(sought, at + 1)) count++;
  return count;
}
