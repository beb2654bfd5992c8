import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { loadConfig } from '../../src/config/load.ts';
import { SETTINGS } from '../../src/config/schema-reader.ts';
import { CLOSE_MS } from '../../src/shutdown.ts';

const FOLDER = 'deploy/kubernetes';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> };
}

/** The manifests by their files. */
const manifests: ReadonlyMap<string, Manifest> = new Map(
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

/** What the API server would reject, with kubectl's strict validation: wrong types and values, missing and unknown fields. */
function complaints(manifest: Manifest): string[] {
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

interface Selector {
  readonly matchLabels: Record<string, string>;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold: number;
}

interface Container {
  readonly image: string;
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly envFrom: readonly unknown[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly resources: Record<'requests' | 'limits', Record<string, string>>;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

interface Pod {
  readonly serviceAccountName: string;
  readonly terminationGracePeriodSeconds: number;
  readonly topologySpreadConstraints: readonly { readonly labelSelector: Selector }[];
  readonly containers: readonly [Container];
  readonly volumes: readonly {
    readonly name: string;
    readonly secret?: { readonly secretName: string };
    readonly configMap?: { readonly name: string; readonly optional: boolean };
    readonly emptyDir?: { readonly sizeLimit: string };
  }[];
}

const of = <Rest>(file: string) => manifests.get(file) as Manifest & Rest;
const kustomization = of<{ resources: string[]; namespace: string; images: Record<string, string>[] }>(
  'kustomization.yaml',
);
const configMap = of<{ data: Record<string, string> }>('configmap.yaml');
const secret = of<{ stringData: Record<string, string> }>('secret.example.yaml');
const deployment = of<{
  spec: {
    replicas?: number;
    selector: Selector;
    strategy: unknown;
    template: { metadata: { labels: Record<string, string>; annotations: Record<string, string> }; spec: Pod };
  };
}>('deployment.yaml');
const service = of<{ spec: { selector: Record<string, string>; ports: { name: string; targetPort: string }[] } }>(
  'service.yaml',
);
const budget = of<{ spec: { selector: Selector; maxUnavailable: number } }>('poddisruptionbudget.yaml');
const autoscaler = of<{ spec: { scaleTargetRef: unknown; minReplicas: number; maxReplicas: number } }>(
  'horizontalpodautoscaler.yaml',
);
const policy = of<{
  spec: {
    podSelector: Selector;
    policyTypes: string[];
    ingress: { ports: { port: string | number }[] }[];
    egress: { to?: { ipBlock?: { cidr: string } }[]; ports: { port: number }[] }[];
  };
}>('networkpolicy.yaml');

const { template } = deployment.spec;
const pod = template.spec;
const [container] = pod.containers;
const labels = { 'app.kubernetes.io/name': 'omp-gateway' };

/** As the pod gives it to the gateway, with the files of the secret in their place. */
const mounted = pod.volumes.map(({ name }) => container.volumeMounts.find((mount) => mount.name === name)?.mountPath);
const { config, warnings } = loadConfig({
  env: { OMP_HOST: '0.0.0.0', ...configMap.data },
  readFile: (path) => {
    const key = path.startsWith(`${mounted[0]}/`) ? path.slice(`${mounted[0]}/`.length) : '';
    if (secret.stringData[key] === undefined) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
    return secret.stringData[key];
  },
});

describe('the manifests', () => {
  const files = [...manifests.keys()].filter((file) => file !== 'kustomization.yaml');

  it('are all applied together, except the example of a secret', () => {
    expect(kustomization).toMatchObject({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization' });
    expect([...kustomization.resources, 'secret.example.yaml'].sort()).toEqual(files.sort());
    expect(kustomization.images).toEqual([
      { name: 'omp-gateway', newName: expect.any(String), newTag: packageJson.version },
    ]);
    expect(container.image).toBe(`omp-gateway:${packageJson.version}`);
    expect(of('namespace.yaml').metadata.name).toBe(kustomization.namespace);
    expect(secret.metadata.namespace).toBe(kustomization.namespace);
  });

  it.each(files)('%s follows the schemas of Kubernetes', (file) => {
    expect(complaints(of(file))).toEqual([]);
  });

  it.each<[string, string, (manifest: string) => string]>([
    ['deployment.yaml', 'property selector', (text) => text.replace('"selector"', '"selectors"')],
    ['deployment.yaml', 'readinesProbe', (text) => text.replace('readinessProbe', 'readinesProbe')],
    ['configmap.yaml', '/data/OMP_METRICS_PORT', (text) => text.replace('"9464"', '9464')],
  ])('%s with a mistake in %s is rejected', (file, place, plant) => {
    const text = JSON.stringify(of(file));
    expect(plant(text)).not.toBe(text);
    expect(complaints(JSON.parse(plant(text)) as Manifest).join()).toContain(place);
  });

  it('select the pods of the deployment, and no others', () => {
    expect(template.metadata.labels).toEqual(labels);
    for (const each of manifests.values())
      if (each.kind !== 'Kustomization' && each.kind !== 'Namespace')
        expect(each.metadata).toMatchObject({ name: 'omp-gateway', labels });
    const selectors = [
      deployment.spec.selector,
      budget.spec.selector,
      policy.spec.podSelector,
      ...pod.topologySpreadConstraints.map(({ labelSelector }) => labelSelector),
    ];
    for (const selector of selectors) expect(selector).toEqual({ matchLabels: labels });
    expect(service.spec.selector).toEqual(labels);
  });

  it('name each other', () => {
    expect(container.envFrom).toEqual([{ configMapRef: { name: configMap.metadata.name } }]);
    expect(pod.volumes.flatMap((volume) => volume.secret?.secretName ?? [])).toEqual([secret.metadata.name]);
    expect(pod.serviceAccountName).toBe(of('serviceaccount.yaml').metadata.name);
    const { apiVersion, kind, metadata } = deployment;
    expect(autoscaler.spec.scaleTargetRef).toEqual({ apiVersion, kind, name: metadata.name });
  });
});

describe('the pods', () => {
  it('have settings that exist, and a configuration that the gateway accepts', () => {
    const known = SETTINGS.flatMap(({ env, secret: isSecret }) => (isSecret ? [env, `${env}_FILE`] : [env]));
    expect(known).toEqual(expect.arrayContaining(Object.keys(configMap.data)));
    expect(warnings).toEqual([]);
    expect(config.auth.mode).toBe('required');
    expect(config.postgres.url).toBe(secret.stringData['database-url']);
    // A ConfigMap holds no secrets.
    for (const { env, secret: isSecret } of SETTINGS) if (isSecret) expect(configMap.data).not.toHaveProperty(env);
  });

  it('listen on the ports that are named', () => {
    const ports = Object.fromEntries(container.ports.map(({ name, containerPort }) => [name, containerPort]));
    expect(ports).toEqual({ http: config.port, metrics: config.metrics.port });
    expect(config.metrics.host).toBe('0.0.0.0');
    expect(service.spec.ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
    expect(policy.spec.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(policy.spec.ingress.flatMap((rule) => rule.ports.map(({ port }) => port))).toEqual(['http', 'metrics']);
    expect(template.metadata.annotations).toEqual({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': String(config.metrics.port),
      'prometheus.io/path': '/metrics',
    });
  });

  it('are restarted only for a fault of their own, and get no requests while they are not ready', () => {
    const { startupProbe, livenessProbe, readinessProbe } = container;
    expect(startupProbe.httpGet).toEqual({ path: '/livez', port: 'http' });
    expect(livenessProbe.httpGet).toEqual({ path: '/livez', port: 'http' });
    expect(readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'http' });
    // The readiness probe fails before a stopping pod stops serving.
    const noticed =
      readinessProbe.failureThreshold * readinessProbe.periodSeconds + (readinessProbe.timeoutSeconds ?? 1);
    expect(noticed * 1_000).toBeLessThan(config.shutdown_delay_ms);
  });

  it('have the time to stop that their settings require, and are replaced one by one', () => {
    const { shutdown_delay_ms, shutdown_timeout_ms } = config;
    // A worker closes everything, then its primary does.
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(
      shutdown_delay_ms + shutdown_timeout_ms + 2 * CLOSE_MS + 2_000,
    );
    expect(deployment.spec.strategy).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
    });
    expect(deployment.spec.replicas).toBeUndefined();
    expect(autoscaler.spec.minReplicas).toBeGreaterThanOrEqual(2);
    expect(autoscaler.spec.maxReplicas).toBeGreaterThan(autoscaler.spec.minReplicas);
    expect(budget.spec.maxUnavailable).toBe(1);
  });

  it('reach databases, their poolers, Redis, collectors, and both kinds of DNS', () => {
    const [dns, services] = policy.spec.egress;
    expect(dns?.to?.flatMap(({ ipBlock }) => ipBlock?.cidr ?? [])).toEqual(['169.254.20.10/32']);
    expect(dns?.ports.map(({ port }) => port)).toEqual([53, 53]);
    expect(services?.ports.map(({ port }) => port)).toEqual([5432, 6432, 6543, 6379, 4318, 443]);
    expect(services?.to).toBeUndefined();
  });

  it('find the certificate of a private authority where the example names it, and start without one', () => {
    const { name, configMap: from } = pod.volumes.find((volume) => volume.configMap) ?? {};
    expect(from?.optional).toBe(true);
    const mount = container.volumeMounts.find((each) => each.name === name);
    const example = readFileSync(join(FOLDER, 'secret.example.yaml'), 'utf8');
    expect(example).toContain(`configmap -n omp ${from?.name} --from-file=ca.crt`);
    expect(example).toContain(`sslrootcert=${mount?.mountPath}/ca.crt`);
  });

  it('leave the database enough connections', () => {
    // Of the 100 that a server has by default, for all replicas and the one on top that a rolling update makes; two more
    // count requests, one cancels statements.
    expect((autoscaler.spec.maxReplicas + 1) * (config.postgres.connections + 3)).toBeLessThan(90);
  });

  it('have the least privileges that a pod can have', () => {
    expect(of('namespace.yaml').metadata.labels).toHaveProperty('pod-security.kubernetes.io/enforce', 'restricted');
    const [, user] = /^USER (\d+):\1$/m.exec(readFileSync('Dockerfile', 'utf8')) ?? [];
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: Number(user),
        runAsGroup: Number(user),
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    expect(container).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
    });
    expect(container.resources.requests).toHaveProperty('cpu');
    for (const kind of ['requests', 'limits'] as const) expect(container.resources[kind]).toHaveProperty('memory');
    const writable = container.volumeMounts.filter(({ readOnly }) => !readOnly);
    // For commands; the gateway itself stores nothing in the pod.
    expect(writable.map(({ mountPath }) => mountPath)).toEqual(['/tmp']);
    expect(pod.volumes.find(({ name }) => name === writable[0]?.name)?.emptyDir).toHaveProperty('sizeLimit');
  });
});
