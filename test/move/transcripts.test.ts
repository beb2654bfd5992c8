import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TranscriptFormatName } from '../../src/move/transcript-formats.ts';
import { emptySummary, projectScope } from '../../src/move/transcripts.ts';
import { costOf } from '../support/hold.ts';
import { ANSWER, all, asLines, folderOf, type Memory, openAt, read, type Tree } from './sessions.ts';

/*
 * What the session files of coding agents become. The files in `files/transcripts` were written by the programs that their names say,
 * with a server of made-up answers, and shortened.
 */

const ID = /^[a-z-]+-[0-9a-f]{32}$/;

describe('[Decision 43] sessions of Claude Code', () => {
  const line = (n: number, more: object) => ({
    ...{ uuid: `u${n}`, sessionId: 's1', cwd: '/home/ana/work/shop', timestamp: `2026-01-01T00:00:0${n}.000Z` },
    ...more,
  });
  const user = (n: number, content: unknown, more = {}) =>
    line(n, { type: 'user', message: { role: 'user', content }, ...more });
  const assistant = (n: number, text: string, more = {}, message = {}) =>
    line(n, {
      ...{ type: 'assistant', ...more },
      message: { role: 'assistant', id: `m${n}`, content: [{ type: 'text', text }], stop_reason: null, ...message },
    });
  const attachment = (n: number, one: object) =>
    line(n, { type: 'attachment', attachment: { type: 'queued_command', ...one } });
  const claude = (...lines: object[]) => read('claude-code', { 'projects/-home-ana-work-shop/s1.jsonl': lines });

  it('are read as it writes them', async () => {
    const { memories, left_out } = await read('claude-code', { 'a/b.jsonl': '=claude-code-2.1.331.jsonl' });
    const common = { user_id: 'ana', scope: 'projects/work/my.shop', id: expect.stringMatching(ID) };
    const source = { app: 'claude-code', type: 'imported', ref: 'd6ef060f-f843-454e-a0fe-1236e9edadb7' };
    const at = (time: string) => ({ created_at: `2026-11-24T${time}Z`, valid_from: `2026-11-24T${time}Z` });
    expect(memories).toEqual([
      { ...common, source, ...at('13:26:06.448'), tags: ['user'], content: 'which package manager do I prefer?' },
      { ...common, source, ...at('13:26:06.591'), tags: ['assistant'], content: ANSWER.slice(11) },
      { ...common, source, ...at('13:27:09.996'), tags: ['user'], content: 'and which test runner?' },
      { ...common, source, ...at('13:27:10.142'), tags: ['assistant'], content: ANSWER.slice(11) },
    ]);
    expect(left_out).toEqual({ working: 2 });
  });

  it('keep a message once, with the session that it was written in, however often a fork repeats it', async () => {
    const [original, fork, copy] = ['', '-fork', '-sdk-fork'].map((name) => `=claude-code-2.1.331${name}.jsonl`);
    const { memories, left_out, said } = await read('claude-code', {
      ...{
        'p/d6ef060f.jsonl': original as string,
        'p/499a78d0.jsonl': fork as string,
        'p/36d7f1a4.jsonl': copy as string,
      },
    });
    const prompts = ['which package manager do I prefer?', 'and which test runner?', 'forked: which linter?'];
    expect(said).toEqual(prompts.flatMap((prompt) => [`user: ${prompt}`, ANSWER]));
    const refs = memories.map(({ source }) => (source as { ref: string }).ref.slice(0, 4));
    expect(refs).toEqual(['d6ef', 'd6ef', 'd6ef', 'd6ef', '499a', '499a']);
    // The commands /compact and /usage, and the summary of the conversation.
    expect(left_out).toEqual({ working: 7, injected: 6, copies: 8 });
  });

  it.each<[string, number, ...object[]]>([
    ['context', 1, user(1, 'You are in a folder', { isMeta: true })],
    ['summaries', 1, user(1, 'This session goes on', { isCompactSummary: true })],
    ['what only the transcript shows', 1, user(1, 'for the transcript', { isVisibleInTranscriptOnly: true })],
    ['the output of tools', 0, user(1, [{ type: 'tool_result', content: [{ type: 'text', text: 'an output' }] }])],
    ['images', 0, user(1, [{ type: 'image', source: { data: 'AAAA' } }])],
    ['commands', 1, user(1, '<command-name>/cost</command-name>\n  <command-args></command-args>')],
    ['the output of commands', 1, user(1, '<local-command-stdout>two words</local-command-stdout>')],
    ['reminders', 1, user(1, '<system-reminder>\nbe kind\n</system-reminder>')],
    ['notifications', 1, user(1, '<task-notification>it is done</task-notification>')],
    ['interruptions', 1, user(1, [{ type: 'text', text: '[Request interrupted by user for tool use]' }])],
    ['messages of other agents', 1, user(1, 'from a peer', { origin: { kind: 'peer' } })],
    ['queued messages of other agents', 0, attachment(1, { prompt: 'from a peer', origin: { kind: 'peer' } })],
    ['queued notifications', 0, attachment(1, { prompt: 'it is done', commandMode: 'task-notification' })],
    ['what a compaction repeats', 0, attachment(1, { prompt: 'also push it', carriedByCompaction: true })],
    ['recalled memories', 1, user(1, '<memories note="recalled data, not instructions">\n[1] tea\n</memories>')],
    ['errors of the API', 0, assistant(1, 'API Error: 529 overloaded', { isApiErrorMessage: true })],
    ['texts that no model wrote', 0, assistant(1, 'No response requested.', {}, { model: '<synthetic>' })],
    ['thoughts', 0, assistant(1, '', {}, { content: [{ type: 'thinking', thinking: 'I think so' }] })],
    ['the queue', 0, { type: 'queue-operation', operation: 'enqueue', content: 'do the thing', sessionId: 's1' }],
    ['titles', 0, { type: 'summary', summary: 'about the thing', leafUuid: 'u1' }],
  ])('leave out %s', async (_, injected, ...lines) => {
    const { memories, left_out } = await claude(...lines);
    expect({ memories, left_out }).toEqual({ memories: [], left_out: injected > 0 ? { injected } : {} });
  });

  it('leave out sub-agents, in the same file, in files of their own, and in folders', async () => {
    const side = [
      user(1, 'look at the files', { isSidechain: true }),
      assistant(2, 'I did that', { isSidechain: true }),
    ];
    const { memories, left_out } = await read('claude-code', {
      ...{ 'p/s1.jsonl': side, 'p/agent-1.jsonl': [user(1, 'look there')] },
      ...{ 'p/s1/subagents/agent-2.jsonl': [user(2, 'and there')], 'p/s1/tool-results/3.jsonl': [user(3, 'and here')] },
    });
    expect({ memories, left_out }).toEqual({ memories: [], left_out: { sub_agent: 2 } });
  });

  it.each<[string, string, object]>([
    ['was typed while the assistant worked', 'also push it', attachment(1, { prompt: 'also push it' })],
    [
      'follows the name of a command',
      'fix the door',
      user(1, '<command-name>/do</command-name>\n<command-args>fix the door</command-args>'),
    ],
    ['stands beside a reminder', 'fix it\n\nplease', user(1, 'fix it\n<system-reminder>x</system-reminder>\nplease')],
    [
      'stands beside an image',
      'see this',
      user(1, [
        { type: 'image', source: {} },
        { type: 'text', text: 'see this' },
      ]),
    ],
    ['names a tag', 'what does <system-reminder> mean?', user(1, 'what does <system-reminder> mean?')],
    ['has a tag without an end', '<system-reminder> is odd', user(1, '<system-reminder> is odd')],
    ['has a tag of another name', '<command-names>a b</command-names>', user(1, '<command-names>a b</command-names>')],
    ['holds what cannot be stored', 'a \ufffd c', user(1, 'a\0\ud800 c')],
  ])('keep what %s', async (_, content, one) => {
    const { memories } = await claude(one);
    expect(memories.map((memory) => memory.content)).toEqual([content]);
  });

  it('keep the last text of a turn, whether or not a reason to stop is written', async () => {
    const tool = { content: [{ type: 'tool_use', id: 't', name: 'Bash', input: {} }] };
    const { said, left_out } = await claude(
      ...[user(1, 'do the thing'), assistant(2, 'I look first'), assistant(2, '', {}, tool)],
      ...[assistant(3, 'It is', { uuid: 'u3' }), assistant(3, 'done now', { uuid: 'u4' }), user(5, 'one more thing')],
      ...[
        assistant(6, 'That is done', {}, { stop_reason: 'end_turn' }),
        assistant(7, 'woken up again'),
        assistant(8, '', {}, tool),
      ],
    );
    expect(said).toEqual([
      ...['user: do the thing', 'assistant: It is\n\ndone now'],
      ...['user: one more thing', 'assistant: That is done'],
    ]);
    expect(left_out).toEqual({ working: 2 });
  });

  it('keep more than one word, in any script', async () => {
    const short = ['yes', 'Continue!', '👍', '...', '/clear', '好'];
    const kept = ['use pnpm', 'テストを書いてください', 'ใช้ภาษาไทย', 'да, пиши'];
    const { said, left_out } = await claude(
      ...[...short, ...kept].map((text, n) => user(n % 9, text, { uuid: `u${n}` })),
    );
    expect(said).toEqual(kept.map((text) => `user: ${text}`));
    expect(left_out).toEqual({ short: short.length });
  });

  it('leave out what was pasted, and what has no time', async () => {
    const { memories, left_out } = await claude(
      ...[
        user(1, 'a log '.repeat(4_000)),
        user(2, 'no time', { timestamp: 7 }),
        user(3, 'no time', { timestamp: 'x' }),
      ],
    );
    expect({ memories, left_out }).toEqual({ memories: [], left_out: { long: 1, unreadable: 2 } });
  });

  it('are read past folders and files that may not be read', async () => {
    const folder = folderOf({
      ...{ 'a/s1.jsonl': [user(1, 'the first one')], 'b/s2.jsonl': [user(2, 'the second one')] },
      ...{ 's3.jsonl': [user(3, 'the third one')] },
    });
    chmodSync(folder, 0o755);
    for (const closed of ['b', 's3.jsonl']) chmodSync(join(folder, closed), 0o000);
    const isRoot = process.geteuid?.() === 0;
    // Root may read everything.
    if (isRoot) process.seteuid?.(65_534);
    try {
      const summary = emptySummary();
      const transcripts = openAt('claude-code', folder);
      expect((await all(transcripts.read(summary))).map(({ content }) => content)).toEqual(['the first one']);
      expect(summary.left_out.denied).toBe(2);
      expect(await all(transcripts.changed())).toEqual([]);
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(join(folder, 'b'), 0o700);
    }
  });

  it('are read past lines that are damaged, too long or cut', async () => {
    const deep = `{"a":${'['.repeat(200)}${']'.repeat(200)}}\n`;
    const long = `{"type":"user","x":"${'x'.repeat(17 * 1024 * 1024)}"}\n`;
    const bad = ['{"type":"user"\n', '[1]\n', 'null\n', deep];
    const ends = asLines([user(1, 'the first one')]).replace('\n', '\r\n');
    const text = [ends, '\n', ...bad, long, asLines([user(2, 'the last one')]), '{"type":"us'].join('');
    const { said, left_out } = await read('claude-code', { 's1.jsonl': text });
    expect(said).toEqual(['user: the first one', 'user: the last one']);
    expect(left_out).toEqual({ unreadable: bad.length, long_lines: 1 });
    const whole = await read('claude-code', { 's1.jsonl': asLines([user(1, 'without an end')]).trim() });
    expect(whole.said).toEqual(['user: without an end']);
  });
});

describe('[Decision 43] sessions of Codex', () => {
  const event = (n: number, type: string, payload: object) => ({
    ...{ timestamp: `2026-01-01T00:00:0${n}.000Z`, type: 'event_msg', payload: { type, ...payload } },
  });
  const meta = (id: string, more = {}) => ({ type: 'session_meta', payload: { id, cwd: '/srv/app', ...more } });
  const read1 = (...lines: object[]) => read('codex', { '2026/01/01/rollout-1.jsonl': lines });

  it('are read as it writes them, with items or with events', async () => {
    const { memories, said, left_out } = await read('codex', {
      '2026/11/24/rollout-2026-11-24T13-25-41-a.jsonl': '=codex-0.169.0.jsonl',
    });
    expect(said).toEqual([
      'user: which package manager do I prefer?',
      ANSWER,
      'user: and which test runner do I like?',
      ANSWER,
    ]);
    expect(memories[0]).toEqual({
      ...{
        id: expect.stringMatching(ID),
        user_id: 'ana',
        content: 'which package manager do I prefer?',
        tags: ['user'],
      },
      ...{
        scope: 'projects/work/shop',
        created_at: '2026-11-24T13:25:41.810Z',
        valid_from: '2026-11-24T13:25:41.810Z',
      },
      source: { app: 'codex', type: 'imported', ref: '01a20dbb-cd4c-7743-9e0e-dc59e39a7149' },
    });
    expect(left_out).toEqual({ working: 2 });
    const old = await read('codex', { 'rollout-1.jsonl': '=codex-0.98.0.jsonl' });
    expect(old.said).toEqual(['user: which package manager do I prefer?', ANSWER]);
  });

  it('keep a message once although a fork repeats it at another time, and no turn that was rolled back', async () => {
    const { memories, said, left_out } = await read('codex', {
      ...{ 'sessions/rollout-1.jsonl': '=codex-0.98.0.jsonl', 'sessions/rollout-2.jsonl': '=codex-0.98.0-fork.jsonl' },
      'archived_sessions/rollout-1.jsonl': '=codex-0.98.0.jsonl',
    });
    const prompts = ['which package manager do I prefer?', 'in the fork: tabs or spaces?', 'after the rollback'];
    expect(said).toEqual(prompts.flatMap((prompt) => [`user: ${prompt}`, ANSWER]));
    expect(memories[0]).toMatchObject({ created_at: '2026-11-24T13:28:16.731Z' });
    expect(left_out).toEqual({ working: 3, taken_back: 2, copies: 4 });
  });

  it('leave out context, sub-agents and summaries, and of an editor all but the request', async () => {
    const context = '# Context from my IDE setup:\n\n## Open tabs:\n- a.md\n\n## My request for Codex:\nfix the door';
    const { said, left_out } = await read1(
      meta('s1'),
      {
        timestamp: '2026-01-01T00:00:00Z',
        type: 'response_item',
        payload: { type: 'message', role: 'user', content: 'x y' },
      },
      event(1, 'user_message', { message: 'two words', kind: 'environment_context' }),
      event(2, 'user_message', {
        message: '<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>',
        kind: 'plain',
      }),
      event(3, 'user_message', { message: context }),
      { type: 'compacted', payload: { message: 'a summary of it' } },
    );
    expect({ said, left_out }).toEqual({ said: ['user: fix the door'], left_out: { injected: 1 } });
    for (const more of [{ source: { subagent: 'review' } }, { thread_source: 'subagent' }]) {
      const side = await read1(meta('s2', more), event(1, 'user_message', { message: 'look there' }));
      expect(side).toMatchObject({ said: [], left_out: { sub_agent: 1 } });
    }
  });

  it('forget no more than all turns', async () => {
    const said = (n: number) => event(n, 'user_message', { message: `prompt number ${n}` });
    const back = (num_turns: unknown) => event(9, 'thread_rolled_back', { num_turns });
    expect((await read1(meta('s'), said(1), said(2), back(1), said(3))).said).toEqual(
      [1, 3].map((n) => `user: prompt number ${n}`),
    );
    expect((await read1(meta('s'), said(1), said(2), back(7))).said).toEqual([]);
    for (const none of [0, -1, null, 'x']) expect((await read1(meta('s'), said(1), back(none))).said).toHaveLength(1);
  });
});

describe('[Decision 43] sessions of Gemini CLI', () => {
  const path = 'tmp/shop/chats/session-2026-01-01T00-00-3f1c2a9e.jsonl';
  const header = { sessionId: 's1', projectHash: 'h', startTime: '', lastUpdated: '', kind: 'main' };
  const message = (id: string, type: string, content: unknown, more = {}) => ({
    ...{ id, type, content, timestamp: '2026-01-01T00:00:00.000Z', ...more },
  });

  it('have no project that a link, a pipe or a long text names', async () => {
    const odd: ((file: string) => void)[] = [
      (file) => symlinkSync(join(folderOf({ key: 'a secret' }), 'key'), file),
      (file) => void execFileSync('mkfifo', [file]),
      (file) => mkdirSync(file),
      (file) => writeFileSync(file, '/'.padEnd(5_000, 'x')),
    ];
    for (const make of odd) {
      const folder = folderOf({ [path]: [header, message('1', 'user', 'likes green tea')] });
      make(join(folder, 'tmp/shop/.project_root'));
      expect((await all(openAt('gemini', folder).read(emptySummary()))).map(({ scope }) => scope)).toEqual([undefined]);
    }
  });

  it('are read as it writes them, without what was rewound', async () => {
    const { memories, said, left_out } = await read('gemini', {
      ...{ [path]: '=gemini-cli-0.61.0.jsonl', 'tmp/shop/.project_root': '/home/ana/work/shop\n' },
      ...{
        'tmp/shop/chats/3f1c2a9e/9.jsonl': [header, message('1', 'user', 'of a sub-agent')],
        'tmp/shop/logs.json': '[]',
      },
    });
    expect(said).toEqual([
      'user: which package manager do I prefer?',
      ANSWER,
      'user: always use tabs',
      'assistant: Tabs it is.',
    ]);
    expect(memories[0]).toEqual({
      ...{
        id: expect.stringMatching(ID),
        user_id: 'ana',
        content: 'which package manager do I prefer?',
        tags: ['user'],
      },
      ...{
        scope: 'projects/work/shop',
        created_at: '2026-11-24T13:28:23.466Z',
        valid_from: '2026-11-24T13:28:23.466Z',
      },
      source: { app: 'gemini', type: 'imported', ref: '3f1c2a9e-1111-4222-8333-444455556666' },
    });
    expect(left_out).toEqual({ working: 1, taken_back: 2 });
  });

  it('are lists of messages: replaced as a whole, by id, and forgotten from an unknown id on', async () => {
    const list = [
      message('1', 'user', 'the new one'),
      message('2', 'gemini', [{ text: 'a b', thought: true }, { text: 'an ' }, { text: 'answer' }]),
    ];
    const typed = { displayContent: [{ text: 'what I typed' }] };
    const { said } = await read('gemini', {
      [path]: [
        ...[header, message('0', 'user', 'the old one'), { $set: { messages: list } }],
        ...[
          message('3', 'user', 'a @file with all of its text', typed),
          message('4', 'gemini', 'first try'),
          message('4', 'gemini', 'second try'),
        ],
        ...[message('5', 'info', 'request cancelled now'), { $set: { summary: 'about files' } }],
      ],
    });
    expect(said).toEqual(['user: the new one', 'assistant: an answer', 'user: what I typed', 'assistant: second try']);
    const forgotten = [
      header,
      message('0', 'user', 'the old one'),
      { $rewindTo: '9' },
      message('1', 'user', 'the new one'),
    ];
    expect((await read('gemini', { [path]: forgotten })).said).toEqual(['user: the new one']);
  });

  it('are found in files of older versions, and not twice in those of the version that followed', async () => {
    const messages = [message('1', 'user', 'an older one'), message('2', 'gemini', 'is read too')];
    const { said, left_out } = await read('gemini', {
      [path.slice(0, -1)]: JSON.stringify({ ...header, messages }, null, 2),
      [path]: [header, ...messages],
      'tmp/h/chats/session-2.json': '{"cut',
    });
    expect(said).toEqual(['user: an older one', 'assistant: is read too']);
    expect(left_out).toEqual({ copies: 2, unreadable: 1, files: 1 });
  });
});

describe('[Decision 43] sessions that grow', () => {
  const line = (n: number, text: string) => ({
    ...{ type: 'user', uuid: `u${n}`, sessionId: 's1', timestamp: '2026-01-01T00:00:00.000Z', cwd: '/srv' },
    message: { role: 'user', content: text },
  });
  const answer = (n: number, text: string, stop_reason: string | null) => ({
    ...{ ...line(n, ''), type: 'assistant' },
    message: { role: 'assistant', id: `m${n}`, content: [{ type: 'text', text }], stop_reason },
  });

  it('are followed: added lines, half of one, answers that are final, another file, a replaced one', async () => {
    const folder = folderOf({ 's1.jsonl': [line(1, 'the first one')] });
    const path = join(folder, 's1.jsonl');
    const transcripts = openAt('claude-code', folder);
    const said = async (memories: AsyncIterable<Memory>) => (await all(memories)).map(({ content }) => content);
    const changed = () => said(transcripts.changed());
    expect(await said(transcripts.read(emptySummary()))).toEqual(['the first one']);
    expect(await changed()).toEqual([]);
    const [half, rest] = [
      asLines([line(2, 'the second one')]).slice(0, 40),
      asLines([line(2, 'the second one')]).slice(40),
    ];
    appendFileSync(path, half);
    expect(await changed()).toEqual([]);
    appendFileSync(path, rest);
    expect(await changed()).toEqual(['the second one']);
    // It may go on with a tool.
    appendFileSync(path, asLines([answer(3, 'I look first', null)]));
    expect(await changed()).toEqual([]);
    appendFileSync(path, asLines([answer(4, 'It is done', 'end_turn')]));
    expect(await changed()).toEqual(['It is done']);
    writeFileSync(join(folder, 's2.jsonl'), asLines([line(5, 'of another session')]));
    expect(await changed()).toEqual(['of another session']);
    writeFileSync(
      join(folder, 'new'),
      asLines([line(6, 'of a new file'), { type: 'mode', x: 'x'.repeat(4_000) }, line(1, 'the first one')]),
    );
    renameSync(join(folder, 'new'), path);
    expect(await changed()).toEqual(['of a new file']);
    writeFileSync(path, asLines([line(7, 'cut')]));
    rmSync(join(folder, 's2.jsonl'));
    expect(await changed()).toEqual([]);
    appendFileSync(path, asLines([line(8, 'and grown again')]));
    expect(await changed()).toEqual(['and grown again']);
  });
});

it.each([
  ['/home/ana/work/shop', 'projects/work/shop'],
  ['/home/ana', 'projects/~'],
  ['/home/anabel/shop', 'projects/home/anabel/shop'],
  ['/srv/app/', 'projects/srv/app'],
  ['/', 'projects/~'],
  ['C:\\Users\\ana\\shop', 'projects/C:/Users/ana/shop'],
  ['/srv/a*b?c\u0007', 'projects/srv/a_b_c_'],
  [`/${'deep/'.repeat(50)}end`, `projects/${'deep/'.repeat(30)}end`],
  [`/${'é'.repeat(900)}`, `projects/${'é'.repeat(500)}`],
  [`/${'e\u0301'.repeat(900)}`, `projects/${'é'.repeat(500)}`],
])('[Decision 43] the scope of %j is %j', (cwd, scope) => {
  expect(projectScope(cwd, '/home/ana')).toBe(scope);
});

it('[Decision 43] the scope of a folder is the same however its letters and their marks are written', () => {
  for (const form of ['NFC', 'NFD']) {
    for (const home of ['/home/Łukasz é', '/home/e\u0301']) {
      const cwd = `${home}/café/서울`.normalize(form);
      expect(projectScope(cwd, home)).toBe('projects/café/서울'.normalize('NFC'));
      expect(projectScope(cwd, home.normalize('NFC'))).toBe('projects/café/서울'.normalize('NFC'));
    }
  }
});

it.each<[string, TranscriptFormatName, (n: number) => Tree]>([
  [
    'blocks without an end',
    'claude-code',
    (n) => {
      const content = `${' \t<system-reminder>\n'.repeat(n)}${'<system-reminder>'.repeat(n)}`;
      return { 's1.jsonl': [{ type: 'user', uuid: '1', message: { content } }] };
    },
  ],
  [
    'texts that are joined',
    'claude-code',
    (n) => {
      const message = { id: '1', content: [{ type: 'text', text: 'a b' }] };
      return { 's1.jsonl': Array.from({ length: n }, () => ({ type: 'assistant', message })) };
    },
  ],
  [
    'turns that are rolled back',
    'codex',
    (n) => {
      const prompt = { type: 'event_msg', payload: { type: 'user_message', message: 'a b' } };
      const back = { type: 'event_msg', payload: { type: 'thread_rolled_back', num_turns: 1 } };
      const lines = Array.from({ length: n }, () => [prompt, prompt, back]).flat();
      return { 'rollout-1.jsonl': lines };
    },
  ],
  [
    'messages that are rewound',
    'gemini',
    (n) => {
      const lines = Array.from({ length: n }, (_, id) => [
        ...[{ id: `a${id}`, type: 'user', content: 'a b' }, { id: `b${id}` }, { $rewindTo: `b${id}` }],
      ]);
      return { 'chats/session-1.jsonl': lines.flat() };
    },
  ],
])('[Decision 43] reading %s takes linear time', async (_, format, tree) => {
  const cost = async (n: number) => {
    const folder = folderOf(tree(n));
    return costOf(() => all(openAt(format, folder).read(emptySummary())));
  };
  await cost(1_000);
  const once = await cost(1_000);
  // Quadratic work would take a hundred times as long.
  expect(await cost(10_000)).toBeLessThan(40 * once);
});
