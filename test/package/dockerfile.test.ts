import { existsSync, readFileSync } from 'node:fs';
import { validate } from 'dockerfile-utils';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import packageLock from '../../package-lock.json' with { type: 'json' };
import { configSchema } from '../../src/config/settings.ts';
import { brokenRules, instructionsOf } from './dockerfile.ts';

const DOCKERFILE = readFileSync('Dockerfile', 'utf8');
const all = (name: string) => instructionsOf(DOCKERFILE).flatMap(([each, rest]) => (each === name ? [rest] : []));

describe('the Dockerfile', () => {
  it('is accepted by a builder and follows the rules of hadolint', () => {
    expect(validate(DOCKERFILE)).toEqual([]);
    expect(brokenRules(DOCKERFILE)).toEqual([]);
  });

  it('runs a Node that the package allows, and has the labels of the package', () => {
    const [, major = ''] = /^NODE_IMAGE=node:(\d+)\./.exec(all('ARG').join('\n')) ?? [];
    expect(packageJson.engines.node).toBe('^20.19.0 || >=22.12.0');
    expect(Number(major)).toBe(22);
    expect(all('LABEL').join()).toContain(`image.version="${packageJson.version}"`);
    expect(all('LABEL').join()).toContain(`image.licenses="${packageJson.license}"`);
  });

  it('exposes and checks the default port', () => {
    const { port } = configSchema.parse({});
    expect(all('EXPOSE')).toEqual([`${port} 9464`]);
    expect(all('HEALTHCHECK').join()).toContain(`\${OMP_PORT:-${port}}`);
    expect(all('HEALTHCHECK').join()).toContain('/livez');
  });

  it('removes package managers from the image', () => {
    for (const path of ['/usr/local/lib/node_modules', '/usr/local/bin/npm', '/opt/yarn-*'])
      expect(all('RUN').find((run) => run.startsWith('rm -rf '))).toContain(` ${path} `);
  });

  it('may install once for all platforms: no dependency differs between them, and native parts come prebuilt', () => {
    const shipped = Object.entries(packageLock.packages as Record<string, Record<string, unknown>>).filter(
      ([, { dev }]) => !dev,
    );
    expect(shipped.length).toBeGreaterThan(50);
    expect(shipped.filter(([, { os, cpu, libc }]) => os || cpu || libc).map(([at]) => at)).toEqual([]);
    for (const platform of ['linux-x64', 'linux-arm64'])
      expect(existsSync(`node_modules/fs-native-extensions/prebuilds/${platform}/fs-native-extensions.node`)).toBe(
        true,
      );
  });
});
