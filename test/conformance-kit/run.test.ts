import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Provider } from '#contract';
import { runConformance } from '../../src/cli/conformance.ts';
import type { Send } from '../../src/conformance/kit.ts';
import { type Result, runAll } from '../../src/conformance/run.ts';
import { sendTo } from '../conformance/kit.suite.ts';
import { commandHere } from '../support/command.ts';
import { serverForTest } from '../support/server.ts';
import { openSubject, type Subject } from '../support/subject.ts';
import { ignoring } from './mutate.ts';

const KEYS = { key: false, narrow: false };
const ALL = { keys: KEYS, readOnly: false, profiles: [], onResult: () => {} };

let subject: Subject;
beforeEach(async () => {
  subject = await openSubject({ provider: 'memory', options: {} });
  return subject.close;
});
const users = async () => (await subject.client.users({ prefix: 'omp-conformance' })).items;

describe('a run', () => {
  const signal = new AbortController().signal;

  it('deletes what it added, also what a failed check left', async () => {
    const mutant = ignoring('list', 'limit')(sendTo(subject.app, {}));
    const { results, left } = await runAll({ ...ALL, send: mutant, signal });
    expect(results.filter(({ status }) => status === 'failed').map(({ id }) => id)).toEqual([
      'list.limit',
      'list.limit-wrong',
    ]);
    expect([left, await users()]).toEqual([[], []]);
  });

  it('names what it cannot delete', async () => {
    const send = sendTo(subject.app, {});
    const stubborn: Send = (path, init, as) =>
      send(path, init.method === 'DELETE' ? { ...init, method: 'GET' } : init, as);
    const { left } = await runAll({ ...ALL, send: stubborn, signal, profiles: ['audit'] });
    expect(left).toHaveLength(1);
  });

  it('ends after the current case when it is stopped, and deletes what it added', async () => {
    const stop = new AbortController();
    const results: Result[] = [];
    const onResult = (result: Result) => {
      results.push(result);
      if (result.id === 'add.id') stop.abort();
    };
    await runAll({ ...ALL, send: sendTo(subject.app, {}), signal: stop.signal, onResult });
    expect(results.at(-1)?.id).toBe('add.id');
    expect(await users()).toEqual([]);
  });

  it('--read-only only reads', async () => {
    const methods = new Set<string>();
    const send: Send = (path, init, as) => {
      methods.add(init.method ?? 'GET');
      return sendTo(subject.app, {})(path, init, as);
    };
    const { results } = await runAll({ ...ALL, send, signal, readOnly: true });
    expect(results.length).toBeGreaterThan(20);
    expect([...methods]).toEqual(['GET']);
  });

  it('without a document of capabilities says so, and tries nothing that needs one', async () => {
    const send: Send = async () => new Response('It works!', { headers: { 'content-type': 'text/html' } });
    const { results } = await runAll({ ...ALL, send, signal });
    const failed = results.filter(({ status }) => status === 'failed').map(({ profile }) => profile);
    expect(new Set(failed)).toEqual(new Set(['core', 'grants']));
    expect(results.filter(({ status }) => status === 'passed').map(({ id }) => id)).toEqual([
      'capabilities.search-agrees',
      'capabilities.audit-agrees',
    ]);
  });

  it('waits while the rate limit is reached', async () => {
    let refusals = 2;
    const send: Send = async (path, init, as) => {
      if (path !== '/healthz' || refusals-- <= 0) return sendTo(subject.app, {})(path, init, as);
      return new Response('{}', { status: 429, headers: { 'retry-after': '0' } });
    };
    const { results } = await runAll({ ...ALL, send, signal, profiles: ['core'], readOnly: true });
    expect(results.find(({ id }) => id === 'health.ok')?.status).toBe('passed');
  });
});

describe('omp-gateway conformance', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'omp-conformance-'));
    return () => rmSync(folder, { recursive: true });
  });
  const at = (name: string) => join(folder, name);
  const read = (name: string) => readFileSync(at(name), 'utf8');
  const conformance = (argv: readonly string[], env = {}) =>
    commandHere((terminal) => runConformance(argv, terminal), env);

  it('fails if nothing answers', async () => {
    const { status, stderr } = await conformance(['--url', 'http://127.0.0.1:1']);
    expect([status, stderr]).toEqual([1, expect.stringContaining('http://127.0.0.1:1 does not answer')]);
  });

  it('checks an implementation over the network and writes its reports', async () => {
    const { url, client } = await serverForTest();
    const files = ['--report', at('report.json'), '--junit', at('junit.xml'), '--badge', at('badge.json')];
    const profiles = ['--profile', 'search', '--profile', 'grants'];
    const { status, stdout, stderr } = await conformance([...profiles, ...files], { OMP_URL: `${url}/` });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^12 passed, 0 failed, 0 warnings, 3 skipped$/m);
    expect(JSON.parse(read('report.json'))).toMatchObject({
      url,
      counts: { passed: 12, failed: 0, warning: 0, skipped: 3 },
      results: expect.arrayContaining([
        {
          id: 'search.required',
          profile: 'search',
          status: 'passed',
          title: expect.any(String),
          clauses: expect.arrayContaining([{ id: 'GET /memories/search q', text: 'Required: the query.' }]),
          request: { method: 'GET', path: expect.stringMatching(/^\/memories\/search\?user_id=omp-conformance-/) },
          answer: {
            status: 400,
            type: expect.stringContaining('application/json'),
            text: expect.stringContaining('"q'),
          },
        },
      ]),
    });
    expect(read('junit.xml')).toContain('<testsuite name="grants" tests="4" failures="0" skipped="3">');
    expect(JSON.parse(read('badge.json'))).toEqual({
      schemaVersion: 1,
      label: 'Open Memory Protocol',
      message: '12 passed',
      color: 'brightgreen',
    });
    expect((await client.users({ prefix: 'omp-conformance' })).items).toEqual([]);
  });

  it('checks an implementation behind a proxy that closes its idle connections', async () => {
    const { url } = await serverForTest();
    const used = new WeakSet<object>();
    const proxy = createServer(async (request, response) => {
      // A connection that was idle is closed just when the next request arrives.
      if (used.has(request.socket)) return request.socket.destroy();
      used.add(request.socket);
      const { method = 'GET', headers } = request;
      const body = method === 'GET' ? undefined : await text(request);
      const answer = await fetch(url + request.url, {
        method,
        headers: { 'content-type': headers['content-type'] ?? '' },
        ...(body && { body }),
      });
      // As some proxies do, it passes on how long the implementation keeps its connections.
      response.writeHead(answer.status, {
        'content-type': answer.headers.get('content-type') ?? '',
        'keep-alive': 'timeout=60',
      });
      return response.end(await answer.text());
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void proxy.close());
    const { port } = proxy.address() as AddressInfo;
    const there = ['--url', `http://127.0.0.1:${port}`];
    const { stdout, stderr } = await conformance(['--profile', 'list', '--profile', 'lifecycle', ...there]);
    expect(stdout).toMatch(/^\d{2} passed, 0 failed, /m);
    expect(stderr).toBe('');
  });

  it('ends with status 1 and shows clause, request and answer of what fails', async () => {
    // Loses the tags of what is read by id.
    const alter = (provider: Provider): Provider => ({
      ...provider,
      get: async (ref, call) => {
        const found = await provider.get(ref, call);
        return found && { ...found, tags: [] };
      },
    });
    const { url } = await serverForTest({ alter });
    const [junit, badge] = [at('junit.xml'), at('badge.json')];
    const { status, stdout } = await conformance([
      '--url',
      url,
      '--profile',
      'core',
      '--junit',
      junit,
      '--badge',
      badge,
    ]);
    expect(status).toBe(1);
    const shown =
      /^FAILED {2}get\.memory: .*\n +the memory must be .*\n +GET \/memories\/\{id\}: .*\n +GET \/memories\/mem_.*\n +-> 200 application\/json.* \{/m;
    expect(stdout).toMatch(shown);
    expect(read('junit.xml')).toMatch(
      /<testcase classname="core" name="get.memory: .*"><failure message="the memory must be \{&quot;/,
    );
    expect(JSON.parse(read('badge.json'))).toMatchObject({ message: '2 failed', color: 'red' });
  });
});
