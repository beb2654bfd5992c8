import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

const FOLDER = 'deploy/kubernetes';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> };
}

/** The manifests by their files. */
export const manifests: ReadonlyMap<string, Manifest> = new Map(
  readdirSync(FOLDER)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => {
      const documents = parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8'));
      const [document] = documents;
      if (documents.length !== 1 || document === undefined || document.errors.length + document.warnings.length > 0)
        throw new Error(`${file} is not one document of YAML`);
      return [file, document.toJS() as Manifest];
    }),
);

/**
 * What the API server would say against a manifest, by the schemas of Kubernetes: wrong types and values, what is missing,
 * and fields that do not exist, which it refuses since kubectl asks for strict validation.
 */
export function complaints(manifest: Manifest): string[] {
  const { apiVersion, kind } = manifest;
  const Model = modelsOf(apiVersion)[kind];
  if (!Model) return [`there is no ${kind} in ${apiVersion}`];
  const unread = new Set<string>();
  const watched = watch(manifest, '', unread);
  try {
    Model.prototype.validate.call(watched);
  } catch (error) {
    return [(error as Error).message];
  }
  return [...unread].map((path) => `${path} is no field of ${kind}`);
}

type Models = Readonly<Record<string, { readonly prototype: { validate(): void } }>>;

function modelsOf(apiVersion: string): Models {
  try {
    return createRequire(import.meta.url)(`kubernetes-models/${apiVersion}`) as Models;
  } catch {
    return {};
  }
}

/** A compiled schema looks at every field that it knows, and at no other. */
function watch<T extends object>(value: T, path: string, unread: Set<string>): T {
  const inner = new Map<PropertyKey, unknown>();
  for (const [key, each] of Object.entries(value)) {
    unread.add(`${path}/${key}`);
    inner.set(key, typeof each === 'object' && each !== null ? watch(each, `${path}/${key}`, unread) : each);
  }
  return new Proxy(value, {
    get(target, key, receiver) {
      if (!inner.has(key)) return Reflect.get(target, key, receiver);
      unread.delete(`${path}/${String(key)}`);
      return inner.get(key);
    },
  });
}
