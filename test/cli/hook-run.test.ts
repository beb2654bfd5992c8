import { once } from 'node:events';
import { chmodSync, cpSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { type Gateway, serve } from '../../src/serve.ts';
import { startProgram, temporaryFolder } from '../process/gateway.ts';
import { type Client, clientOf } from '../support/client.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { freshUser, recordingLog } from '../support/subject.ts';
import { hook, listening, PATIENT } from './hook.ts';

/** It never blocks a prompt. */
const silent = (reason: RegExp) => ({
  status: 0,
  stdout: '',
  stderr: expect.stringMatching(new RegExp(`^omp-gateway: [^\\n]*(?:${reason.source})[^\\n]*\\n$`)),
});

describe('with a gateway', () => {
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
  const contents = async (user_id: string) =>
    (await client.list({ user_id })).items.map(({ content, scope, source }) => ({ content, scope, source }));

  it.each([
    ['claude-code', 'SessionStart', 'UserPromptSubmit'],
    ['codex', 'SessionStart', 'UserPromptSubmit'],
    ['gemini', 'SessionStart', 'BeforeAgent'],
    ['qwen', 'SessionStart', 'UserPromptSubmit'],
  ])('%s: passes context as hookSpecificOutput.additionalContext', async (name, session, prompt) => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'project acme uses pnpm' });
    const input = { prompt: 'which pnpm version?', cwd: '/home/ana/acme', source: 'startup' };
    for (const event of [session, prompt]) {
      const { status, stdout, stderr } = await run([name, event, '--user', user], input);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(JSON.parse(stdout)).toEqual({
        hookSpecificOutput: {
          hookEventName: event,
          additionalContext: expect.stringContaining('project acme uses pnpm'),
        },
      });
    }
  });

  it('cursor: passes context when a session starts, and only captures from prompts', async () => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'project acme uses pnpm' });
    const start = await run(['cursor', 'sessionStart', '--user', user], { workspace_roots: ['/src/acme'] });
    expect(JSON.parse(start.stdout)).toEqual({ additional_context: expect.stringContaining('acme uses pnpm') });
    const input = { prompt: 'remember: acme has two teams' };
    const prompt = await run(['cursor', 'beforeSubmitPrompt', '--user', user, '--capture'], input);
    expect(JSON.parse(prompt.stdout)).toEqual({ continue: true });
    expect(await contents(user)).toHaveLength(2);
  });

  it('copilot: passes context as additionalContext', async () => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'project acme uses pnpm' });
    for (const event of ['sessionStart', 'userPromptSubmitted']) {
      const { stdout } = await run(['copilot', event, '--user', user], { prompt: 'which pnpm version?', cwd: '/acme' });
      expect(JSON.parse(stdout)).toEqual({ additionalContext: expect.stringContaining('project acme uses pnpm') });
    }
    const input = { prompt: 'remember: acme has two teams', sessionId: 's1' };
    await run(['copilot', 'userPromptSubmitted', '--user', user, '--capture'], input);
    expect(await contents(user)).toContainEqual({
      content: 'acme has two teams',
      scope: null,
      source: { app: 'copilot', type: 'explicit', ref: 's1' },
    });
  });

  it.each([
    ['nothing is found', { prompt: 'unrelated words' }],
    ['the prompt is blank', { prompt: ' \n' }],
    ['the event has no prompt', {}],
  ])('prints nothing if %s', async (_, input) => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'likes tea' });
    const answer = await run(['codex', 'UserPromptSubmit', '--user', user], input);
    expect(answer).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it('a resumed session still has its context', async () => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'project acme uses pnpm' });
    const input = { cwd: '/acme', source: 'resume' };
    expect((await run(['claude-code', 'SessionStart', '--user', user], input)).stdout).toBe('');
  });

  it('the budget bounds the tokens, and the scope what is found', async () => {
    const user = freshUser();
    await client.add({ user_id: user, content: `tea ${'green '.repeat(50)}`, scope: 'home/drinks' });
    await client.add({ user_id: user, content: 'tea is for the office', scope: 'work' });
    const asked = async (...options: string[]) =>
      (await run(['codex', 'UserPromptSubmit', '--user', user, ...options], { prompt: 'tea' })).stdout;
    expect(await asked()).toMatch(/green.*office|office.*green/s);
    expect(await asked('--budget', '40')).toContain('office');
    expect(await asked('--budget', '40')).not.toContain('green');
    expect(await asked('--scope', 'home/')).not.toContain('office');
  });

  it('a long prompt, and one with characters that the gateway rejects', async () => {
    const user = freshUser();
    await client.add({ user_id: user, content: 'likes tea' });
    for (const prompt of [`tea ${'x'.repeat(2_000_000)}`, 'tea \0 \ud800']) {
      expect((await run(['codex', 'UserPromptSubmit', '--user', user], { prompt })).stdout).toContain('likes tea');
    }
  });

  describe('--capture', () => {
    const prompt = 'Fix it.\n  Remember:  uses tabs \nremember:\nnot remember: this\nREMEMBER: ships on Fridays';

    it('adds what follows remember: in a line, and tells the user', async () => {
      const user = freshUser();
      const argv = ['claude-code', 'UserPromptSubmit', '--user', user, '--scope', 'coding/', '--capture'];
      const { stdout, stderr } = await run(argv, { prompt, session_id: 's1' });
      expect(stderr).toBe('');
      expect(JSON.parse(stdout)).toMatchObject({ systemMessage: 'omp-gateway: remembered 2 memories' });
      const source = { app: 'claude-code', type: 'explicit', ref: 's1' };
      expect(await contents(user)).toEqual(
        expect.arrayContaining([
          { content: 'uses tabs', scope: 'coding', source },
          { content: 'ships on Fridays', scope: 'coding', source },
        ]),
      );
      expect(await contents(user)).toHaveLength(2);
      expect((await run(argv, { prompt: 'tabs?' })).stdout).toContain('uses tabs');
    });

    it('without it nothing is added', async () => {
      const user = freshUser();
      await run(['claude-code', 'UserPromptSubmit', '--user', user], { prompt });
      expect(await contents(user)).toEqual([]);
    });

    it('a memory that is not stored is reported, and the context is passed', async () => {
      const user = freshUser();
      await client.add({ user_id: user, content: 'uses tabs' });
      const argv = ['codex', 'UserPromptSubmit', '--user', user, '--capture'];
      const { stdout, stderr } = await run(argv, { prompt: 'tabs\nremember: a \0 b' });
      expect(JSON.parse(stdout)).not.toHaveProperty('systemMessage');
      expect(stdout).toContain('uses tabs');
      expect(stderr).toBe('omp-gateway: a memory was not stored; the gateway answered 400 invalid_request\n');
    });
  });
});

describe('without a gateway', () => {
  const input = { prompt: 'tea', cwd: '/acme' };
  const argv = ['claude-code', 'UserPromptSubmit', '--user', 'ana'];
  /** Answers each request; `seen` lists them. */
  async function answering(answer: (request: IncomingMessage) => { status: number; body: string; location?: string }) {
    const seen: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      seen.push(request);
      const { status, body, location } = answer(request);
      response.writeHead(status, location === undefined ? {} : { location }).end(body);
    });
    onTestFinished(() => void server.close());
    return { url: await listening(server), seen };
  }

  it('one that is down', async () => {
    const server = createServer();
    const url = await listening(server);
    server.close();
    await once(server, 'close');
    expect(await hook({ argv: [...argv, ...PATIENT, '--url', url], input })).toEqual(silent(/reached: ECONNREFUSED/));
  });

  it('one that hangs: the deadline ends the wait', async () => {
    const timers = holdTimers(300);
    const server = createTcpServer((socket) => void socket.on('error', () => {}));
    onTestFinished(() => void server.close());
    const url = await listening(server);
    const connected = once(server, 'connection');
    const running = hook({ argv: [...argv, '--url', url], input });
    const [socket] = (await connected) as [Socket];
    expect(timers.waiting()).toBe(1);
    timers.pass();
    expect(await running).toEqual(silent(/no answer within 300 ms/));
    // The request is abandoned.
    await once(socket.resume(), 'close');
  });

  it('a client that sends no event: the same deadline', async () => {
    const timers = holdTimers(300);
    const stdin = new PassThrough();
    const running = hook({ argv, input: stdin });
    await expect.poll(() => timers.waiting()).toBe(1);
    timers.pass();
    expect(await running).toEqual(silent(/no answer within 300 ms/));
    expect(stdin.destroyed).toBe(true);
  });

  it('a client that leaves standard input open', async () => {
    const { url } = await answering(() => ({ status: 200, body: '{"text":"[1] tea"}' }));
    const stdin = new PassThrough();
    stdin.write('{"prompt":"{tea}');
    stdin.write('"}\n');
    expect((await hook({ argv: [...argv, ...PATIENT, '--url', url], input: stdin })).stdout).toContain('[1] tea');
  });

  it.each([
    [401, '{"error":{"code":"unauthorized","message":"no"}}', /answered 401 unauthorized/],
    [500, '<html>', /answered 500/],
    [200, '<html>', /is not a gateway/],
    [200, '{"text":1}', /is not a gateway/],
    [200, `{"text":"${'x'.repeat(5_000_000)}"}`, /is not a gateway/],
  ])('one that answers %i %.20s', async (status, body, reason) => {
    const { url } = await answering(() => ({ status, body }));
    expect(await hook({ argv: [...argv, ...PATIENT, '--url', url], input })).toEqual(silent(reason));
  });

  it('a redirect is not followed: it could send the key elsewhere', async () => {
    const other = await answering(() => ({ status: 200, body: '{"text":"tea"}' }));
    const { url } = await answering(() => ({ status: 307, body: '', location: `${other.url}/context` }));
    const env = { OMP_KEY: 'omp_secret' };
    expect(await hook({ argv: [...argv, ...PATIENT, '--url', url], input, env })).toEqual(silent(/answered 307/));
    expect(other.seen).toEqual([]);
  });

  it('sends the key of the file, else that of OMP_KEY, and neither if there is none', async () => {
    const { url, seen } = await answering(() => ({ status: 200, body: '{"text":""}' }));
    const file = join(temporaryFolder(), 'key');
    writeFileSync(file, 'omp_file\n', { mode: 0o600 });
    const base = [...argv, ...PATIENT, '--url', `${url}/`];
    await hook({ argv: [...base, '--key-file', file], input, env: { OMP_KEY: 'omp_env' } });
    await hook({ argv: base, input, env: { OMP_KEY: 'omp_env' } });
    await hook({ argv: base, input });
    expect(seen.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['/context', 'Bearer omp_file'],
      ['/context', 'Bearer omp_env'],
      ['/context', undefined],
    ]);
    chmodSync(file, 0o644);
    expect(await hook({ argv: [...base, '--key-file', file], input })).toEqual(silent(/chmod 600/));
    expect(seen).toHaveLength(3);
  });

  it('asks for the user of --user, else that of OMP_USER_ID, else that of the machine', async () => {
    const users: unknown[] = [];
    const server = createServer(async (request, response) => {
      users.push(((await json(request)) as { user_id: string }).user_id);
      response.end('{"text":""}');
    });
    onTestFinished(() => void server.close());
    const base = ['codex', 'UserPromptSubmit', ...PATIENT, '--url', await listening(server)];
    await hook({ argv: [...base, '--user', 'ana'], input, env: { OMP_USER_ID: 'ben' } });
    await hook({ argv: base, input, env: { OMP_USER_ID: 'ben' } });
    await hook({ argv: base, input });
    expect(users).toEqual(['ana', 'ben', userInfo().username]);
  });

  it.each([
    ['an unknown client', ['emacs', 'SessionStart'], '{}', /unknown event 'emacs SessionStart'/],
    ['an unknown event', ['codex', 'Stop', '--user', 'a'], '{}', /unknown event 'codex Stop'/],
    ['a name of every object', ['codex', 'toString', '--user', 'a'], '{}', /unknown event/],
    ['no event', [], '{}', /unknown event/],
    ['an unknown option', ['codex', 'SessionStart', '--usre', 'a'], '{}', /--usre/],
    ['a bad number', ['codex', 'SessionStart', '--user', 'a', '--budget', 'x'], '{}', /--budget must be/],
    [
      'a URL with a password',
      ['codex', 'SessionStart', '--user', 'a', '--url', 'http://a:b@x'],
      '{}',
      /use --key-file/,
    ],
    ['no input', ['codex', 'SessionStart', '--user', 'a'], '', /not a JSON object/],
    ['no JSON', ['codex', 'SessionStart', '--user', 'a'], 'x}', /not a JSON object/],
    ['too much', ['codex', 'SessionStart', '--user', 'a'], 'x'.repeat(4_194_305), /longer than/],
  ])('%s: reported, and status 0, since another one could block the prompt', async (_, argv, input, reason) => {
    expect(await hook({ argv, input })).toEqual(silent(reason));
  });
});

describe('the program', () => {
  it('runs a hook without any package, and ends while standard input is open', async () => {
    const server = createServer((_, response) => void response.end('{"text":"[1] tea"}'));
    onTestFinished(() => void server.close());
    const folder = temporaryFolder();
    for (const part of ['dist', 'package.json']) cpSync(part, join(folder, part), { recursive: true });
    const { child, ended } = startProgram({
      main: join(folder, 'dist/src/main.js'),
      args: ['hooks', 'run', 'codex', 'UserPromptSubmit', '--user', 'ana', ...PATIENT],
      env: { OMP_URL: await listening(server) },
      stdin: 'pipe',
    });
    child.stdin?.write('{"prompt":"tea"}');
    expect(await ended).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('[1] tea') });
  });
});
