import { type Near, nearest, suggested } from './did-you-mean.ts';
import { type Environment, type Given, type Reading, reasonOf } from './given.ts';
import { CONFIG_FILE, coerce, SECTIONS, SETTINGS, type Setting } from './settings.ts';

/** The settings that environment variables give, secrets apart. An empty variable counts as unset. */
export function fromEnvironment(env: Environment): Map<string, Given> {
  const given = new Map<string, Given>();
  for (const { key, env: name, type, secret } of SETTINGS) {
    const written = env[name];
    if (!written || secret || isInjected(name, written)) continue;
    given.set(key, { value: coerce(type, written), name, written, origin: 'environment' });
  }
  return given;
}

/** A secret given by its variable or by the file that `<variable>_FILE` names; files are read here, so ask only for secrets in use. */
export function secretFromEnvironment(
  { env: name, type }: Setting,
  { env, readFile, mistakes }: Reading,
): Given | undefined {
  const written = env[name];
  const path = env[`${name}_FILE`];
  if (!path) return written ? { value: coerce(type, written), name, written, origin: 'environment' } : undefined;
  const given = { value: undefined, name: `${name}_FILE`, written: path, origin: 'environment' } as const;
  if (written) {
    mistakes.push(`${name} and ${name}_FILE are both set; keep one of them`);
    return given;
  }
  try {
    const value = readFile(path).replace(/\r?\n$/, '');
    if (value !== '') return { ...given, value: coerce(type, value) };
    mistakes.push(`${name}_FILE names ${path}, which is empty`);
  } catch (error) {
    mistakes.push(`${name}_FILE names ${path}, which cannot be read: ${reasonOf(error)}`);
  }
  return given;
}

const KNOWN: ReadonlySet<string> = new Set([
  CONFIG_FILE.env,
  ...SETTINGS.flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env])),
]);

/** `postgres.url` is meant by OMP_POSTGRES_URL too, though its variable is DATABASE_URL. */
const SPELLINGS = [
  [CONFIG_FILE.env, CONFIG_FILE.env] as const,
  ...SETTINGS.flatMap(({ key, env }) => [[env, env] as const, [`OMP_${key.replace('.', '_')}`, env] as const]),
];

/**
 * Kubernetes describes every service to every container: a service `omp-gateway` becomes OMP_GATEWAY_SERVICE_HOST,
 * OMP_GATEWAY_PORT and more; one called `omp` even gives OMP_PORT an address such as tcp://10.0.0.1:8080.
 */
const isInjected = (name: string, value: string): boolean =>
  /^OMP_(\w+_)?(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP|SCTP))/.test(name) ||
  (/^OMP_(\w+_)?PORT$/.test(name) && /^(tcp|udp|sctp):\/\//.test(value));

/** OpenMP, common in numeric libraries, has the same prefix. */
const OPENMP =
  /^OMP_(AFFINITY_FORMAT|ALLOCATOR|CANCELLATION|DEBUG|DEFAULT_DEVICE|DISPLAY_(AFFINITY|ENV)|DYNAMIC|MAX_(ACTIVE_LEVELS|TASK_PRIORITY)|NESTED|NUM_(TEAMS|THREADS)|PLACES|PROC_BIND|SCHEDULE|STACKSIZE|TARGET_OFFLOAD|TEAMS_THREAD_LIMIT|THREAD_LIMIT|TOOL(_LIBRARIES|_VERBOSE_INIT)?|WAIT_POLICY)$/;

/** What begins so is meant for us: `OMP_MAPPING_`, `OMP_POSTGRES_` and so on. */
const OURS = [...SECTIONS].map((section) => `OMP_${section.toUpperCase()}_`);
/** What counts as a typo: in a short name two edits may make another word (`OMP_HOME`, `OMP_HOST`). */
const isTypo = ({ name, edits }: Near): boolean => edits <= (name.length < 12 ? 1 : 2);

/**
 * `OMP_` variables that are no setting. Mistakes: those meant for us by their beginning or but for a typo, since a mapping or a
 * key that is silently left out serves the wrong rows, or everybody. Others may use the prefix too: they get a warning.
 * `referenced`: variables that the configuration file uses.
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

/** What may be meant within a section, else all there is: the prefix alone would make everything in it look near. */
function ofSection(name: string, prefix: string): string {
  const rest = (spelling: string) => spelling.slice(prefix.length);
  const there = SPELLINGS.filter(([spelling]) => spelling.toUpperCase().startsWith(prefix));
  const near = nearest(
    rest(name),
    there.map(([spelling, meant]) => [rest(spelling), meant] as const),
  );
  return suggested(near) || `; there is ${[...new Set(there.map(([, meant]) => meant))].join(', ')}`;
}
