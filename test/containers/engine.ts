import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Client, clientOf } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';

/** Of the engine's process 1. */
const PID = process.env.TEST_ENGINE ?? '';
/** The same folder on the machine and in the engine. */
export const FOLDER = process.env.TEST_ENGINE_FOLDER ?? '';
const FOLDER_THERE = '/omp';

/** These sources, and those of the version before. */
export type Version = 'sources' | 'previous';
export const folderThere = (version: Version): string => `${FOLDER_THERE}/${version}`;

const NAMESPACES = ['-t', PID, '-m', '-n', '-p', '--', 'env', '-i', 'HOME=/root', `PATH=${process.env.PATH}`];

const run = promisify(execFile);

/** Runs a command in the engine's root file system. Resolves to its output; rejects with what it printed if it fails. */
export async function inEngine(...command: readonly string[]): Promise<string> {
  try {
    return (await run('nsenter', [...NAMESPACES, ...command], { maxBuffer: 1 << 28 })).stdout.trim();
  } catch (error) {
    const { stdout = '', stderr = '', code } = error as { stdout?: string; stderr?: string; code?: number };
    throw new Error(`${command.join(' ')}\nfailed with ${code}\n${stdout}${stderr}`);
  }
}

export const docker = (...args: readonly string[]): Promise<string> => inEngine('docker', ...args);

/** The containers of docker-compose.yml. */
export interface Project {
  compose(...args: readonly string[]): Promise<string>;
  /** Runs a line of the documents in the folder of docker-compose.yml. */
  shell(line: string): Promise<string>;
  /** A field of the first container of a service, as a template of `docker inspect`. */
  inspect(service: string, template: string): Promise<string>;
  logs(service: string): Promise<string>;
  /** The command line of the gateway in its container. */
  gateway(service: string, ...args: readonly string[]): Promise<string>;
  /** Removes the containers and volumes of all services. */
  end(): Promise<string>;
}

type Environment = Readonly<Record<string, string>>;

/** `env` is what an operator writes into `.env`. Projects with the same `name` are the same containers. */
export function project(env: Environment = {}, name = 'omp', version: Version = 'sources'): Project {
  const variables = Object.entries({ ...env, COMPOSE_PROJECT_NAME: name }).map(([key, value]) => `${key}=${value}`);
  const shell = (line: string, ...args: readonly string[]) =>
    inEngine('env', ...variables, 'sh', '-c', `cd ${folderThere(version)} && ${line}`, 'sh', ...args);
  const compose: Project['compose'] = (...args) => shell('exec docker compose "$@"', ...args);
  return {
    compose,
    shell,
    inspect: (service, template) => docker('inspect', `${name}-${service}-1`, '--format', template),
    logs: (service) => compose('logs', '--no-color', '--no-log-prefix', service),
    gateway: (service, ...args) => compose('exec', '-T', service, 'omp-gateway', ...args),
    end: () => compose('--profile', '*', 'down', '--volumes', '--timeout', '1'),
  };
}

/** A client of the gateway at a published port, with the key that there is by then. */
export const clientAt = (key: () => string | undefined = () => undefined, port = 8080): Client =>
  clientOf((path, init) => {
    const given = key();
    const headers = { ...init?.headers, ...(given !== undefined && { authorization: `Bearer ${given}` }) };
    return fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers });
  });

/** Resolves when the gateway at the port is ready. */
export const ready = (port = 8080): Promise<void> =>
  eventually(async () => {
    const { ok } = await fetch(`http://127.0.0.1:${port}/readyz`);
    if (!ok) throw new Error('not ready');
  });
