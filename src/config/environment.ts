import { type Environment, type Input, type Near, nearest, type Reading, reasonOf, suggested } from './mistakes.ts';
import { CONFIG_FILE, coerce, SECTIONS, SETTINGS, type Setting } from './schema-reader.ts';

/** The settings that environment variables give, without secrets. An empty variable counts as unset. */
export function fromEnvironment(env: Environment): Map<string, Input> {
  const inputs = new Map<string, Input>();
  for (const { key, env: name, type, secret } of SETTINGS) {
    const written = env[name];
    if (!written || secret || isInjected(name, written)) continue;
    inputs.set(key, { value: coerce(type, written), name, written, origin: 'environment' });
  }
  return inputs;
}

/** A secret from its variable, or from the file that `<variable>_FILE` names. Reads that file: call it only for secrets in use. */
export function secretFromEnvironment(
  { env: name, type }: Setting,
  { env, readFile, mistakes }: Reading,
): Input | undefined {
  const written = env[name];
  const path = env[`${name}_FILE`];
  if (!path) return written ? { value: coerce(type, written), name, written, origin: 'environment' } : undefined;
  const input = { value: undefined, name: `${name}_FILE`, written: path, origin: 'environment' } as const;
  if (written) {
    mistakes.push(`${name} and ${name}_FILE are both set; keep one of them`);
    return input;
  }
  try {
    const value = readFile(path).replace(/\r?\n$/, '');
    if (value !== '') return { ...input, value: coerce(type, value) };
    mistakes.push(`${name}_FILE names ${path}, which is empty`);
  } catch (error) {
    mistakes.push(`${name}_FILE names ${path}, which cannot be read: ${reasonOf(error)}`);
  }
  return input;
}

/** Variables of commands, hooks and the programs of others, which may run in the same environment. */
const OF_CLIENTS = ['OMP_URL', 'OMP_KEY', 'OMP_FROM_KEY', 'OMP_TO_KEY', 'OMP_USER_ID'];

const KNOWN: ReadonlySet<string> = new Set([
  CONFIG_FILE.env,
  ...OF_CLIENTS,
  ...SETTINGS.flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env])),
]);

/** OMP_POSTGRES_URL and OMP_DATABASE_URL also mean `postgres.url`, whose variable is DATABASE_URL. */
const SPELLINGS = [
  [CONFIG_FILE.env, CONFIG_FILE.env] as const,
  ...SETTINGS.flatMap(({ key, env }) => [
    [env, env] as const,
    [`OMP_${env}`, env] as const,
    [`OMP_${key.replace('.', '_')}`, env] as const,
  ]),
];

/**
 * Kubernetes injects variables for every service: a service `omp-gateway` becomes OMP_GATEWAY_SERVICE_HOST,
 * OMP_GATEWAY_PORT and more; a service `omp` sets OMP_PORT to an address such as tcp://10.0.0.1:8080.
 */
const isInjected = (name: string, value: string): boolean =>
  /^OMP_(\w+_)?(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP|SCTP))/.test(name) ||
  (/^OMP_(\w+_)?PORT$/.test(name) && /^(tcp|udp|sctp):\/\//.test(value));

/** OpenMP, which numeric libraries use, has the same prefix. */
const OPENMP =
  /^OMP_(AFFINITY_FORMAT|ALLOCATOR|CANCELLATION|DEBUG|DEFAULT_DEVICE|DISPLAY_(AFFINITY|ENV)|DYNAMIC|MAX_(ACTIVE_LEVELS|TASK_PRIORITY)|NESTED|NUM_(TEAMS|THREADS)|PLACES|PROC_BIND|SCHEDULE|STACKSIZE|TARGET_OFFLOAD|TEAMS_THREAD_LIMIT|THREAD_LIMIT|TOOL(_LIBRARIES|_VERBOSE_INIT)?|WAIT_POLICY)$/;

/** Prefixes that only the gateway uses: `OMP_MAPPING_`, `OMP_POSTGRES_` and so on. */
const OURS = [...SECTIONS].map((section) => `OMP_${section.toUpperCase()}_`);
/** In a short name, two edits may make another word (`OMP_HOME`, `OMP_HOST`); in a long one, a plural takes three. */
const isTypo = ({ name, edits }: Near): boolean => edits <= (name.length < 12 ? 1 : name.length < 16 ? 2 : 3);

/**
 * `OMP_` variables that are not settings. Typos and names with a prefix of the gateway are mistakes: a mapping or a key that is
 * silently ignored would serve the wrong rows, or everyone. Other names get a warning, since other software may use the
 * prefix. `referenced`: variables that the configuration file uses.
 */
export function unknownVariables(env: Environment, referenced: ReadonlySet<string>) {
  const mistakes: string[] = [];
  const warnings: string[] = [];
  for (const [name, value = ''] of Object.entries(env)) {
    if (!name.startsWith('OMP_') || KNOWN.has(name) || OPENMP.test(name) || isInjected(name, value)) continue;
    if (referenced.has(name)) continue;
    const prefix = OURS.find((each) => name.startsWith(each));
    if (prefix !== undefined) {
      mistakes.push(`${name} is not a setting${ofSection(name, prefix)}`);
      continue;
    }
    const near = nearest(name, SPELLINGS);
    if (near && isTypo(near)) mistakes.push(`${name} is not a setting${suggested(near)}`);
    else warnings.push(`${name} is not a setting and is ignored${suggested(near)}`);
  }
  return { mistakes, warnings };
}

/** A suggestion from the same section, else all its settings. The prefix is not compared: it would make all of them look near. */
function ofSection(name: string, prefix: string): string {
  const rest = (spelling: string) => spelling.slice(prefix.length);
  const there = SPELLINGS.filter(([spelling]) => spelling.toUpperCase().startsWith(prefix));
  const near = nearest(
    rest(name),
    there.map(([spelling, meant]) => [rest(spelling), meant] as const),
  );
  return suggested(near) || `; there is ${[...new Set(there.map(([, meant]) => meant))].join(', ')}`;
}
