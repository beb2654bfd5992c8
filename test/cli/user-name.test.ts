import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runHook } from '../../src/cli/hook-run.ts';
import { runMcp } from '../../src/cli/mcp.ts';
import { welcomeText } from '../../src/cli/welcome.ts';
import { loadConfig } from '../../src/config/load.ts';

// As Node does for a uid that the system has no name for.
const { userInfo } = os;
beforeAll(() => {
  os.userInfo = () => {
    throw new Error('ENOENT: no such file or directory, uv_os_get_passwd');
  };
  syncBuiltinESMExports();
});
afterAll(() => {
  os.userInfo = userInfo;
  syncBuiltinESMExports();
});

it('without a name of its user, the gateway starts, and mcp and a hook say how to name one', async () => {
  const { config } = loadConfig({ flags: {}, env: {} });
  const started = { version: '1', url: 'http://127.0.0.1:8080', open: true, provider: 'memory' };
  expect(welcomeText(started, config)).toContain('http://127.0.0.1:8080/mcp/USER\n');

  const written: string[] = [];
  const output = { write: (text: string) => written.push(text) };
  const terminal = { env: {}, stdout: output, stderr: output };
  const openStore = () => Promise.reject(new Error('opened'));
  expect(await runMcp([], terminal, openStore)).toBe(1);
  expect(written.join('')).toMatch(/^omp-gateway: .*set OMP_USER_ID/);
  expect((await runHook(['codex', 'UserPromptSubmit'], {}, {}, (async function* () {})())).failures).toEqual([
    expect.stringMatching(/set OMP_USER_ID/),
  ]);
});
