import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { docker, FOLDER, folderThere, project, type Version } from './engine.ts';

/** What the images are made from, as the engine sees it. */
export const IMAGES = `${folderThere('sources')}/test/containers/images`;

const services = () =>
  (parse(readFileSync('docker-compose.yml', 'utf8')) as { services: Record<string, { image: string }> }).services;

/** Makes what stands for the image of a service of docker-compose.yml. */
export async function standIn(service: 'postgres' | 'redis' | 'prometheus' | 'pinecone'): Promise<void> {
  const { image = '' } = services()[service] ?? {};
  const context = ['--build-context', `test=${folderThere('sources')}/test`];
  await docker('build', '--quiet', ...context, '--tag', image, `${IMAGES}/${service}`);
}

/** Makes what stands for the base image of the Dockerfile: Node of the same version, and its npm. */
async function standInForNode(): Promise<void> {
  const [, version = ''] = /^ARG NODE_IMAGE=node:([\d.]+)-trixie-slim$/m.exec(readFileSync('Dockerfile', 'utf8')) ?? [];
  const node = `node-linux-${process.arch}`;
  const packages = join(FOLDER, 'packages');
  rmSync(packages, { recursive: true, force: true });
  mkdirSync(packages);
  const npm = (...args: string[]) => execFileSync('npm', args, { cwd: packages, encoding: 'utf8' }).trim();
  // The newest line of npm that this Node comes with.
  npm('install', '--silent', '--no-save', '--ignore-scripts', '--prefix', '.', `${node}@${version}`, 'npm@10');
  cpSync(join(packages, 'node_modules', node, 'bin/node'), join(packages, 'bin/node'));
  // As on this machine.
  const { registry, cafile } = JSON.parse(npm('config', 'list', '--json')) as Record<string, string | null>;
  cpSync(cafile ?? '/etc/ssl/certs/ca-certificates.crt', join(packages, 'ca.crt'), { dereference: true });
  writeFileSync(join(packages, 'npmrc'), `registry=${registry}\ncafile=/usr/local/etc/ca.crt\naudit=false\n`);
  const context = ['--build-context', 'packages=/omp/packages'];
  await docker('build', '--quiet', ...context, '--tag', `node:${version}-trixie-slim`, `${IMAGES}/node`);
}

/** Builds the image of the gateway as operators do. */
export const build = (version: Version): Promise<string> =>
  project({}, 'omp', version).compose('build', '--quiet', 'gateway');

/** Everything that several files of tests use. */
export default async function prepare(): Promise<void> {
  await Promise.all([standInForNode().then(() => build('sources')), standIn('postgres')]);
}
