import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';

describe('defaults of the server', () => {
  const { config } = loadConfig({
    flags: {},
    env: {},
    readFile: (path) => {
      throw Object.assign(new Error(`${path} is not there`), { code: 'ENOENT' });
    },
  });

  it('[SPEC Service port] listens on port 8080', () => {
    expect(config.port).toBe(8080);
  });

  it('[SPEC Authentication 1] [SPEC Limits body] stays on the loopback interface and takes 1 MiB', () => {
    expect(config).toMatchObject({ host: '127.0.0.1', max_request_bytes: 1_048_576 });
  });
});
