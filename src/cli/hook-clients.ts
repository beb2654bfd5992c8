/** What a client reports to a hook: a session begins, or the user submits a prompt. */
export type Occasion = 'session' | 'prompt';

interface HookEvent {
  readonly occasion: Occasion;
  /** Whether the client passes text from this hook to the model. */
  readonly takesContext: boolean;
}

/** How a client configures and calls hooks. `docs/integrations/hooks.md` names the source of each fact. */
export interface HookClient {
  readonly title: string;
  /** The folder of the configuration, in the project and in the home folder of the user. */
  readonly folder: string;
  /** The variable that names another folder for the user. */
  readonly folderVariable?: string;
  readonly file: string;
  /** The path in a project, if it is not the same folder and file. */
  readonly projectFile?: string;
  readonly events: Readonly<Record<string, HookEvent>>;
  /** Fields that a new file needs beside `hooks`. */
  readonly required: Readonly<Record<string, number>>;
  /** One entry of an event's list. `seconds`: the client ends the command after them. */
  entry(command: string, seconds: number): object;
  /** What a hook prints; `notice` is shown to the user. */
  answer(event: string, context: string, notice: string): object;
  /** What `hooks status` says of the client: what it leaves out without a word, of hooks and of the tools of `omp-gateway mcp`. */
  readonly notes: readonly string[];
}

const PROMPT: HookEvent = { occasion: 'prompt', takesContext: true };
const SESSION: HookEvent = { occasion: 'session', takesContext: true };

/** Claude Code's format, which Codex, Gemini CLI and Qwen Code share. */
const grouped = {
  required: {},
  entry: (command: string, timeout: number) => ({ hooks: [{ type: 'command', command, timeout }] }),
  answer: (hookEventName: string, additionalContext: string, systemMessage: string) => ({
    ...(additionalContext !== '' && { hookSpecificOutput: { hookEventName, additionalContext } }),
    ...(systemMessage !== '' && { systemMessage }),
  }),
};

const PIPED = 'Piped text is part of the prompt, without a mark: its lines "remember:" count as yours.';

export const HOOK_CLIENTS = {
  'claude-code': {
    ...grouped,
    title: 'Claude Code',
    folder: '.claude',
    folderVariable: 'CLAUDE_CONFIG_DIR',
    file: 'settings.json',
    events: { SessionStart: SESSION, UserPromptSubmit: PROMPT },
    notes: [PIPED],
  },
  codex: {
    ...grouped,
    title: 'Codex',
    folder: '.codex',
    folderVariable: 'CODEX_HOME',
    file: 'hooks.json',
    events: { SessionStart: SESSION, UserPromptSubmit: PROMPT },
    notes: [
      'It skips hooks until you trust them with /hooks; "codex exec" skips them without a word.',
      '"codex exec" refuses update_memory and delete_memory, unless their approval_mode is "approve".',
      'A prompt that is piped as a whole has no mark: its lines "remember:" count as yours.',
    ],
  },
  gemini: {
    ...grouped,
    title: 'Gemini CLI',
    folder: '.gemini',
    file: 'settings.json',
    events: { SessionStart: SESSION, BeforeAgent: PROMPT },
    entry: (command: string, seconds: number) => grouped.entry(command, seconds * 1000),
    notes: ['With -p it offers tools of MCP servers with "trust": true only.', PIPED],
  },
  qwen: {
    ...grouped,
    title: 'Qwen Code',
    folder: '.qwen',
    folderVariable: 'QWEN_HOME',
    file: 'settings.json',
    events: { SessionStart: SESSION, UserPromptSubmit: PROMPT },
    notes: ['It hides tools of MCP servers behind tool_search.', PIPED],
  },
  copilot: {
    title: 'Copilot CLI',
    folder: '.copilot',
    folderVariable: 'COPILOT_HOME',
    file: 'settings.json',
    projectFile: '.github/hooks/omp-gateway.json',
    events: { sessionStart: SESSION, userPromptSubmitted: PROMPT },
    required: {},
    entry: (command, timeout) => ({ type: 'command', command, timeout }),
    answer: (_, additionalContext) => (additionalContext === '' ? {} : { additionalContext }),
    notes: ['It skips hooks of a project until you trust the folder; -p skips them without a word.'],
  },
  cursor: {
    title: 'Cursor',
    folder: '.cursor',
    file: 'hooks.json',
    // Its prompt hook can only allow or block.
    events: { sessionStart: SESSION, beforeSubmitPrompt: { occasion: 'prompt', takesContext: false } },
    required: { version: 1 },
    entry: (command, timeout) => ({ command, timeout }),
    answer: (event, context) => (event === 'sessionStart' ? { additional_context: context } : { continue: true }),
    notes: [],
  },
} as const satisfies Record<string, HookClient>;

export type HookClientName = keyof typeof HOOK_CLIENTS;

/** Undefined: hooks of this client are not supported. */
export const hookClient = (name: string): HookClient | undefined =>
  Object.hasOwn(HOOK_CLIENTS, name) ? HOOK_CLIENTS[name as HookClientName] : undefined;
