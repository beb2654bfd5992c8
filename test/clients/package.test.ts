import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { build, type Rollup } from 'vite';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { blocks, read } from '../docs/markdown.ts';
import { temporaryFolder } from '../process/gateway.ts';
import { CHROMIUM_OPTIONS, hasChromium } from '../support/chromium.ts';
import { serverForTest } from '../support/server.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const CLIENT = join(ROOT, 'clients/typescript');

const packed = mkdtempSync(join(tmpdir(), 'omp-client-'));
let tarball: string;
/** An empty folder with the packed client; it has no dependencies, so nothing is fetched. */
const install = (): string => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'package.json'), '{"private": true, "type": "module"}');
  execFileSync('npm', ['install', '--silent', '--offline', '--no-audit', '--legacy-peer-deps', tarball], {
    cwd: folder,
  });
  return folder;
};
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A model that the page of the AI SDK imports: it calls a tool, then repeats its instructions and what the tool answered. */
const MODEL = `
  import { MockLanguageModelV4 } from 'ai/test';
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const call = { type: 'tool-call', toolCallId: 'c', toolName: 'search_memories', input: '{"query":"tea"}' };
  export const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const answered = prompt.at(-1).role === 'tool';
      const text = JSON.stringify([prompt[0], prompt.at(-1)]);
      const content = answered ? [{ type: 'text', text }] : [call];
      return { content, finishReason: { unified: answered ? 'stop' : 'tool-calls' }, usage, warnings: [] };
    },
  });`;

/** The calls of tools, and of Anthropic's tool, that a model makes before it repeats what the last one answered. */
const CALLS = [
  { name: 'add_memory', arguments: '{"content":"likes green tea"}' },
  { name: 'search_memories', arguments: '{"query":"which tea?"}' },
];
const COMMANDS = [
  { command: 'create', path: '/memories/tastes.md', file_text: 'likes green tea' },
  { command: 'view', path: '/memories/tastes.md' },
];

/** A model with the interfaces of OpenAI and Anthropic. */
const modelServer: RequestListener = async (request, response) => {
  const { input = [], messages = [] } = JSON.parse(await text(request)) as { input?: object[]; messages?: object[] };
  response.setHeader('content-type', 'application/json');
  if (request.url?.endsWith('/responses')) {
    const outputs = input.filter((item) => 'output' in item) as { output: string }[];
    const call = CALLS[outputs.length];
    const content = [{ type: 'output_text', text: `${outputs.at(-1)?.output}`, annotations: [] }];
    const message = { type: 'message', id: 'm', role: 'assistant', status: 'completed', content };
    const output = [call ? { type: 'function_call', id: 'f', call_id: `c${outputs.length}`, ...call } : message];
    response.end(JSON.stringify({ id: 'r', object: 'response', output }));
  } else {
    // The SDK need not send the messages before.
    const [, answered] = /"tool_use_id":"t(\d)"/.exec(JSON.stringify(messages.at(-1))) ?? [];
    const next = answered === undefined ? 0 : Number(answered) + 1;
    const command = COMMANDS[next];
    const use = { type: 'tool_use', id: `t${next}`, name: 'memory', input: command };
    const content = [command ? use : { type: 'text', text: JSON.stringify(messages.at(-1)) }];
    const stop_reason = command ? 'tool_use' : 'end_turn';
    response.end(JSON.stringify({ id: 'm', type: 'message', role: 'assistant', content, stop_reason, usage: {} }));
  }
};

describe('the packed client', () => {
  beforeAll(async () => {
    const { stdout } = await run('npm', ['pack', '--silent', CLIENT, '--pack-destination', packed], { cwd: ROOT });
    tarball = join(packed, stdout.trim());
  });
  afterAll(() => rmSync(packed, { recursive: true }));

  it('is loaded by import and by require, and brings nothing along', async () => {
    const folder = install();
    const print = '(({ MemoryClient, NotFoundError }) => console.log(typeof MemoryClient, typeof NotFoundError))';
    const imported = await run('node', ['-e', `import('omp-gateway-client').then${print}`], { cwd: folder });
    const required = await run('node', ['--input-type=commonjs', '-e', `${print}(require('omp-gateway-client'))`], {
      cwd: folder,
    });
    expect([imported.stdout, required.stdout]).toEqual(['function function\n', 'function function\n']);
    const { stdout } = await run('npm', ['ls', '--all', '--parseable'], { cwd: folder });
    expect(stdout.trim().split('\n')).toHaveLength(2);
  });

  it.each(['nodenext', 'bundler'])('has types for the module resolution "%s"', async (resolution) => {
    const folder = install();
    writeFileSync(
      join(folder, 'use.mts'),
      `import { MemoryClient, type Memory, RateLimitedError } from 'omp-gateway-client';
       import { memoryToolHandlers } from 'omp-gateway-client/anthropic';
       const client = new MemoryClient({ url: 'http://x' });
       export const memory: Promise<Memory> = client.memories.get('a');
       export const handlers = memoryToolHandlers(client, { userId: 'u' });
       // @ts-expect-error: content is required
       client.memories.add({ user_id: 'u' });
       export const wait = (error: RateLimitedError): number | undefined => error.retryAfter;`,
    );
    const module = resolution === 'bundler' ? 'esnext' : resolution;
    const options = [
      '--noEmit',
      '--strict',
      '--lib',
      'es2023,dom',
      '--module',
      module,
      '--moduleResolution',
      resolution,
    ];
    await run(join(ROOT, 'node_modules/.bin/tsc'), [...options, '--types', '', 'use.mts'], { cwd: folder });
  });

  it('runs the first example of its page', async () => {
    const folder = install();
    const { url } = await serverForTest();
    const [code] = blocks(read('docs/integrations/client.md')).filter(({ language }) => language === 'js');
    writeFileSync(join(folder, 'first.mjs'), (code?.code ?? '').replace('http://127.0.0.1:8080', url));
    expect((await run(process.execPath, ['first.mjs'], { cwd: folder })).stdout).toBe('prefers pnpm over npm\n');
  });

  it('runs the chat of the documentation', async () => {
    const folder = install();
    const chat = blocks(read('docs/integrations/client.md')).filter(({ language }) => language === 'js')[1]?.code;
    writeFileSync(join(folder, 'chat.mjs'), chat ?? '');
    const { url } = await serverForTest();
    // A model that repeats what it was told about the user.
    const model = await serve(async (request, response) => {
      const { messages } = JSON.parse(await text(request)) as { messages: { content: string }[] };
      response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: messages[0]?.content } }] }));
    });
    const talk = async (...lines: string[]): Promise<string> => {
      const env = { PATH: process.env.PATH, GATEWAY_URL: url, MODEL_URL: model };
      const child = spawn(process.execPath, ['chat.mjs'], { cwd: folder, env });
      child.stdin.end(lines.join('\n'));
      return text(child.stdout);
    };
    expect(await talk('remember: I take my tea without sugar')).toBe('(remembered)\n');
    expect(await talk('How do I take my tea?')).toContain('I take my tea without sugar');
  });

  it.each(['ai-sdk', 'anthropic-memory-tool', 'langgraph', 'openai'])(
    'runs the code of docs/integrations/%s.md, with a model that calls the tools',
    async (page) => {
      const folder = install();
      // What an application installs beside the client.
      for (const name of ['ai', '@ai-sdk', '@anthropic-ai', '@langchain', 'openai']) {
        symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
      }
      const { url, client } = await serverForTest();
      const [code] = blocks(read(`docs/integrations/${page}.md`)).filter(({ language }) => language === 'js');
      writeFileSync(join(folder, 'model.js'), MODEL);
      writeFileSync(join(folder, 'page.js'), (code?.code ?? '').replaceAll('http://127.0.0.1:8080', url));
      const model = await serve(modelServer);
      const env = {
        PATH: process.env.PATH,
        ...{ OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: `${model}/v1` },
        ...{ ANTHROPIC_API_KEY: 'sk-test', ANTHROPIC_BASE_URL: model },
      };
      const { stdout } = await run(process.execPath, ['page.js'], { cwd: folder, env });
      expect(stdout).toMatch(/green tea/);
      // What the model was told came from the gateway.
      expect((await client.list({ user_id: 'ana' })).items).toHaveLength(1);
    },
  );

  it('is small, and works on a page of another origin', async () => {
    const folder = install();
    writeFileSync(join(folder, 'entry.js'), "export * from 'omp-gateway-client';");
    const [bundle] = (await build({
      root: folder,
      logLevel: 'silent',
      build: { write: false, minify: true, lib: { entry: 'entry.js', formats: ['es'] } },
    })) as Rollup.RollupOutput[];
    const { code } = (bundle as Rollup.RollupOutput).output[0];
    const [, documented] = /less than (\d+) kB, minified and gzipped/.exec(read('docs/integrations/client.md')) ?? [];
    expect(gzipSync(code).length).toBeLessThan(Number(documented) * 1_000);
    if (!hasChromium) return;

    const origin = await serve((request, response) => {
      const [type, body] = request.url === '/client.js' ? ['text/javascript', code] : ['text/html', '<!doctype html>'];
      response.writeHead(200, { 'content-type': type }).end(body);
    });
    const { url } = await serverForTest({ cors_origins: [origin] });
    const profile = temporaryFolder();
    const browser = await chromium.launchPersistentContext(profile, CHROMIUM_OPTIONS);
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    await page.goto(origin);
    const contents = await page.evaluate(
      `import('/client.js').then(async ({ MemoryClient, NotFoundError }) => {
        const client = new MemoryClient({ url: ${JSON.stringify(url)} });
        await client.memories.add({ user_id: 'u', content: 'likes Łódź' });
        const { results } = await client.memories.search({ user_id: 'u', q: 'Łódź' });
        const missing = await client.memories.get('no').catch((error) => error instanceof NotFoundError && error.requestId);
        return [results[0].memory.content, typeof missing];
      })`,
    );
    expect(contents).toEqual(['likes Łódź', 'string']);
  });
});
