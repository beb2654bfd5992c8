/** What a client reports to a hook: a session begins, or the user submits a prompt. */
type Occasion = 'session' | 'prompt';

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
  readonly events: Readonly<Record<string, HookEvent>>;
  /** Fields that a new file needs beside `hooks`. */
  readonly required: Readonly<Record<string, number>>;
  /** One entry of an event's list. `seconds`: the client ends the command after them. */
  entry(command: string, seconds: number): object;
  /** What a hook prints; `notice` is shown to the user. */
  answer(event: string, context: string, notice: string): object;
}

const PROMPT: HookEvent = { occasion: 'prompt', takesContext: true };
const SESSION: HookEvent = { occasion: 'session', takesContext: true };

/** Claude Code's format, which Codex and Gemini CLI share. */
const grouped = {
  required: {},
  entry: (command: string, timeout: number) => ({ hooks: [{ type: 'command', command, timeout }] }),
  answer: (hookEventName: string, additionalContext: string, systemMessage: string) => ({
    ...(additionalContext !== '' && { hookSpecificOutput: { hookEventName, additionalContext } }),
    ...(systemMessage !== '' && { systemMessage }),
  }),
};

export const HOOK_CLIENTS = {
  'claude-code': {
    ...grouped,
    title: 'Claude Code',
    folder: '.claude',
    folderVariable: 'CLAUDE_CONFIG_DIR',
    file: 'settings.json',
    events: { SessionStart: SESSION, UserPromptSubmit: PROMPT },
  },
  codex: {
    ...grouped,
    title: 'Codex',
    folder: '.codex',
    folderVariable: 'CODEX_HOME',
    file: 'hooks.json',
    events: { SessionStart: SESSION, UserPromptSubmit: PROMPT },
  },
  gemini: {
    ...grouped,
    title: 'Gemini CLI',
    folder: '.gemini',
    file: 'settings.json',
    events: { SessionStart: SESSION, BeforeAgent: PROMPT },
    entry: (command: string, seconds: number) => grouped.entry(command, seconds * 1000),
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
  },
} as const satisfies Record<string, HookClient>;

export type HookClientName = keyof typeof HOOK_CLIENTS;

/** Undefined: hooks of this client are not supported. */
export const hookClient = (name: string): HookClient | undefined =>
  Object.hasOwn(HOOK_CLIENTS, name) ? HOOK_CLIENTS[name as HookClientName] : undefined;
