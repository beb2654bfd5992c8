import { readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOOK_CLIENTS, type HookClient, type Occasion } from '../../src/cli/hook-clients.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Gateway, serve } from '../../src/serve.ts';
import { type Client, clientOf } from '../support/client.ts';
import { freshUser, recordingLog } from '../support/subject.ts';
import { hook, PATIENT, state } from './hook.ts';

describe('[Decision 45] the first prompt of a session', () => {
  let gateway: Gateway;
  let url: string;
  let client: Client;
  beforeAll(async () => {
    const env = { OMP_PORT: '0', OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'keyword' };
    gateway = await serve(loadConfig({ env }).config, recordingLog());
    url = `http://127.0.0.1:${gateway.port}`;
    client = clientOf((path, init) => fetch(url + path, init));
  });
  afterAll(() => gateway?.close());
  const run = (argv: readonly string[], input: object) =>
    hook({ argv: [...argv, ...PATIENT], input, env: { OMP_URL: url } });
  const CLIENTS = Object.entries<HookClient>(HOOK_CLIENTS).flatMap(([name, { events }]) => {
    const of = (wanted: Occasion) =>
      Object.keys(events).find((event) => events[event]?.occasion === wanted && events[event].takesContext);
    const [session, prompt] = [of('session'), of('prompt')];
    return session && prompt ? [{ name, session, prompt }] : [];
  });
  const numbered = (stdout: string) =>
    (stdout.match(/(?<=\\n)\[\d+\] [^\\]*/g) ?? []).map((line) => line.replace(/.*\) /, ''));

  it.each(CLIENTS)('$name: passes what the start of the session did not, and the next one all', async (each) => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'conventions of acme: pnpm' });
    const session_id = freshUser();
    const start = await run([each.name, each.session, '--user', user], {
      session_id,
      cwd: '/acme',
      source: 'startup',
    });
    expect(numbered(start.stdout)).toEqual(['conventions of acme: pnpm']);
    expect(readdirSync(join(state, 'omp-gateway/hooks/sessions'))).toHaveLength(1);
    await client.add({ user_id: user, content: 'pnpm has version 9' });
    const prompt = async (input: object) =>
      numbered((await run([each.name, each.prompt, '--user', user], { prompt: 'pnpm?', ...input })).stdout).sort();
    expect(await prompt({ session_id: 'another' })).toHaveLength(2);
    expect(await prompt({ session_id })).toEqual(['pnpm has version 9']);
    expect(readdirSync(join(state, 'omp-gateway/hooks/sessions'))).toEqual([]);
    expect(await prompt({ session_id })).toHaveLength(2);
  });

  it('prints nothing if all of it was passed, and no heading without lines', async () => {
    const user = freshUser();
    const argv = (event: string) => ['claude-code', event, '--user', user];
    const said = { user_id: user, scope: 'chat', source: { app: 'a-long-name-of-an-application', ref: 'r1' } };
    for (const n of [1, 2, 3]) await client.add({ ...said, content: `conventions of acme, part ${n}` });
    const session_id = freshUser();
    const start = () => run(argv('SessionStart'), { session_id, cwd: '/acme', source: 'startup' });
    expect((await start()).stdout).toContain('an-application):');
    const prompt = { session_id, prompt: 'conventions of acme and pnpm' };
    expect((await run(argv('UserPromptSubmit'), prompt)).stdout).toBe('');
    await start();
    await client.add({ user_id: user, content: 'acme has a pnpm of its own' });
    const { stdout } = await run(argv('UserPromptSubmit'), prompt);
    expect(stdout).toContain('acme has a pnpm of its own');
    expect(stdout).not.toContain('an-application');
  });

  it('leaves no file behind for long, if none comes', async () => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'conventions of acme: pnpm' });
    const start = (session_id: string) =>
      run(['claude-code', 'SessionStart', '--user', user], { session_id, cwd: '/acme', source: 'startup' });
    const folder = join(state, 'omp-gateway/hooks/sessions');
    await start('s1');
    const [old = ''] = readdirSync(folder);
    expect(statSync(join(folder, old)).mode & 0o777).toBe(0o600);
    await start('s2');
    expect(readdirSync(folder)).toHaveLength(2);
    utimesSync(join(folder, old), 0, 0);
    await start('s2');
    expect(readdirSync(folder)).toHaveLength(1);
    rmSync(folder, { recursive: true });
  });

  it('is told if a file cannot be written, and the memories are passed', async () => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'conventions of acme: pnpm' });
    const argv = ['claude-code', 'SessionStart', '--user', user, ...PATIENT];
    const env = { OMP_URL: url, XDG_STATE_HOME: '/dev/null' };
    const { stdout, stderr } = await hook({ argv, input: { session_id: 's1', cwd: '/acme' }, env });
    expect(stdout).toContain('conventions of acme');
    expect(stderr).toMatch(/^omp-gateway: the first prompt may pass the same memories again: ENOTDIR/);
  });
});
