import { afterAll, describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { docker, project } from './engine.ts';

const omp = project();
afterAll(omp.end);

const inImage = (...command: readonly string[]) =>
  docker('run', '--rm', '--entrypoint', 'sh', 'omp-gateway', '-c', ...command);

describe('the image', () => {
  it('passes its arguments to the gateway, although the clone was made with umask 077', async () => {
    expect(await docker('run', '--rm', 'omp-gateway', '--version')).toBe(packageJson.version);
    expect(await docker('run', '--rm', 'omp-gateway', 'keys', 'list')).toContain('GRANTS');
    expect(await inImage('find /app ! -readable -o -type d ! -executable')).toBe('');
  });

  it('has no package manager, and no files of node_modules that only developers read', async () => {
    expect(await docker('image', 'inspect', 'omp-gateway', '--format', '{{.Config.User}}')).toBe('1000:1000');
    expect(
      await inImage(
        'which npm npx corepack yarn yarnpkg; ls -d /usr/local/lib/node_modules /opt/yarn* 2>/dev/null; true',
      ),
    ).toBe('');
    expect(
      await inImage("find /app/node_modules -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts'"),
    ).toBe('');
    expect(await inImage("find /app/node_modules -iname '*.md' ! -iname '*licen[cs]e*' ! -iname '*notice*'")).toBe('');
    expect(await inImage('ls /app/node_modules/hono/LICENSE /app/LICENSE')).not.toBe('');
    const size = Number(await inImage('du -sk /app/node_modules | cut -f1')) / 1024;
    process.stdout.write(`node_modules: ${Math.round(size)} MiB\n`);
    expect(size).toBeLessThan(130);
  });

  it('has native parts for Linux only, and they load', async () => {
    const found = await inImage('cd /app/node_modules/fs-native-extensions/prebuilds && ls -d *');
    expect(found.split('\n')).toEqual(['linux-arm64', 'linux-x64']);
    await inImage('cd /app && node -e "import(\'fs-native-extensions\')"');
  });

  it('describes itself as an application in its SBOM', async () => {
    const { metadata } = JSON.parse(await inImage('cat /app/sbom.cdx.json')) as { metadata: { component: object } };
    expect(metadata.component).toMatchObject({
      name: 'omp-gateway',
      type: 'application',
      version: packageJson.version,
    });
  });

  it('checks its health with little memory, and notices when nothing answers', async () => {
    await omp.compose('up', '--detach', '--wait', 'embedded');
    const check = JSON.parse(
      await docker('image', 'inspect', 'omp-gateway', '--format', '{{json .Config.Healthcheck.Test}}'),
    );
    const [, program, ...args] = check as [string, string, ...string[]];
    // Node alone would not start with so little; the start of a container itself sometimes takes 8 MB.
    const inLittle = (network: string) =>
      docker(
        'run',
        '--rm',
        '--memory=16m',
        '--memory-swap=16m',
        `--network=${network}`,
        '--entrypoint',
        program,
        'omp-gateway',
        ...args,
      );
    await inLittle('container:omp-embedded-1');
    await expect(inLittle('none')).rejects.toThrow('failed with 1');
  });
});
