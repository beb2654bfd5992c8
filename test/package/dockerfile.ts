import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { instructionsOf } from './dockerfile-rules.ts';

/** A stage of a Dockerfile, laid out under a folder of this machine instead of in an image. */
export interface Stage {
  /** Stands for the stage's root directory. */
  readonly root: string;
  readonly env: Record<string, string>;
  workdir: string;
  user: string;
  volumes: readonly string[];
  healthcheck: readonly string[];
  command: readonly string[];
}

/** What `.dockerignore` lets through: the file keeps everything out and then names what comes in. */
const contextOf = (file: string): string[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));

/**
 * Carries out the project's Dockerfile in `folder`, with this machine's Node in the place of the base image: no engine
 * is needed, and that is why layers, ownership and the base image itself are not tried. Returns the last stage.
 * Knows the instructions that the file uses and throws at any other.
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
  return { root, env: {}, workdir: '/', user: 'root', volumes: [], healthcheck: [], command: [] };
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
    case 'VOLUME':
      stage.volumes = [...stage.volumes, rest];
      break;
    case 'HEALTHCHECK':
      stage.healthcheck = JSON.parse(rest.slice(rest.indexOf('['))) as string[];
      break;
    case 'CMD':
      stage.command = JSON.parse(rest) as string[];
      break;
    case 'LABEL':
    case 'EXPOSE':
    case 'STOPSIGNAL':
    case 'ARG':
      break;
    default:
      throw new Error(`${name} is an instruction this test does not know`);
  }
}

function copy(here: string, words: readonly string[], stages: ReadonlyMap<string, Stage>): void {
  const from = words[0]?.startsWith('--from=') ? stages.get(words[0].slice('--from='.length)) : undefined;
  const paths = words.slice(from ? 1 : 0);
  const target = resolve(here, paths.at(-1) as string);
  for (const path of paths.slice(0, -1)) {
    if (path === '.') {
      for (const each of contextOf('.dockerignore')) cpSync(each, join(target, each), { recursive: true });
      continue;
    }
    // A file that .dockerignore keeps out cannot be copied.
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
