import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PROVIDER_VERSIONS, type ProviderModule } from '#contract';
import { version } from './package.ts';

/**
 * Loads a provider of others: a path, or the name of a package that is installed in `folder` or a folder above it. Rejects with a
 * message an operator can act on.
 */
export async function loadProvider(provider: string, folder: string): Promise<ProviderModule> {
  const isPath = /^\.{0,2}\//.test(provider);
  const file = isPath ? fileAt(resolve(folder, provider)) : fileOfPackage(provider, folder);
  if (file === undefined || !existsSync(file)) {
    const reason = isPath
      ? `there is no file ${file ?? resolve(folder, provider)}`
      : `no package of this name, with an entry to import, is installed in ${folder} or a folder above it${existsSync(resolve(folder, provider)) ? `; a path begins with ./, such as ./${provider}` : ''}`;
    throw new Error(`the provider ${provider} is not found: ${reason}`);
  }
  const exports: { readonly default?: unknown } = await import(pathToFileURL(file).href).catch((error: unknown) => {
    throw new Error(`the provider ${provider} cannot be loaded from ${file}: ${reasonOf(error)}`);
  });
  return requireProvider(exports.default, provider);
}

/** The module, if `defineProvider` has made it for a version of the contract that is supported. Throws a message that names the versions otherwise. */
function requireProvider(module: unknown, provider: string): ProviderModule {
  const { specVersion, name, open } = (module ?? {}) as Partial<ProviderModule>;
  if (typeof open !== 'function') {
    throw new Error(`the provider ${provider} must end with "export default defineProvider({ … })"`);
  }
  if (!PROVIDER_VERSIONS.some((one) => one === specVersion)) {
    throw new Error(
      `the provider ${provider} is written for version ${specVersion} of the contract (specVersion), and omp-gateway ${version()} supports ${PROVIDER_VERSIONS.join(' and ')}; install a release of the one that fits the other`,
    );
  }
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,62}$/.test(name)) {
    throw new Error(`the provider ${provider} must have a name of lower-case letters, digits and hyphens`);
  }
  return module as ProviderModule;
}

function reasonOf(error: unknown): string {
  const { code, message = String(error) } = error as NodeJS.ErrnoException;
  if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes("'omp-gateway'")) return message;
  return `${message}; install omp-gateway beside the provider`;
}

/** `import` would look for packages beside this file, and `require` refuses those that can only be imported. */
function fileOfPackage(name: string, folder: string): string | undefined {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const found = join(at, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return entryOf(found);
    if (at === dirname(at)) return undefined;
  }
}

/** A folder stands for the entry of its package. */
const fileAt = (path: string): string | undefined =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ? entryOf(path) : path;

function entryOf(folder: string): string | undefined {
  const file = join(folder, 'package.json');
  const { exports, main = 'index.js' } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  const entry = exports === undefined ? main : targetOf(exports['.'] ?? exports);
  return entry === undefined ? undefined : join(folder, entry);
}

const CONDITIONS = ['node', 'import', 'module-sync', 'default'];

/** What a target in `exports` of package.json means to `import`: a path, a list, or an object of conditions. */
function targetOf(target: unknown): string | undefined {
  if (typeof target === 'string') return target;
  if (typeof target !== 'object' || target === null) return undefined;
  const choices = Array.isArray(target)
    ? target
    : Object.entries(target).flatMap(([condition, value]) => (CONDITIONS.includes(condition) ? [value] : []));
  return choices.map(targetOf).find((path) => path !== undefined);
}
