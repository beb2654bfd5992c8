import { readdirSync, rmSync, statSync } from 'node:fs';
import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type pg from 'pg';
import type { Finding } from '#contract';
import { runningEngine, startEngine } from '../embedded/engine.ts';
import { databaseIn, examineFolder, onFolder } from '../embedded/folder.ts';
import { type FolderLock, lockIfAny } from '../embedded/lock.ts';
import { ok, problem, warning } from './findings.ts';

/** What is larger is not copied. */
const MOST_BYTES = 4 * 1024 ** 3;

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

interface Look {
  readonly findings: Finding[];
  /** How to reach what can be looked at. Without it the findings say why, and what was not looked at. */
  readonly engine?: { readonly config: pg.ClientConfig; close(): Promise<void> };
}

/**
 * The embedded Postgres of the gateway that runs, or else one on a copy of its files, since no engine runs without writing
 * into its folder.
 */
export async function openEmbedded(dataDir: string): Promise<Look> {
  const root = resolve(dataDir);
  let lock: FolderLock | undefined;
  try {
    const config = runningEngine(root);
    if (config)
      return {
        findings: [ok('connection', `a gateway runs on the data folder ${root}`)],
        engine: { config, close: async () => {} },
      };
    // Keeps gateways away from what is being copied.
    lock = lockIfAny(root);
    if ((await onFolder(root, () => examineFolder(root))) === 'nothing') {
      const message = `no database in ${root} yet; the gateway makes an embedded one there at its first start`;
      return { findings: [ok('connection', message)] };
    }
    return await openCopy(root);
  } catch (error) {
    return { findings: [problem('connection', error instanceof Error ? error.message : String(error))] };
  } finally {
    lock?.release();
  }
}

async function openCopy(root: string): Promise<Look> {
  const folder = databaseIn(root);
  const copy = await mkdtemp(join(tmpdir(), 'omp-doctor-'));
  const remove = () => rmSync(copy, { recursive: true, force: true });
  try {
    const bytes = sizeOf(folder);
    if (bytes > MOST_BYTES) {
      remove();
      const size = `${Math.round(bytes / 1024 ** 3)} GiB`;
      return {
        findings: [
          warning(
            'connection',
            `the embedded database in ${root} was not looked at: it would have to be copied, and takes ${size}`,
          ),
        ],
      };
    }
    await cp(folder, join(copy, 'postgres'), { recursive: true });
    const engine = await startEngine(copy, SILENT);
    return {
      findings: [ok('connection', `the embedded Postgres in ${root} starts (on a copy, to leave it as it is)`)],
      engine: {
        ...engine,
        async close() {
          await engine.close();
          remove();
        },
      },
    };
  } catch (error) {
    remove();
    throw new Error(error instanceof Error ? error.message.replaceAll(copy, root) : String(error), { cause: error });
  }
}

const sizeOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
