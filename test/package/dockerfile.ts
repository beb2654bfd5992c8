import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

export type Instruction = readonly [name: string, rest: string];

/** The instructions of a Dockerfile, continuation lines joined, comments left out. */
export const instructionsOf = (text: string): Instruction[] =>
  text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]);

interface Dockerfile {
  /** What follows the instruction, wherever it is used. */
  all(name: string): string[];
  /** The same of the last stage. */
  last(name: string): string[];
  readonly stages: ReadonlySet<string>;
  /** Images that are pulled. */
  readonly bases: readonly string[];
}

function read(text: string): Dockerfile {
  const instructions = instructionsOf(text);
  const pick = (among: readonly Instruction[]) => (name: string) =>
    among.flatMap(([each, rest]) => (each === name ? [rest] : []));
  const all = pick(instructions);
  const values = new Map(all('ARG').map((arg) => [arg.split('=')[0], arg.slice(arg.indexOf('=') + 1)]));
  const froms = all('FROM').map((from) =>
    from.replace(/^--platform=\S+ /, '').replace(/\$\{(\w+)\}/g, (_, name: string) => values.get(name) ?? ''),
  );
  const stages = new Set(froms.flatMap((from) => / AS (\S+)$/.exec(from)?.[1] ?? []));
  const bases = froms.map((from) => from.split(' ')[0] ?? '').filter((base) => !stages.has(base));
  return {
    all,
    last: pick(instructions.slice(instructions.findLastIndex(([name]) => name === 'FROM'))),
    stages,
    bases,
  };
}

/** What breaks a rule. */
type Rule = (file: Dockerfile) => readonly string[];

const runs =
  (pattern: RegExp): Rule =>
  (file) =>
    file.all('RUN').filter((run) => pattern.test(run));
const used =
  (...names: readonly string[]): Rule =>
  (file) =>
    names.flatMap(file.all);
const once = (values: readonly string[]) => (values.length === 1 ? [] : [`${values.length} of them`]);

/** The rules of hadolint by their numbers; hadolint is neither in npm nor in Debian. */
const RULES: Readonly<Record<string, Rule>> = {
  'DL3000 WORKDIR is absolute': ({ all }) => all('WORKDIR').filter((path) => !path.startsWith('/')),
  'DL3002 the last user is a number, and not root': ({ last }) =>
    [last('USER').at(-1) ?? 'none'].filter((user) => !/^[1-9]\d*:[1-9]\d*$/.test(user)),
  'DL3003 WORKDIR instead of cd': runs(/(^|&& *|; *)cd /),
  'DL3004 no sudo': runs(/\bsudo\b/),
  'DL3006, DL3007 an image is named with its exact version': ({ bases }) =>
    bases.filter((base) => !/:\d+\.\d+\.\d+(-[\w.-]+)?(@sha256:[0-9a-f]{64})?$/.test(base)),
  'DL3008, DL3018 nothing is installed from outside npm': runs(/\b(apt|apt-get|apk|curl|wget|pip) /),
  'DL3016 npm installs what is locked, and runs none of its scripts': runs(
    /\bnpm (install|i|add)\b|\bnpm ci(?!.* --ignore-scripts)/,
  ),
  'DL3020 COPY instead of ADD': used('ADD'),
  'DL3022 COPY --from names a stage': ({ all, stages }) =>
    all('COPY').filter((copy) => copy.startsWith('--from=') && !stages.has(/^--from=(\S+)/.exec(copy)?.[1] ?? '')),
  'DL3025 commands are JSON': ({ all }) =>
    [...all('CMD'), ...all('ENTRYPOINT'), ...all('HEALTHCHECK').map((check) => check.replace(/^.*? ?CMD /, ''))].filter(
      (command) => !/^\["[^\n]*"\]$/.test(command),
    ),
  'DL3057 one health check': ({ last }) => once(last('HEALTHCHECK')),
  'DL4000, DL3043 nothing that is outdated': used('MAINTAINER', 'ONBUILD'),
  'DL4003, DL4004 one command': ({ last }) => once([...last('CMD'), ...last('ENTRYPOINT')]),
  'DL4006 no pipes, which hide failures': runs(/[^|]\|[^|]/),
  'no secrets in layers': ({ all }) =>
    [...all('ENV'), ...all('ARG')].filter((each) => /^\w*(KEY|PASSWORD|SECRET|TOKEN)/.test(each)),
};

/** The rules that a Dockerfile breaks, with what breaks them. */
export function brokenRules(text: string): string[] {
  const file = read(text);
  return Object.entries(RULES).flatMap(([rule, breaks]) => breaks(file).map((what) => `${rule}: ${what}`));
}

/** A stage of a Dockerfile, built in a folder instead of an image. */
export interface Stage {
  /** Stands for the stage's root directory. */
  readonly root: string;
  readonly env: Record<string, string>;
  workdir: string;
  user: string;
  healthcheck: readonly string[];
  command: readonly string[];
}

/** What `.dockerignore` includes: the file excludes everything and then names exceptions. */
const contextOf = (file: string): string[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));

/**
 * Runs the instructions of the Dockerfile in `folder`, with this machine's Node instead of the base image. It needs no
 * container engine; layers, ownership and the base image are not tested. Returns the last stage. Throws for an
 * instruction that it does not know.
 */
export function carryOut(dockerfile: string, folder: string): Stage {
  const stages = new Map<string, Stage>();
  let stage = newStage(join(folder, 'none'));
  for (const [name, rest] of instructionsOf(readFileSync(dockerfile, 'utf8'))) {
    if (name === 'FROM') {
      const label = / AS (\w+)$/.exec(rest)?.[1] ?? 'last';
      stage = newStage(join(folder, label));
      stages.set(label, stage);
    } else instruct(stage, name, rest, stages);
  }
  return stage;
}

const newStage = (root: string): Stage => {
  mkdirSync(root, { recursive: true });
  return { root, env: {}, workdir: '/', user: 'root', healthcheck: [], command: [] };
};

function instruct(stage: Stage, name: string, rest: string, stages: ReadonlyMap<string, Stage>): void {
  const here = join(stage.root, stage.workdir);
  switch (name) {
    case 'WORKDIR':
      stage.workdir = rest;
      mkdirSync(join(stage.root, rest), { recursive: true });
      break;
    case 'ENV':
      stage.env[rest.slice(0, rest.indexOf('='))] = rest.slice(rest.indexOf('=') + 1);
      break;
    case 'COPY':
      copy(here, rest.split(' '), stages);
      break;
    case 'RUN':
      run(stage, rest, here);
      break;
    case 'USER':
      stage.user = rest;
      break;
    case 'HEALTHCHECK':
      stage.healthcheck = JSON.parse(rest.slice(rest.indexOf('['))) as string[];
      break;
    case 'ENTRYPOINT':
      stage.command = JSON.parse(rest) as string[];
      break;
    case 'LABEL':
    case 'EXPOSE':
    case 'STOPSIGNAL':
    case 'ARG':
      break;
    default:
      throw new Error(`${name} is not supported here`);
  }
}

function copy(here: string, words: readonly string[], stages: ReadonlyMap<string, Stage>): void {
  const from = words[0]?.startsWith('--from=') ? stages.get(words[0].slice('--from='.length)) : undefined;
  const paths = words.filter((word) => !word.startsWith('--'));
  const target = resolve(here, paths.at(-1) as string);
  for (const path of paths.slice(0, -1)) {
    if (path === '.') {
      for (const each of contextOf('.dockerignore')) cpSync(each, join(target, each), { recursive: true });
      continue;
    }
    // A file that .dockerignore excludes cannot be copied.
    if (!from && !contextOf('.dockerignore').includes(path)) throw new Error(`${path} is not in .dockerignore`);
    const source = from ? join(from.root, path) : path;
    // Docker puts a file into a folder, and the content of a folder into the target.
    const into = statSync(source).isDirectory() || !existsSync(target) ? target : join(target, basename(path));
    cpSync(source, into, { recursive: true, verbatimSymlinks: true });
  }
}

function run(stage: Stage, command: string, cwd: string): void {
  // Absolute paths lie below the stage's root here, and only root can give files away.
  const inRoot = command.replace(/ (\/\w+)/g, ` ${stage.root}$1`);
  const here = process.getuid?.() === 0 ? inRoot : inRoot.replace(/ && chown \S+ \S+/, '');
  execFileSync('sh', ['-c', here], {
    cwd,
    env: { ...process.env, ...stage.env },
    stdio: 'pipe',
  });
}
