import { closeSync, existsSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { tryLock } from 'fs-native-extensions';
import type { Finding } from '#contract';
import { type Engine, startEngine } from '../embedded/engine.ts';
import { ok, problem, warning } from './findings.ts';

/** What is larger is not copied. */
const MOST_BYTES = 4 * 1024 ** 3;

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

/**
 * Starts the embedded Postgres on a copy of its files, since no engine runs without writing into its folder. Without an
 * engine the findings say why, and what was not looked at.
 */
export async function openCopy(dataDir: string): Promise<{ findings: Finding[]; engine?: Engine }> {
  const root = resolve(dataDir);
  const folder = join(root, 'postgres');
  if (!existsSync(join(folder, 'PG_VERSION'))) {
    return {
      findings: [
        ok('connection', `no database in ${root} yet; the gateway makes an embedded one there at its first start`),
      ],
    };
  }
  const lock = takeLock(join(root, 'lock'));
  if (lock === 'taken') {
    return {
      findings: [
        ok('connection', `a gateway runs on the data folder ${root}`),
        warning(
          'connection',
          'the embedded database belongs to that gateway alone and was not looked at: stop it first',
        ),
      ],
    };
  }
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
    const reason = error instanceof Error ? error.message.replaceAll(copy, root) : String(error);
    return { findings: [problem('connection', reason)] };
  } finally {
    lock?.();
  }
}

/** The lock of `lockFolder`, without making its file. Undefined: there is none, and so no gateway. */
function takeLock(path: string): (() => void) | 'taken' | undefined {
  if (!existsSync(path)) return undefined;
  const file = openSync(path, 'r+');
  if (tryLock(file)) return () => closeSync(file);
  closeSync(file);
  return 'taken';
}

const sizeOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
