import { describe, expect, it } from 'vitest';
import { INJECTED, spokenIn } from '../../src/move/injected.ts';
import { TRANSCRIPT_FORMATS, type TranscriptFormatName } from '../../src/move/transcript-formats.ts';
import { ANSWER, read, type Tree } from './sessions.ts';

/* Messages that no person wrote, or not to this agent. What the hooks do with them is checked in `test/cli/hook-injected.test.ts`. */

const AT = '2026-01-01T00:00:00.000Z';
const meta = (id = 's1') => ({ type: 'session_meta', payload: { id, cwd: '/srv/app' } });
const event = (payload: object) => ({ timestamp: AT, type: 'event_msg', payload });
const item = (one: object) => event({ type: 'item_completed', item: one });
const userItem = (text: string) => item({ type: 'UserMessage', content: [{ type: 'text', text }] });
const agentItem = (text: string) => item({ type: 'AgentMessage', content: [{ type: 'Text', text }] });
const userMessage = (message: string) => event({ type: 'user_message', message });
const agentMessage = (message: string) => event({ type: 'agent_message', message });
const codex = (...lines: object[]) => read('codex', { 'rollout-1.jsonl': [meta(), ...lines] });

/** A session with one message of the person, in each form that an agent writes. */
const SESSIONS: readonly [what: string, TranscriptFormatName, (text: string) => Tree][] = [
  [
    'claude-code',
    'claude-code',
    (content) => ({ 's1.jsonl': [{ type: 'user', uuid: 'u1', sessionId: 's1', timestamp: AT, message: { content } }] }),
  ],
  ['codex, an event', 'codex', (text) => ({ 'rollout-1.jsonl': [meta(), userMessage(text)] })],
  ['codex, an item', 'codex', (text) => ({ 'rollout-1.jsonl': [meta(), userItem(text)] })],
  [
    'gemini',
    'gemini',
    (content) => ({
      'chats/session-1.jsonl': [{ sessionId: 's1' }, { id: '1', type: 'user', timestamp: AT, content }],
    }),
  ],
];

it('[Decision 43] every format is among them', () => {
  expect(new Set(SESSIONS.map(([, format]) => format))).toEqual(new Set(Object.keys(TRANSCRIPT_FORMATS)));
});

describe.each(SESSIONS)('[Decision 43] messages of %s', (_, format, tree) => {
  it.each(INJECTED)('lose a block <%s>, and are left out if nothing else is there', async (name) => {
    const block = `<${name} from="others">\nof others\n</${name}>`;
    expect(await read(format, tree(block))).toMatchObject({ said: [], left_out: { injected: 1 } });
    const both = await read(format, tree(`${block}\n\nfix the door\n\n${name === 'system-reminder' ? block : ''}`));
    expect(both.said).toEqual(['user: fix the door']);
    if (name === 'system-reminder') return;
    const ended = `fix the door\n\n<${name}>\na\n</${name}>\nof others\n</${name}>`;
    expect((await read(format, tree(ended))).said).toEqual(['user: fix the door']);
  });
});

it.each(INJECTED)('[Decision 43] no text in <%s> and the block after it passes for words of the person', (name) => {
  for (const other of INJECTED.filter((one) => one !== name)) {
    // Each ends a block too early or too late, and may begin one again, so that the last closing tag has its opening.
    for (const begins of ['', `<${other}>\n`, `<${name}>\n`]) {
      const second = `<${name}>\na\n</${name}><${other}></${name}>\nof others\n${begins}b\n</${other}>`;
      expect(spokenIn(`fix the door\n${second}`)).toBe('fix the door');
    }
    expect(spokenIn(`<${name}>\nof others\n<${other}>\n</${name}>\n<${other}>\na\n</${other}>`)).toBe('');
  }
});

describe('[Decision 43] sessions of Codex', () => {
  it('have of an editor the last request, also if others wrote one before, and no request that they wrote after it', async () => {
    const request = '## My request for Codex:';
    const selected = `# Context from my IDE setup:\n\n${request}\nof others\n\n${request}\nfix the door`;
    expect((await codex(userMessage(selected))).said).toEqual(['user: fix the door']);
    const piped = `fix the door\n\n<stdin>\n${request}\nof others\n</stdin>`;
    expect((await codex(userMessage(piped))).said).toEqual([]);
  });

  it('of a review have no instruction that the program wrote', async () => {
    const review = await read('codex', { 'rollout-1.jsonl': '=codex-0.171.0-review.jsonl' });
    expect(review).toMatchObject({ said: [ANSWER], left_out: { injected: 1 } });
    const older = (target: object) => [
      ...[event({ type: 'entered_review_mode', target }), userMessage('look at the changes')],
      ...[event({ type: 'exited_review_mode' }), userMessage('and the docs')],
    ];
    expect((await codex(...older({ type: 'baseBranch' }))).said).toEqual(['user: and the docs']);
    expect((await codex(...older({ type: 'custom' }))).said).toHaveLength(2);
  });

  it('that it copied from another agent are kept from where a person goes on', async () => {
    const { said, left_out } = await read('codex', { 'rollout-1.jsonl': '=codex-0.171.0-import.jsonl' });
    expect({ said, left_out }).toEqual({
      said: ['user: and which linter, in Codex?', ANSWER],
      left_out: { copies: 3 },
    });
  });

  it.each<[string, (text: string) => object[], (text: string) => object[]]>([
    ['the item first', (text) => [userItem(text), userMessage(text)], (text) => [agentItem(text), agentMessage(text)]],
    ['the event first', (text) => [userMessage(text), userItem(text)], (text) => [agentMessage(text), agentItem(text)]],
  ])('have a message once that is written as an item and as an event, %s', async (_, person, agent) => {
    const turn = (text: string) => [...person(text), ...agent(`done: ${text}`)];
    const { said } = await codex(...turn('fix the door'), ...turn('go on please'), ...turn('go on please'));
    expect(said).toEqual(
      ['fix the door', 'go on please', 'go on please'].flatMap((text) => [`user: ${text}`, `assistant: done: ${text}`]),
    );
    const blocks = item({ type: 'UserMessage', content: ['two ', 'parts'].map((text) => ({ type: 'text', text })) });
    expect((await codex(blocks, userMessage('two parts'))).said).toHaveLength(1);
  });

  it('have a message as often as the person wrote it', async () => {
    expect((await codex(userMessage('go on please'), userMessage('go on please'))).said).toHaveLength(2);
    expect((await codex(userItem('go on please'), userItem('go on please'))).said).toHaveLength(2);
  });
});

describe('[Decision 43] a file that is not read is named', () => {
  const old = { role: 'user', content: [{ type: 'input_text', text: 'fix the door' }] };
  it.each<[string, TranscriptFormatName, string, string | object[]]>([
    ['compressed', 'codex', 'sessions/rollout-1.jsonl.zst', '\u0028\u00b5/\u00fd not\na line'],
    ['of the first rollouts', 'codex', 'sessions/rollout-1.jsonl', [{ id: 's1', instructions: null }, old]],
    ['of versions before', 'codex', 'sessions/rollout-1.json', JSON.stringify({ session: { id: 's1' }, items: [old] })],
    ['of another agent', 'claude-code', 'p/s1.jsonl', [meta(), userMessage('fix the door')]],
    ['of another agent', 'gemini', 'chats/session-1.jsonl', [meta(), userMessage('fix the door')]],
  ])('%s: %s', async (_, format, path, content) => {
    const { said, summary, left_out } = await read(format, { [path]: content });
    expect({ said, left_out }).toEqual({ said: [], left_out: { files: 1 } });
    expect(summary.not_read).toEqual([expect.stringMatching(new RegExp(`${path}$`))]);
  });

  it.each<[TranscriptFormatName, string, object[]]>([
    ['claude-code', 'p/s1.jsonl', [{ type: 'summary', summary: 'about it', leafUuid: 'u1' }]],
    ['claude-code', 'p/s1.jsonl', [{ type: 'mode', sessionId: 's1' }]],
    ['codex', 'rollout-1.jsonl', [meta()]],
    ['gemini', 'chats/session-1.jsonl', [{ sessionId: 's1', kind: 'main' }]],
    ['gemini', 'chats/session-1.jsonl', []],
  ])('but none that has nothing to say: %s', async (format, path, content) => {
    expect((await read(format, { [path]: content })).summary).toMatchObject({ not_read: [], left_out: { files: 0 } });
  });
});
