import { mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BetaLocalFilesystemMemoryTool } from '@anthropic-ai/sdk/tools/memory/node';
import { InMemoryStore, type MatchCondition } from '@langchain/langgraph-checkpoint';
import { generateText, streamText, wrapLanguageModel } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryTools, recall } from '../../clients/typescript/src/adapters/ai-sdk.ts';
import { memoryToolHandlers } from '../../clients/typescript/src/adapters/anthropic.ts';
import { MemoryStore } from '../../clients/typescript/src/adapters/langgraph.ts';
import { memoryFunctions } from '../../clients/typescript/src/adapters/openai.ts';
import { MemoryClient } from '../../clients/typescript/src/index.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';

let subject: Subject;
let client: MemoryClient;
beforeAll(async () => {
  subject = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
  client = new MemoryClient({
    url: 'http://gateway',
    fetch: async (url, init) => subject.app.request(`${url}`, init, {}),
  });
});
afterAll(() => subject.close());

/** The answer, or the message of the error. */
const outcome = (work: Promise<string>): Promise<string> => work.catch((error: Error) => `error: ${error.message}`);

describe("the handlers of Anthropic's memory tool", () => {
  const PATHS = ['/memories/a.txt', '/memories/b', '/memories/b/c d*.txt', '/memories/b/e/f', '/memories/../x', '/etc'];
  const TEXTS = ['', 'one\ntwo\nthree', 'two', '\n', 'Łukasz\n\ntwo times', ' '];
  const path = fc.constantFrom(...PATHS, '/memories');
  const text = fc.constantFrom(...TEXTS);
  const command = fc.oneof(
    fc.record({ command: fc.constant('create'), path, file_text: text }),
    fc.record({ command: fc.constant('view'), path }),
    fc.record({
      command: fc.constant('view'),
      path,
      view_range: fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: -1, max: 4 })),
    }),
    fc.record({
      command: fc.constant('str_replace'),
      path,
      old_str: fc.constantFrom('two', 'one', 'x'),
      new_str: text,
    }),
    fc.record({
      command: fc.constant('insert'),
      path,
      insert_line: fc.integer({ min: -1, max: 4 }),
      insert_text: text,
    }),
    fc.record({ command: fc.constant('delete'), path }),
    fc.record({ command: fc.constant('rename'), old_path: path, new_path: path }),
  );
  type Command = { command: 'view'; path: string } & Record<string, never>;

  /** The reference keeps empty directories, and reports their sizes as the file system does. */
  const withoutEmpty = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      const inside = join(folder, entry.name);
      await withoutEmpty(inside);
      if ((await readdir(inside)).length === 0) await rmdir(inside);
    }
  };
  /** Sizes of directories are those of the file system, and so are some errors. */
  const comparable = (answer: string): string =>
    answer
      .replaceAll(/^[\d.]+[BKM]\t(?=\/memories\S*\/$|\/memories$|\/memories\/b$)/gm, 'DIR\t')
      .replace(/^error: E[A-Z]+: .*/s, 'error');

  /** Its answers, of which each begins with `error: ` or is one, and the file at the end. */
  const edited = async (text: string, name: 'str_replace' | 'insert', input: object) => {
    const files = memoryToolHandlers(client, { userId: freshUser() });
    const path = '/memories/a';
    await files.create({ path, file_text: text });
    const answer = await outcome(files[name]({ path, ...input } as never));
    return [
      answer,
      (await files.view({ path }))
        .split('\n')
        .slice(1)
        .map((line) => line.slice(7)),
    ];
  };
  const EDITED = /^The memory file has been edited/;

  it.each<[string, string, object, RegExp, string[]]>([
    ['two lines', 'one\ntwo\nthree', { old_str: 'one\ntwo', new_str: '1\n2' }, EDITED, ['1', '2', 'three']],
    ['a line break', 'one\ntwo', { old_str: '\n', new_str: ' ' }, EDITED, ['one two']],
    ['what it removes without new_str', 'one two', { old_str: ' two' }, EDITED, ['one']],
    ['patterns as they are', 'one', { old_str: 'one', new_str: '$& $1' }, EDITED, ['$& $1']],
    [
      'nothing that is twice in one line',
      'two two',
      { old_str: 'two', new_str: 'x' },
      /occurrences of old_str `two` in lines: 1\./,
      ['two two'],
    ],
    [
      'nothing of two lines that is there twice',
      'a\nb\n\na\nb',
      { old_str: 'a\nb', new_str: 'x' },
      /in lines: 1, 4\./,
      ['a', 'b', '', 'a', 'b'],
    ],
    ['nothing without old_str', 'one', { new_str: 'x' }, /^error: Parameter `old_str` is required$/, ['one']],
    [
      'nothing for an empty old_str',
      'one',
      { old_str: '', new_str: 'x' },
      /^error: Parameter `old_str` is required$/,
      ['one'],
    ],
  ])('replace %s', async (...[, text, input, answer, lines]) => {
    expect(await edited(text, 'str_replace', input)).toEqual([expect.stringMatching(answer), lines]);
  });

  it('name what a model leaves out, and change nothing', async () => {
    expect(await edited('one', 'insert', { insert_line: 0 })).toEqual([
      'error: Parameter `insert_text` is required',
      ['one'],
    ]);
    for (const insert_line of [undefined, 0.5]) {
      expect(await edited('one', 'insert', { insert_line, insert_text: 'x' })).toEqual([
        expect.stringMatching(/^error: Invalid `insert_line` parameter: .* \[0, 1\]$/),
        ['one'],
      ]);
    }
    const files = memoryToolHandlers(client, { userId: freshUser() });
    const creating = files.create({ path: '/memories/a' } as never);
    await expect(creating).rejects.toThrow('Parameter `file_text` is required');
  });

  it('answer like the file system of the SDK, whatever is done', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 25 }), async (commands) => {
        const folder = await mkdtemp(join(tmpdir(), 'omp-files-'));
        try {
          const reference = await BetaLocalFilesystemMemoryTool.init(folder);
          const ours = memoryToolHandlers(client, { userId: freshUser() });
          for (const { command: name, ...input } of commands as unknown as Command[]) {
            const expected = comparable(await outcome(reference[name](input as never)));
            await withoutEmpty(join(folder, 'memories'));
            const answer = comparable(await outcome(ours[name](input as never)));
            expect([name, input, expected === 'error' ? answer.slice(0, 5) : answer]).toEqual([name, input, expected]);
          }
        } finally {
          await rm(folder, { recursive: true });
        }
      }),
      { numRuns: 150 },
    );
  });
});

describe('files of several agents', () => {
  it('keep every edit, because an edit of another version is done again', async () => {
    const userId = freshUser();
    const changes: number[] = [];
    const counting = new MemoryClient({
      url: 'http://gateway',
      fetch: async (url, init) => {
        const response = await subject.app.request(`${url}`, init, {});
        if (init?.method === 'PATCH') changes.push(response.status);
        return response;
      },
    });
    const agents = [1, 2, 3, 4, 5].map(() => memoryToolHandlers(counting, { userId }));
    await agents[0]?.create({ path: '/memories/a', file_text: '' });
    const insert = (line: string) => ({ path: '/memories/a', insert_line: 0, insert_text: line });
    await Promise.all(agents.map((agent, n) => agent.insert(insert(`line ${n}`))));
    const lines = (await agents[0]?.view({ path: '/memories/a' }))?.match(/line \d/g);
    expect(lines?.sort()).toEqual(['line 0', 'line 1', 'line 2', 'line 3', 'line 4']);
    expect(changes).toContain(412);
  });

  it('say that a file is gone which another one deletes during an edit', async () => {
    const userId = freshUser();
    const files = memoryToolHandlers(client, { userId });
    await files.create({ path: '/memories/a', file_text: 'one' });
    const { items } = await client.memories.list({ user_id: userId }).page();
    const meanwhile = new MemoryClient({
      url: 'http://gateway',
      fetch: async (url, init) => {
        if (init?.method === 'PATCH') await client.memories.delete(items[0]?.id ?? '').catch(() => {});
        return subject.app.request(`${url}`, init, {});
      },
    });
    const edit = memoryToolHandlers(meanwhile, { userId }).str_replace({
      path: '/memories/a',
      old_str: 'one',
      new_str: 'two',
    });
    expect(await outcome(edit)).toBe('error: The path /memories/a does not exist. Please provide a valid path.');
    const twice = await Promise.all([1, 2].map(() => files.create({ path: '/memories/b', file_text: 'x' })));
    expect(twice).toHaveLength(2);
  });

  it('stay in their scope, whatever others write there', async () => {
    const userId = freshUser();
    await client.memories.add({ user_id: userId, scope: 'files/%zz', content: 'not a file of ours' });
    await client.memories.add({ user_id: userId, scope: 'files2/secret', content: 'secret' });
    await client.memories.add({ user_id: userId, scope: 'langgraph/%zz/%', content: 'no item of ours' });
    const files = memoryToolHandlers(client, { userId });
    expect(await files.view({ path: '/memories' })).toMatch(/\t\/memories\/%zz$/);
    for (const path of ['/memories/../files2/secret', '/memories/..%2ffiles2/secret', '/memories*', '/memories/?']) {
      await expect(files.view({ path })).rejects.toThrow(/does not exist|escape/);
    }
    const store = new MemoryStore(client, { userId });
    expect(await store.listNamespaces({})).toEqual([['%zz']]);
    expect(() => memoryToolHandlers(client, { userId, scope: 'files/*' })).toThrow('must not contain');
    expect(() => new MemoryStore(client, { userId, scope: '?' })).toThrow('must not contain');
  });
});

it('[Decision 54] what untrusted keys wrote is no file and no item, since those could not show its mark', async () => {
  const userId = freshUser();
  const marked = async (scope: string, more = {}) => {
    const memory = { id: freshUser(), user_id: userId, scope, content: 'poison', ...more };
    const created_at = '2026-03-01T09:30:00.000Z';
    const memories = [{ ...memory, created_at, 'x-omp-untrusted': true }];
    expect((await subject.client.tell('POST', '/import', { memories })).text).not.toContain('error');
  };
  await marked('files/a');
  await marked('langgraph/x/%3Dk', { 'x-value': { text: 'poison' } });
  await marked('langgraph/x/=k', { 'x-value': { text: 'poison' } });
  const files = memoryToolHandlers(client, { userId });
  expect(await files.view({ path: '/memories' })).not.toContain('/memories/a');
  await expect(files.view({ path: '/memories/a' })).rejects.toThrow('does not exist');
  await files.create({ path: '/memories/a', file_text: 'tea' });
  expect(await files.view({ path: '/memories/a' })).toContain('tea');
  const store = new MemoryStore(client, { userId });
  const seen = async () => [
    ...[await store.get(['x'], 'k'), await store.search(['x']), await store.search(['x'], { query: 'poison' })],
    await store.listNamespaces({}),
  ];
  expect(await seen()).toEqual([null, [], [], []]);
  await store.put(['x'], 'k', { text: 'tea' });
  expect(JSON.stringify(await seen())).not.toContain('poison');
  expect(await store.get(['x'], 'k')).toMatchObject({ value: { text: 'tea' } });
});

describe('the LangGraph store', () => {
  const label = fc.constantFrom('tenant', 'acme', 'acme-corp', 'a/b', '100 %*', 'Łódź');
  const namespace = fc.array(label, { minLength: 1, maxLength: 3 });
  const key = fc.constantFrom('k1', 'k2', '=', 'a/b', '');
  const value = fc.record({ n: fc.integer({ min: 0, max: 3 }), name: fc.constantFrom('tea', 'coffee') });
  const filter = fc.constantFrom(
    undefined,
    { n: 1 },
    { n: { $gt: 0, $lte: 2 } },
    { name: { $ne: 'tea' } },
    { n: { $in: [0, 3] } },
  );
  const operation = fc.oneof(
    { weight: 3, arbitrary: fc.record({ namespace, key, value: fc.option(value, { freq: 4 }) }) },
    fc.record({ namespace, key }),
    fc.record({ namespacePrefix: fc.array(label, { maxLength: 2 }), filter, limit: fc.constant(100) }),
    fc.record({
      matchConditions: fc.constantFrom<(MatchCondition[] | undefined)[]>(
        undefined,
        [{ matchType: 'prefix', path: ['tenant'] }],
        [
          { matchType: 'prefix', path: ['*', 'acme'] },
          { matchType: 'suffix', path: ['acme'] },
        ],
      ),
      maxDepth: fc.constantFrom(undefined, 1, 2),
      limit: fc.constantFrom(2, 100),
      offset: fc.constantFrom(0, 1),
    }),
  );
  /** Without times, in one order; what the reference answers for a namespace whose items are deleted is no item. */
  const comparable = (result: unknown): unknown => {
    if (Array.isArray(result) && !Array.isArray(result[0])) return result.map(plain).sort();
    return Array.isArray(result) ? result : plain(result);
  };
  const plain = (item: unknown) => {
    const { namespace, key, value } = (item ?? {}) as Record<string, unknown>;
    return item == null ? null : JSON.stringify([namespace, key, value]);
  };

  it('answers like the in-memory store, whatever is done', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(operation, { minLength: 1, maxLength: 4 }), { maxLength: 8 }),
        async (batches) => {
          const reference = new InMemoryStore();
          const ours = new MemoryStore(client, { userId: freshUser() });
          let deleted = false;
          for (const batch of batches) {
            // The reference lists namespaces whose items are all deleted; such a listing is not compared.
            const compared = batch.filter((one) => !('matchConditions' in one && deleted));
            for (const one of batch) deleted ||= 'value' in one && one.value === null;
            // The reference answers its own items, which the puts of a batch then change: so it reads first.
            const expected = [];
            for (const one of compared) {
              const [result] = 'value' in one ? [] : await reference.batch([one]);
              expected.push(comparable(result));
            }
            await reference.batch(compared);
            const given = await ours.batch(compared);
            expect([compared, given.map(comparable)]).toEqual([compared, expected]);
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  it('searches by meaning within whole labels, and pages', async () => {
    const store = new MemoryStore(client, { userId: freshUser() });
    await store.put(['tenant', 'acme'], 'a', { text: 'prefers green tea' });
    await store.put(['tenant', 'acme-corp'], 'b', { text: 'prefers green tea' });
    await store.put(['tenant', 'acme', 'x'], 'c', { text: 'lives in Oslo' });
    const found = await store.search(['tenant', 'acme'], { query: 'green tea' });
    expect(found.map(({ key }) => key)).toEqual(['a', 'c']);
    expect(found[0]?.score).toBeGreaterThan(found[1]?.score as number);
    const named = new MemoryStore(client, { userId: freshUser(), textOf: ({ title }) => `${title}` });
    await named.put(['x'], 'k', { title: 'drinks', text: 'green tea' });
    await named.put(['x'], 'l', { title: 'green tea', text: 'drinks' });
    const [best, other] = await named.search(['x'], { query: 'green tea' });
    expect([best?.key, (best?.score as number) > 2 * (other?.score as number)]).toEqual(['l', true]);
    const pages = [0, 1, 2].map((offset) => store.search(['tenant'], { limit: 1, offset }));
    expect((await Promise.all(pages)).flat().map(({ key }) => key)).toEqual(['c', 'b', 'a']);
    expect(await store.search(['tenant'], { limit: 0 })).toEqual([]);
    await expect(store.put(['a.b'], 'k', {})).rejects.toThrow(/periods/);
  });
});

describe('tools for models', () => {
  const asText = (content: string) => ({ content: [{ type: 'text' as const, text: content }] });

  it('see one user and one scope, and answer errors', async () => {
    const userId = freshUser();
    const stranger = await client.memories.add({ user_id: userId, content: 'likes tea', scope: 'acme-corp' });
    const { tools, chatTools, run } = memoryFunctions(client, { userId, scope: 'acme' });
    const call = async (name: string, input: object) => JSON.parse(await run(name, JSON.stringify(input)));
    const { id } = await call('add_memory', { content: 'likes green tea' });
    expect(await client.memories.get(id)).toMatchObject({ user_id: userId, scope: 'acme' });
    expect((await call('search_memories', { query: 'tea' })).map((found: { id: string }) => found.id)).toEqual([id]);
    expect((await call('list_memories', {})).map((found: { id: string }) => found.id)).toEqual([id]);
    expect(await call('update_memory', { id, content: 'likes mint tea' })).toMatchObject({ content: 'likes mint tea' });
    for (const name of ['update_memory', 'delete_memory']) {
      expect(await call(name, { id: stranger.id, content: 'x' })).toEqual({ error: 'no memory has this id' });
    }
    expect(await call('delete_memory', { id })).toEqual({ deleted: id });
    expect(await call('add_memory', { content: '' })).toEqual({ error: expect.stringContaining('content') });
    for (const [name, input, field] of [
      ['add_memory', {}, 'content'],
      ['search_memories', { query: 1 }, 'query'],
      ['list_memories', { limit: 1e9 }, 'limit'],
      ['list_memories', { limit: 'all' }, 'limit'],
      ['delete_memory', null, 'id'],
      ['delete_memory', { id: '..' }, 'id'],
    ] as const) {
      expect(JSON.parse(await run(name, JSON.stringify(input)))).toEqual({ error: expect.stringContaining(field) });
    }
    expect(await call('list_memories', { limit: null })).toEqual([]);
    expect(await call('unknown', {})).toEqual({ error: 'no tool has the name unknown' });
    expect(JSON.parse(await run('add_memory', '{'))).toEqual({ error: 'the arguments are not JSON' });
    expect(tools.map(({ name, strict }) => [name, strict])).toEqual(chatTools.map((one) => [one.function.name, false]));
  });

  it('[Decision 12] [Decision 45] leave out what is outdated unless the model asks, and add as the application', async () => {
    const userId = freshUser();
    const { run, tools } = memoryFunctions(client, { userId });
    const call = async (name: string, input: object) => JSON.parse(await run(name, JSON.stringify(input)));
    const old = await call('add_memory', { content: 'lives in Lisbon' });
    const now = await client.memories.add({ user_id: userId, content: 'lives in Porto', supersedes: [old.id] });
    const idsOf = (found: { id: string }[]) => found.map(({ id }) => id);
    expect(idsOf(await call('search_memories', { query: 'lives in' }))).toEqual([now.id]);
    expect(idsOf(await call('list_memories', {}))).toEqual([now.id]);
    const all = await call('search_memories', { query: 'lives in', current: false });
    const marks = all.map((one: Record<string, unknown>) => [one.id, one['x-superseded-by']]);
    expect(new Map(marks)).toEqual(
      new Map([
        [old.id, [now.id]],
        [now.id, undefined],
      ]),
    );
    expect(idsOf(await call('list_memories', { current: false }))).toEqual([now.id, old.id]);
    expect(await call('list_memories', { current: 'no' })).toEqual({ error: expect.stringContaining('current') });
    expect(tools.map(({ parameters }) => parameters.required)).not.toContainEqual(expect.arrayContaining(['current']));

    const store = new MemoryStore(client, { userId });
    await store.put(['homes'], 'a', { text: 'lives in Faro' });
    const [item] = (await client.memories.list({ user_id: userId, scope: 'langgraph/*' }).page()).items;
    expect(item?.source).toEqual({ app: 'langgraph', type: 'extracted' });
    await client.memories.add({
      user_id: userId,
      content: 'lives in Beja',
      supersedes: [item?.id ?? ''],
      scope: 'langgraph/homes/b',
    });
    const everything = new MemoryStore(client, { userId, current: false });
    const query = { query: 'lives in Faro' };
    const keys = async (from: MemoryStore) =>
      (await from.search(['homes'], query)).filter(({ key }) => key === 'a').length;
    expect([await keys(store), await keys(everything)]).toEqual([0, 1]);
  });

  it('[Decision 45] name the application as the source, where there is a place for one', async () => {
    const sourceOf = async (add: (through: MemoryClient, userId: string) => unknown, from = client) => {
      const userId = freshUser();
      await add(from, userId);
      const { items } = await client.memories.list({ user_id: userId }).page();
      return items.map(({ source }) => source);
    };
    const content = 'likes tea';
    const withoutPlace = new MemoryClient({
      url: 'http://gateway',
      fetch: async (url, init) => {
        if (!`${init?.body}`.includes('"source"')) return subject.app.request(`${url}`, init, {});
        const error = { code: 'unsupported_capability', message: 'source: no place', type: 'invalid' };
        return Response.json({ error }, { status: 400 });
      },
    });
    const adapters = [
      ['openai', (c, userId) => memoryFunctions(c, { userId }).run('add_memory', JSON.stringify({ content }))],
      ['ai-sdk', (c, userId) => memoryTools(c, { userId }).add_memory?.execute?.({ content }, {} as never)],
      [
        'anthropic',
        (c, userId) => memoryToolHandlers(c, { userId }).create({ path: '/memories/a', file_text: content }),
      ],
      ['langgraph', (c, userId) => new MemoryStore(c, { userId }).put(['a'], 'b', { content })],
      [
        'mine',
        (c, userId) => memoryFunctions(c, { userId, app: 'mine' }).run('add_memory', JSON.stringify({ content })),
      ],
    ] as const satisfies readonly (readonly [string, (through: MemoryClient, userId: string) => unknown])[];
    for (const [app, add] of adapters) {
      expect(await sourceOf(add)).toEqual([{ app, type: 'extracted' }]);
      expect(await sourceOf(add, withoutPlace), app).toEqual([null]);
    }
  });

  it('run in the AI SDK, where recalled memories are in front of the prompt, streaming or not', async () => {
    const userId = freshUser();
    const { id } = await client.memories.add({ user_id: userId, scope: 'app', content: 'prefers pnpm over npm' });
    await client.memories.add({ user_id: userId, scope: 'private', content: 'pnpm or npm: a secret' });
    const usage = {
      inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: 1, text: 1, reasoning: undefined },
    };
    const finishReason = { unified: 'stop' as const, raw: undefined };
    const inner = new MockLanguageModelV4({
      doGenerate: [
        {
          content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'delete_memory', input: JSON.stringify({ id }) }],
          finishReason: { unified: 'tool-calls', raw: undefined },
          usage,
          warnings: [],
        },
        { ...asText('done'), finishReason, usage, warnings: [] },
      ],
      doStream: {
        stream: simulateReadableStream({
          chunks: [
            { type: 'text-start', id: '1' },
            { type: 'text-delta', id: '1', delta: 'yes' },
            { type: 'text-end', id: '1' },
            { type: 'finish', finishReason, usage },
          ],
        }),
      },
    });
    const model = wrapLanguageModel({
      model: inner,
      middleware: recall(client, { userId, scope: 'app', request: {} }),
    });
    const prompt = 'Which package manager, pnpm or npm?';
    expect(await streamText({ model, prompt }).text).toBe('yes');
    const recalled = { role: 'system', content: expect.stringContaining('prefers pnpm over npm') };
    expect(inner.doStreamCalls[0]?.prompt[0]).toMatchObject(recalled);
    expect(inner.doStreamCalls[0]?.prompt[0]?.content).not.toContain('secret');
    const { steps } = await generateText({
      model,
      prompt,
      tools: memoryTools(client, { userId }),
      stopWhen: ({ steps }) => steps.length === 2,
    });
    expect(inner.doGenerateCalls[0]?.prompt[0]).toMatchObject(recalled);
    expect(steps[0]?.toolResults[0]?.output).toEqual({ deleted: id });
  });

  it('answer without memories when the gateway fails', async () => {
    const errors: unknown[] = [];
    const down = new MemoryClient({ url: 'http://gateway', fetch: async () => Promise.reject(new Error('down')) });
    const middleware = recall(down, { userId: 'u', onError: (error) => errors.push(error) });
    const params = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] }] };
    const transformed = await middleware.transformParams?.({
      type: 'generate',
      params,
      model: new MockLanguageModelV4(),
    });
    expect([transformed, errors.length]).toEqual([params, 1]);
  });
});
