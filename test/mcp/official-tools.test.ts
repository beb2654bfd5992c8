import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { loopbackHosts } from '../../src/http/admission.ts';
import { DEFAULT_TOOLS } from '../../src/mcp/names.ts';
import { dataFolder, temporaryFolder } from '../process/gateway.ts';
import { serverForTest } from '../support/server.ts';
import { recordingLog } from '../support/subject.ts';
import type { WireHit, WireMemory } from '../support/wire.ts';
import { mountFixtures } from './conformance-fixtures.ts';

// The official conformance runner and the official inspector's command line.

const FOLDER = resolve('test/mcp-checks/node_modules/@modelcontextprotocol');
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
/** Why they cannot run; undefined: they can. */
const MISSING =
  major < 22 || (major === 22 && minor < 19)
    ? 'they need Node 22.19'
    : existsSync(FOLDER)
      ? undefined
      : 'they are not installed: npm ci --prefix test/mcp-checks';

interface Ending {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a script with Node to its end. */
const run = (script: string, args: readonly string[]): Promise<Ending> =>
  new Promise((done) => {
    const cwd = temporaryFolder();
    const options = { cwd, env: { PATH: process.env.PATH, HOME: cwd }, maxBuffer: 2 ** 24 };
    execFile(process.execPath, [join(FOLDER, script), ...args], options, (error, stdout, stderr) =>
      done({ status: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });

interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
}

/** Checks that fail because the gateway does not offer what they are about, by revision: no others may, and all of these must. */
const EXPECTED_FAILURES: Readonly<Record<string, readonly string[]>> = {
  '2025-11-25': [
    // No completion of arguments.
    'completion-complete:completion-complete',
    // No questions to the client: elicitation and sampling.
    'elicitation-sep1034-defaults:elicitation-sep1034-general',
    'elicitation-sep1330-enums:elicitation-sep1330-general',
    'tools-call-elicitation:tools-call-elicitation',
    'tools-call-sampling:tools-call-sampling',
    // No log messages to the client.
    'logging-set-level:logging-set-level',
    'tools-call-with-logging:tools-call-with-logging',
    // No subscriptions.
    'resources-subscribe:resources-subscribe',
    'resources-unsubscribe:resources-unsubscribe',
    // No sessions. A warning.
    'server-sse-multiple-streams:server-sse-multiple-streams-session',
  ],
  '2026-07-28': [
    'completion-complete:completion-complete',
    // No tool that asks the client for input.
    'input-required-result-basic-elicitation:sep-2322-elicitation-incomplete',
    'input-required-result-basic-list-roots:sep-2322-list-roots-incomplete',
    'input-required-result-basic-sampling:sep-2322-sampling-incomplete',
    'input-required-result-capability-check:sep-2322-respect-client-capabilities',
    'input-required-result-ignore-extra-params:sep-2322-ignore-unexpected-params',
    'input-required-result-missing-input-response:sep-2322-missing-response-rerequests',
    'input-required-result-multi-round:sep-2322-multi-round-r1',
    'input-required-result-multiple-input-requests:sep-2322-multiple-inputs-incomplete',
    'input-required-result-non-tool-request:sep-2322-non-tool-incomplete',
    'input-required-result-request-state:sep-2322-request-state-incomplete',
    'input-required-result-result-type:sep-2322-result-type-included',
    'input-required-result-tampered-state:sep-2322-reject-tampered-state',
    'server-stateless:sep-2575-http-server-no-independent-requests-on-stream',
    'server-stateless:sep-2575-missing-capability-http-400',
    'server-stateless:sep-2575-server-rejects-undeclared-capability',
    // No log messages to the client.
    'server-stateless:sep-2575-server-no-log-without-loglevel',
    // No subscriptions.
    'server-stateless:sep-2575-server-sends-subscription-ack',
    'server-stateless:sep-2575-server-tags-subscription-id',
  ],
};

/** The figures that docs/integrations/mcp.md states. */
const documented = readFileSync('docs/integrations/mcp.md', 'utf8');

describe.skipIf(MISSING)('[Decision 45] the official conformance runner', () => {
  it.for(Object.keys(EXPECTED_FAILURES))('passes what revision %s requires, as the documents say', async (revision) => {
    mountFixtures();
    const { url } = await serverForTest({ mcp: { enabled: 'on' }, allowed_hosts: loopbackHosts });
    const folder = temporaryFolder();
    await run('conformance/dist/index.js', [
      ...['server', '--url', `${url}/mcp/ana`, '--requirements', revision, '--output-dir', folder],
    ]);
    const requirements = await readFile(join(FOLDER, `conformance/requirements/${revision}.yaml`), 'utf8');
    const { server: required } = parse(requirements) as { server: string[] };
    const checks = (await readdir(folder)).flatMap((name) => {
      const scenario = required.find((each) => name.startsWith(`server-${each}-20`));
      const read = () => JSON.parse(readFileSync(join(folder, name, 'checks.json'), 'utf8')) as Check[];
      return scenario ? read().map(({ id, status }) => ({ name: `${scenario}:${id}`, status })) : [];
    });
    const having = (...statuses: string[]) => checks.filter(({ status }) => statuses.includes(status));
    const failed = having('FAILURE', 'WARNING').map(({ name }) => name);
    expect(failed.sort()).toEqual([...(EXPECTED_FAILURES[revision] ?? [])].sort());
    const passed = having('SUCCESS').length;
    const row = [revision, required.length, passed + failed.length, passed, failed.length];
    const rows = documented.split('\n').filter((line) => line.startsWith(`| ${revision} |`));
    expect(rows).toEqual([`| ${row.join(' | ')} |`]);
  });
});

describe.skipIf(MISSING)("[Decision 45] the inspector's command line", () => {
  const inspect = (target: readonly string[], ...args: string[]) =>
    run('inspector/clients/launcher/build/index.js', ['--cli', ...target, ...args, '--format', 'json']);

  async function call<Result>(target: readonly string[], tool: string, ...args: string[]): Promise<Result> {
    const pairs = args.flatMap((each) => ['--tool-arg', each]);
    const { status, stdout, stderr } = await inspect(target, '--method', 'tools/call', '--tool-name', tool, ...pairs);
    if (status !== 0) throw new Error(`${status}: ${stdout}${stderr}`);
    return (JSON.parse(stdout) as { result: { structuredContent: Result } }).result.structuredContent;
  }

  /** Lists the tools, adds a memory, finds it and deletes it. */
  async function useTools(target: readonly string[]): Promise<void> {
    const listed = JSON.parse((await inspect(target, '--method', 'tools/list')).stdout);
    expect(listed.result.tools.map(({ name }: { name: string }) => name)).toEqual(DEFAULT_TOOLS);
    const { id } = await call<WireMemory>(target, 'add_memory', 'content=drinks green tea');
    const { results } = await call<{ results: WireHit[] }>(target, 'search_memories', 'query=tea');
    expect(results.map(({ memory }) => memory.id)).toEqual([id]);
    expect(await call(target, 'delete_memory', `id=${id}`)).toEqual({ deleted: id });
    expect(await call(target, 'list_memories')).toEqual({ items: [], next_cursor: null });
  }

  it('uses the tools over stdio', async () => {
    const env = ['-e', `OMP_DATA_DIR=${await dataFolder()}`, '-e', 'OMP_SEARCH_MODE=keyword'];
    await useTools([...env, process.execPath, resolve('dist/src/main.js'), 'mcp', '--user', 'ana']);
  });

  it('uses the tools over HTTP with a key, and is refused with a wrong one', async () => {
    const fresh = newKey();
    const keys = [{ name: 'ana', key: toHashedKey(fresh), users: ['ana'], grants: ['*:*'] }];
    const authenticator = await openAuthenticator({
      ...{ keys, store: undefined, jwt: undefined, required: true, log: recordingLog() },
    });
    onTestFinished(() => authenticator.close());
    const { url } = await serverForTest({ mcp: { enabled: 'on' }, authenticator });
    const withKey = (used: string) => [`${url}/mcp`, '--header', `Authorization: Bearer ${used}`];
    await useTools(withKey(fresh.key));
    const { status, stderr } = await inspect(
      [...withKey(newKey().key), '--stored-auth-only'],
      '--method',
      'tools/list',
    );
    expect([status, stderr]).toEqual([3, expect.stringContaining('auth_required')]);
  });
});
