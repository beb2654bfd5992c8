import { execFile, execFileSync, spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { temporaryFolder, watch } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { freshUser } from '../support/subject.ts';
import { carryOut } from './dockerfile.ts';

const REGISTRY = process.env.TEST_TARBALL !== undefined;
const NO_REGISTRY = 'TEST_TARBALL is not set; running the Dockerfile needs the npm registry too';

interface Bom {
  readonly bomFormat: string;
  readonly components: readonly { readonly name: string; readonly version: string }[];
}

describe('the image', () => {
  test('the result of the Dockerfile serves, is healthy, and has no development tools', async ({ skip }) => {
    skip(!REGISTRY, NO_REGISTRY);
    const folder = temporaryFolder();
    const image = carryOut('Dockerfile', folder);
    const [uid = 0, gid = 0] = image.user.split(':').map(Number);
    expect(Math.min(uid, gid)).toBeGreaterThan(0);
    expect(image.env).toMatchObject({ NODE_ENV: 'production', OMP_HOST: '0.0.0.0' });
    // Node gets the signals itself: no shell, no npm in between.
    const [program, main = '', ...more] = image.command;
    expect({ program, more }).toEqual({ program: 'node', more: [] });

    const app = join(image.root, image.workdir);
    const modules = readdirSync(join(app, 'node_modules'));
    for (const name of Object.keys(packageJson.dependencies)) expect(modules).toContain(name.split('/')[0]);
    for (const name of ['typescript', 'vitest', 'tsx', 'swagger-ui-dist', 'playwright-core'])
      expect(modules).not.toContain(name);
    const bom = JSON.parse(readFileSync(join(app, 'sbom.cdx.json'), 'utf8')) as Bom;
    expect(bom.bomFormat).toBe('CycloneDX');
    const listed = bom.components.map(({ name }) => name);
    expect(listed).toEqual(expect.arrayContaining(Object.keys(packageJson.dependencies)));
    // The model's package asks npm for the other one, which the gateway does not use.
    const development = Object.keys(packageJson.devDependencies).filter((name) => name !== '@energetic-ai/core');
    for (const name of development) expect(listed).not.toContain(name);

    // As in the container, but for the folders' places and a free port: a user without a name or a home, who may write
    // into the volume and, in the place of /tmp, into an empty folder.
    const data = join(image.root, String(image.env.OMP_DATA_DIR));
    const tmp = temporaryFolder();
    const owner = process.getuid?.() === 0 ? { uid, gid } : {};
    if ('uid' in owner) execFileSync('chown', [`${uid}:${gid}`, tmp]);
    chmodSync(folder, 0o755);
    cpSync('test/containers/provider', join(app, 'providers/mounted'), { recursive: true });
    execFileSync('chmod', ['-R', 'a-w', app]);
    const gateway = watch(
      spawn(process.execPath, [join(image.root, main)], {
        ...owner,
        cwd: app,
        env: { PATH: process.env.PATH, ...image.env, OMP_AUTH: 'open', OMP_DATA_DIR: data, OMP_PORT: '0', TMPDIR: tmp },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
    const [, port = ''] = await gateway.output(/ listens on http:\/\/[^"\s]+:(\d+)/);
    const reach = `http://127.0.0.1:${port}`;
    const client = clientOf((path, init) => fetch(reach + path, init));
    const user_id = freshUser();
    expect((await fetch(`${reach}/healthz`)).status).toBe(200);
    const { id } = await client.add({ user_id, content: 'the ferry leaves at nine' });
    expect((await client.search({ user_id, q: 'when does the boat go?' }))[0]?.memory.id).toBe(id);
    expect((await fetch(`${reach}/docs`)).status).toBe(200);
    expect(existsSync(join(data, 'postgres/PG_VERSION'))).toBe(true);

    const [shell = '', ...check] = image.healthcheck;
    const probe = (OMP_PORT: string) =>
      promisify(execFile)(shell, check, { env: { PATH: process.env.PATH, OMP_PORT } });
    await probe(port);
    await expect(probe('1')).rejects.toMatchObject({ code: 1 });

    gateway.child.kill('SIGTERM');
    expect(await gateway.ended).toMatchObject({ status: 0, stderr: '' });
    // It leaves nothing behind but its data, and the empty folder of its user's sockets.
    const sockets = readdirSync(tmp);
    expect(sockets).toEqual([expect.stringMatching(/^omp-gateway-\d+$/)]);
    expect(readdirSync(join(tmp, sockets[0] ?? ''))).toEqual([]);
    expect(readdirSync(data).sort()).toEqual(['lock', 'omp-gateway.json', 'postgres']);

    // A provider that is mounted there imports the contract of this gateway.
    const mounted = { OMP_PROVIDER: './providers/mounted', OMP_SEARCH_MODE: 'keyword', OMP_AUTH: 'open' };
    const { stdout } = await promisify(execFile)(process.execPath, [join(image.root, main), 'doctor'], {
      ...owner,
      cwd: app,
      env: { PATH: process.env.PATH, ...image.env, ...mounted, OMP_DATA_DIR: data, TMPDIR: tmp },
    });
    expect(stdout).toContain('the provider ./providers/mounted opens and answers');
  });
});
