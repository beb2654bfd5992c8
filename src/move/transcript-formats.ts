import { join } from 'node:path';

/*
 * The session files of coding agents, as the agents themselves write them; none is specified. `docs/integrations/transcripts.md` names
 * the versions that the shapes were checked with. What a record does not need to have may be missing, and unknown records are left out.
 */

export type Json = Readonly<Record<string, unknown>>;
type Role = 'user' | 'assistant';

/** What a person wrote, or the last text of the assistant in a turn. */
export interface Message {
  readonly role: Role;
  text: string;
  readonly at: unknown;
  /** The session; a copy in a fork keeps that of the original. */
  readonly ref: unknown;
  /** The same for the same message in every copy of its session. */
  readonly key: string;
}

/** Texts that are not kept, by reason. */
export type LeftOut = Record<'working' | 'injected' | 'sub_agent' | 'taken_back' | 'copies', number>;

/** Reads one session, record by record. */
export interface AgentSession {
  /** The working folder at the beginning. */
  readonly cwd: string | undefined;
  /** Whether a record was there that the format has: a file without any is of another one. */
  readonly isKnown: boolean;
  add(record: Json): void;
  /**
   * The messages so far, in their order. `ended`: nothing follows for now, so the last text of the assistant counts as its answer
   * although nothing says so.
   */
  messages(ended: boolean): { readonly messages: readonly Message[]; readonly leftOut: LeftOut };
}

interface TranscriptFormat {
  /** Where the agent keeps its sessions. */
  folders(env: Readonly<Record<string, string | undefined>>, home: string): string[];
  /** Whether a file of these folders is a session of a person, by its path below the folder. */
  isSession(path: string): boolean;
  open(): AgentSession;
}

export const TRANSCRIPT_FORMATS = {
  'claude-code': {
    folders: ({ CLAUDE_CONFIG_DIR }, home) => [join(CLAUDE_CONFIG_DIR || join(home, '.claude'), 'projects')],
    isSession: (path) =>
      path.endsWith('.jsonl') && !/(?:^|[\\/])(?:agent-[^\\/]*$|subagents[\\/]|tool-results[\\/])/.test(path),
    open: claudeCode,
  },
  codex: {
    folders: ({ CODEX_HOME }, home) =>
      ['sessions', 'archived_sessions'].map((folder) => join(CODEX_HOME || join(home, '.codex'), folder)),
    // Older versions wrote one JSON file, newer ones compress what is old: neither is read, and the summary says so.
    isSession: (path) => /(?:^|[\\/])rollout-[^\\/]*\.json(?:l(?:\.zst)?)?$/.test(path),
    open: codex,
  },
  gemini: {
    folders: ({ GEMINI_CLI_HOME }, home) => [join(GEMINI_CLI_HOME || home, '.gemini', 'tmp')],
    isSession: (path) => /(?:^|[\\/])chats[\\/]session-[^\\/]*\.jsonl?$/.test(path),
    open: gemini,
  },
} as const satisfies Record<string, TranscriptFormat>;

export type TranscriptFormatName = keyof typeof TRANSCRIPT_FORMATS;

/** Collects the messages of a session: what the assistant says before it calls a tool is no answer. */
function createTurns() {
  const messages: Message[] = [];
  const leftOut: LeftOut = { working: 0, injected: 0, sub_agent: 0, taken_back: 0, copies: 0 };
  let people = 0;
  let last: { readonly message: Message; readonly part: unknown; isAnswer: boolean } | undefined;
  const settle = (isAnswer: boolean) => {
    if (last && (isAnswer || last.isAnswer)) messages.push(last.message);
    else if (last) leftOut.working++;
    last = undefined;
  };
  return {
    leftOut,
    /** Messages of the person so far. */
    people: () => people,
    person(message: Message): void {
      settle(true);
      messages.push(message);
      people++;
    },
    /** `part`: texts that follow each other with the same one are one message. */
    assistant(message: Message, part?: unknown): void {
      if (last && part !== undefined && last.part === part) last.message.text += `\n\n${message.text}`;
      else {
        settle(false);
        last = { message, part, isAnswer: false };
      }
    },
    /** The assistant goes on with a tool. */
    goesOn: () => settle(false),
    answered(): void {
      if (last) last.isAnswer = true;
    },
    /** The last turns do not count any more: each begins with a message of the person. */
    takeBack(turns: number): void {
      settle(true);
      for (let left = turns; left > 0 && messages.length > 0; leftOut.taken_back++) {
        if (messages.pop()?.role !== 'user') continue;
        people--;
        left--;
      }
    },
    messages: (ended: boolean) => ({
      messages: last && (ended || last.isAnswer) ? [...messages, last.message] : messages,
      leftOut,
    }),
  };
}

/** `projects/<folder>/<session>.jsonl`: each line a record with a `uuid`, or none of the conversation. */
function claudeCode(): AgentSession {
  const turns = createTurns();
  let cwd: string | undefined;
  let isKnown = false;
  return {
    get cwd() {
      return cwd;
    },
    get isKnown() {
      return isKnown;
    },
    messages: turns.messages,
    add(record) {
      cwd ??= textOrNone(record.cwd);
      isKnown ||= typeof (record.sessionId ?? record.leafUuid ?? record.messageId) === 'string';
      const { forkedFrom, isSidechain, timestamp: at } = record;
      const message = object(record.message);
      const origin = object(forkedFrom);
      const common = {
        at,
        ref: origin.sessionId ?? record.sessionId,
        key: String(origin.messageUuid ?? record.uuid ?? JSON.stringify(record)),
      };
      if (record.type === 'user' || record.type === 'attachment') {
        const text = record.type === 'user' ? textOf(message.content) : queuedPrompt(object(record.attachment));
        if (text === '') return;
        if (isSidechain === true) turns.leftOut.sub_agent++;
        else if (isInjected(record)) turns.leftOut.injected++;
        else turns.person({ ...common, role: 'user', text });
      } else if (record.type === 'assistant') {
        const { content, id, model, stop_reason } = message;
        const text = textOf(content);
        if (isSidechain === true) turns.leftOut.sub_agent += text === '' ? 0 : 1;
        if (isSidechain === true || record.isApiErrorMessage === true || model === '<synthetic>') return;
        // Each block of an answer has a line of its own.
        if (text !== '') turns.assistant({ ...common, role: 'assistant', text }, id);
        if (blocksOf(content).some(({ type }) => type === 'tool_use')) turns.goesOn();
        else if (stop_reason != null && stop_reason !== 'tool_use' && stop_reason !== 'pause_turn') turns.answered();
      }
    },
  };
}

/** What the program writes in the name of the person: context, summaries, messages of other agents. */
const isInjected = ({ isMeta, isCompactSummary, isVisibleInTranscriptOnly, origin }: Json): boolean =>
  isMeta === true ||
  isCompactSummary === true ||
  isVisibleInTranscriptOnly === true ||
  (object(origin).kind ?? 'human') !== 'human';

/** What was typed while the assistant worked, which is no record of type `user`. */
function queuedPrompt({ type, prompt, commandMode = 'prompt', carriedByCompaction, ...more }: Json): string {
  const isTyped = type === 'queued_command' && commandMode === 'prompt' && carriedByCompaction !== true;
  return isTyped && !isInjected(more) ? textOf(prompt) : '';
}

/** The turns that Codex copies from a session of another agent, with the time of the copy. */
const COPIED_TURN = 'external-import-turn-';

/** `rollout-<time>-<id>.jsonl`: lines `{timestamp, type, payload}`. */
function codex(): AgentSession {
  const turns = createTurns();
  let cwd: string | undefined;
  let ref: unknown;
  // A fork of older versions begins with the headers of those it comes from, and repeats their messages at other times.
  let root: unknown;
  let began = false;
  let isSubAgent = false;
  let turn = '';
  // Within a review of changes, the program tells a sub-agent what to do.
  let isInstructed = false;
  const reasonToLeave = (role: Role): keyof LeftOut | undefined => {
    if (isSubAgent) return 'sub_agent';
    if (turn.startsWith(COPIED_TURN)) return 'copies';
    return role === 'user' && isInstructed ? 'injected' : undefined;
  };
  const isKept = (role: Role): boolean => {
    const reason = reasonToLeave(role);
    if (reason) turns.leftOut[reason]++;
    return !reason;
  };
  const message = (role: Role, text: string, at: unknown): Message => ({
    ...{ role, text, at, ref },
    key: JSON.stringify([root, turns.people(), role, text]),
  });
  const person = (text: string, at: unknown) => {
    began = true;
    if (isKept('user')) turns.person(message('user', text, at));
  };
  const assistant = (text: string, phase: unknown, at: unknown) => {
    if (isKept('assistant')) turns.assistant(message('assistant', text, at));
    if (phase === 'commentary') turns.goesOn();
    if (phase === 'final_answer') turns.answered();
  };
  // A version may write a message as an item and as an event, one after the other.
  let last: { readonly type: unknown; readonly what: string } | undefined;
  const isRepeated = (role: Role, text: string, type: unknown): boolean => {
    const what = role + text.replace(/\s+/g, '');
    const repeats = last?.what === what && last.type !== type;
    last = repeats ? undefined : { type, what };
    return repeats;
  };
  const event = (payload: Json, at: unknown) => {
    const item = object(payload.item);
    const isItem = payload.type === 'item_completed';
    const { content, message: text = content, phase, target, kind } = isItem ? item : payload;
    switch (isItem ? item.type : payload.type) {
      case 'user_message':
      case 'UserMessage':
        if ((kind ?? 'plain') === 'plain' && !isRepeated('user', textOf(text), payload.type)) person(textOf(text), at);
        break;
      case 'agent_message':
      case 'AgentMessage':
        if (!isRepeated('assistant', textOf(text), payload.type)) assistant(textOf(text), phase, at);
        break;
      case 'task_started':
      case 'turn_started':
        turn = String(payload.turn_id).slice(0, 100);
        break;
      case 'task_complete':
      case 'turn_complete':
        turns.answered();
        break;
      case 'entered_review_mode':
      case 'EnteredReviewMode':
        // Unless a person wrote the instruction.
        isInstructed = object(target).type !== 'custom';
        break;
      case 'exited_review_mode':
      case 'ExitedReviewMode':
        isInstructed = false;
        break;
      case 'thread_rolled_back':
        turns.takeBack(Number(payload.num_turns) || 0);
    }
  };
  return {
    get cwd() {
      return cwd;
    },
    get isKnown() {
      return ref !== undefined;
    },
    messages: turns.messages,
    add(record) {
      const payload = object(record.payload);
      if (record.type === 'session_meta') {
        if (ref === undefined)
          isSubAgent = 'subagent' in object(payload.source) || payload.thread_source === 'subagent';
        ref ??= payload.id;
        if (!began) root = payload.id;
        cwd ??= textOrNone(payload.cwd);
      } else if (record.type === 'event_msg') event(payload, record.timestamp);
      // Its messages repeat those of the events, with injected context.
      else if (record.type === 'response_item' && /_call$/.test(String(payload.type).slice(0, 100))) turns.goesOn();
    },
  };
}

/**
 * `chats/session-<time>-<id>.jsonl`: a header, then a log of changes to a list of messages. Older versions wrote the whole list as one
 * JSON file.
 */
function gemini(): AgentSession {
  // Undefined: a record that is no message.
  const records = new Map<string, { readonly message: Message; readonly goesOn: boolean } | undefined>();
  let order: string[] = [];
  let ref: unknown;
  let isSubAgent = false;
  let takenBack = 0;
  const put = (record: Json) => {
    const { id, type, timestamp: at, content, displayContent, toolCalls } = record;
    if (typeof id !== 'string') return;
    if (!records.has(id)) order.push(id);
    const role: Role | undefined = type === 'user' ? 'user' : type === 'gemini' ? 'assistant' : undefined;
    // What the person typed, before the files that it names were inserted.
    const text = textOf(role === 'user' ? (displayContent ?? content) : content, '');
    const goesOn = blocksOf(toolCalls).length > 0 || blocksOf(content).some((part) => part.functionCall !== undefined);
    const message = role && { role, text, at, ref, key: JSON.stringify([ref, id]) };
    records.set(id, message && { message, goesOn });
  };
  const header = ({ sessionId, kind, messages }: Json) => {
    ref ??= sessionId;
    isSubAgent ||= kind === 'subagent';
    if (!Array.isArray(messages)) return;
    records.clear();
    order = [];
    for (const message of messages) put(object(message));
  };
  /** Forgets this record and those after it; the program forgets all if it does not know it. */
  const rewind = (id: string) => {
    for (let last = order.pop(); last !== undefined; last = last === id ? undefined : order.pop()) {
      if (records.get(last)?.message.text) takenBack++;
      records.delete(last);
    }
  };
  return {
    cwd: undefined,
    get isKnown() {
      return ref !== undefined;
    },
    add(record) {
      if (typeof record.$rewindTo === 'string') rewind(record.$rewindTo);
      else if (record.$set !== undefined) header(object(record.$set));
      else if (record.id !== undefined) put(record);
      else header(record);
    },
    messages(ended) {
      const turns = createTurns();
      turns.leftOut.taken_back = takenBack;
      for (const record of records.values()) {
        if (!record) continue;
        const { message, goesOn } = record;
        if (message.text !== '') {
          if (isSubAgent) turns.leftOut.sub_agent++;
          else if (message.role === 'user') turns.person(message);
          else turns.assistant(message);
        }
        if (goesOn) turns.goesOn();
      }
      return turns.messages(ended);
    },
  };
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;
const object = (value: unknown): Json => (isObject(value) ? value : {});
const textOrNone = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const blocksOf = (content: unknown): Json[] => (Array.isArray(content) ? content.filter(isObject) : []);

/** The texts of a content, which is a text or a list of blocks: no thoughts, tools or images. */
function textOf(content: unknown, between = '\n\n'): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((block: unknown) => (typeof block === 'string' ? block : textOfBlock(object(block))))
    .filter((text) => text !== '')
    .join(between);
}

function textOfBlock({ type, text, thought }: Json): string {
  const isText = type === undefined || type === 'text' || type === 'Text';
  return isText && thought !== true && typeof text === 'string' ? text : '';
}
