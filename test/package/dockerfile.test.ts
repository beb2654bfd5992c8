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
  it('is one that a builder accepts, and keeps the rules of its trade', () => {
    expect(validate(DOCKERFILE)).toEqual([]);
    expect(brokenRules(DOCKERFILE)).toEqual([]);
  });

  it.each([
    ['DL3000', 'WORKDIR /app', 'WORKDIR app'],
    ['DL3002', 'USER 1000:1000', 'USER root'],
    ['DL3002', 'USER 1000:1000', 'USER 0:0'],
    ['DL3002', 'USER 1000:1000\n', ''],
    ['DL3003', 'RUN npm run build', 'RUN cd /build && npm run build'],
    ['DL3004', 'RUN npm run build', 'RUN sudo npm run build'],
    ['DL3006', 'NODE_IMAGE=node:24.21.0-trixie-slim\n', 'NODE_IMAGE=node:latest\n'],
    ['DL3006', 'NODE_IMAGE=node:24.21.0-trixie-slim\n', 'NODE_IMAGE=node:24-slim\n'],
    ['DL3008', 'RUN npm run build', 'RUN apt-get install -y git && npm run build'],
    ['DL3016', 'npm ci --omit=dev', 'npm install --omit=dev'],
    ['DL3016', 'npm ci --omit=dev --ignore-scripts', 'npm ci --omit=dev'],
    ['DL3020', 'COPY LICENSE', 'ADD LICENSE'],
    ['DL3022', '--from=dependencies', '--from=dependecies'],
    ['DL3025', 'CMD ["node", "/app/dist/src/main.js"]', 'CMD node /app/dist/src/main.js'],
    ['DL3057', 'HEALTHCHECK', '# HEALTHCHECK'],
    ['DL4000', 'STOPSIGNAL', 'MAINTAINER me\nSTOPSIGNAL'],
    ['DL4003', 'STOPSIGNAL', 'CMD ["node"]\nSTOPSIGNAL'],
    ['DL4006', 'RUN npm run build', 'RUN npm run build | cat'],
    ['no secrets', 'ENV NODE_ENV', 'ENV OPENAI_API_KEY=sk-1\nENV NODE_ENV'],
  ])('would break %s with %j as %j', (rule, kept, planted) => {
    expect(DOCKERFILE).toContain(kept);
    expect(brokenRules(DOCKERFILE.replace(kept, planted))[0]).toMatch(new RegExp(`^${rule}`));
  });

  it('runs the newest Node that the package admits, and tells which gateway it is', () => {
    const [, major = ''] = /^NODE_IMAGE=node:(\d+)\./.exec(all('ARG').join('\n')) ?? [];
    expect(packageJson.engines.node).toBe('^20.19.0 || >=22.12.0');
    expect(Number(major) % 2).toBe(0);
    expect(Number(major)).toBeGreaterThanOrEqual(24);
    expect(all('LABEL').join()).toContain(`image.version="${packageJson.version}"`);
    expect(all('LABEL').join()).toContain(`image.licenses="${packageJson.license}"`);
  });

  it('serves where the settings say, and opens the ports of the examples', () => {
    const { port } = configSchema.parse({});
    expect(all('EXPOSE')).toEqual([`${port} 9464`]);
    expect(all('HEALTHCHECK').join()).toContain(`process.env.OMP_PORT || ${port}`);
    expect(all('HEALTHCHECK').join()).toContain('/livez');
  });

  it('leaves package managers out of what serves', () => {
    for (const path of ['/usr/local/lib/node_modules', '/usr/local/bin/npm', '/opt/yarn-*'])
      expect(all('RUN').find((run) => run.startsWith('rm -rf '))).toContain(` ${path} `);
  });

  it('may install once for all platforms: nothing that is shipped differs between them, and native parts come prebuilt', () => {
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
