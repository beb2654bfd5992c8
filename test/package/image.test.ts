import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { startGateway, temporaryFolder } from '../process/gateway.ts';
import { freshUser } from '../support/subject.ts';
import { carryOut } from './dockerfile.ts';

const REGISTRY = process.env.TEST_TARBALL !== undefined;
const NO_REGISTRY = 'TEST_TARBALL is not set; carrying out the Dockerfile takes the npm registry too';

describe('the image', () => {
  test('what the Dockerfile puts together serves, is healthy, and has no tools of the developers', async ({ skip }) => {
    skip(!REGISTRY, NO_REGISTRY);
    const image = carryOut('Dockerfile', temporaryFolder());
    expect(image.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(image.volumes).toEqual([image.env.OMP_DATA_DIR]);
    expect(image.env).toMatchObject({ NODE_ENV: 'production', OMP_HOST: '0.0.0.0' });
    // Node gets the signals itself: no shell, no npm in between.
    const [program, main = '', ...more] = image.command;
    expect({ program, more }).toEqual({ program: 'node', more: [] });

    const modules = readdirSync(join(image.root, 'app/node_modules'));
    for (const name of Object.keys(packageJson.dependencies)) expect(modules).toContain(name.split('/')[0]);
    for (const name of ['typescript', 'vitest', 'tsx', 'swagger-ui-dist', 'playwright-core'])
      expect(modules).not.toContain(name);

    // Everything as in the container, but for the folder's place and a free port.
    const data = join(image.root, String(image.env.OMP_DATA_DIR));
    const { url, client } = await startGateway({
      main: join(image.root, main),
      env: { ...image.env, OMP_DATA_DIR: data, OMP_SEARCH_MODE: 'hybrid' },
    });
    const { port } = new URL(url);
    const user_id = freshUser();
    const reach = `http://127.0.0.1:${port}`;
    expect((await fetch(`${reach}/healthz`)).status).toBe(200);
    const { id } = await client.add({ user_id, content: 'the ferry leaves at nine' });
    expect((await client.search({ user_id, q: 'when does the boat go?' }))[0]?.memory.id).toBe(id);
    expect((await fetch(`${reach}/docs`)).status).toBe(200);
    expect(existsSync(join(data, 'postgres/PG_VERSION'))).toBe(true);

    const [, ...check] = image.healthcheck;
    const probe = (OMP_PORT: string) =>
      promisify(execFile)(process.execPath, check, { env: { PATH: process.env.PATH, OMP_PORT } });
    expect(image.healthcheck[0]).toBe('node');
    await probe(port);
    await expect(probe('1')).rejects.toMatchObject({ code: 1 });
  }, 300_000);
});
