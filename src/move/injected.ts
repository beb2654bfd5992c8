/*
 * What programs put into the words of a person. Both readers of such words use it: the hooks (`src/cli/hook-run.ts`) and the import of
 * sessions (`transcripts.ts`). `docs/integrations/hooks.md` says which program writes what, and what has no mark. No imports: a hook
 * must start fast.
 */

/**
 * Names of the blocks: notifications of sub-agents, reminders, commands and their output, what an editor shows, what a hook returned,
 * piped text. The last one is what `POST /context` answers.
 */
export const INJECTED = [
  ...['system-reminder', 'command-name', 'command-message', 'task-notification', 'teammate-message'],
  ...['user-prompt-submit-hook', 'local-command-caveat', 'local-command-stdout', 'local-command-stderr'],
  ...['bash-input', 'bash-stdout', 'bash-stderr', 'ide_opened_file', 'ide_selection'],
  ...['environment_context', 'user_instructions', 'turn_aborted', 'stdin', 'subagent_notification', 'user_action'],
  ...['user_shell_command', 'codex_internal_context', 'codex_delegation', 'agent_message_board_notification'],
  ...['session_context', 'state_snapshot', 'hook_context', 'memories'],
] as const;

/** The one block that may come several times around the words of a person. */
const REPEATED = 'system-reminder';
/** Between the beginning and this line, an editor tells Codex its context, of which a selected text may hold the line too. */
const REQUEST = '## My request for Codex:';

/** The words of the person: without blocks that begin a line, and without what stands for an interruption. Trimmed. */
export function spokenIn(text: string): string {
  if (text.startsWith('[Request interrupted by user')) return '';
  return withoutBlocks(text)
    .replace(/<\/?command-args>/g, '')
    .trim();
}

/**
 * A block holds text of others, such as a piped file, in which the closing tag may stand too: it reaches to the last one. Without any, it
 * is no block but the person's words. Where a block begins within another, it may be the next one, of which that text ended the one
 * before too late: all of it is left out too.
 */
function withoutBlocks(text: string): string {
  const closings = new Map<string, number>(INJECTED.map((name) => [name, text.lastIndexOf(`</${name}>`)]));
  const request = `\n${text}`.lastIndexOf(`\n${REQUEST}`);
  let kept = '';
  let done = request < 0 ? 0 : request + REQUEST.length;
  for (const { 0: tag, 1: name = '', index: begin } of text.matchAll(/<([\w-]+)/g)) {
    const last = closings.get(name) ?? -1;
    if (last < begin) continue;
    const end = last + name.length + 3;
    if (begin < done) done = Math.max(done, end);
    else if (/[\s>]/.test(text[begin + tag.length] ?? '') && beginsLine(text, begin, done)) {
      kept += text.slice(done, begin);
      done = name === REPEATED ? text.indexOf(`</${name}>`, begin) + name.length + 3 : end;
    }
  }
  return kept + text.slice(done);
}

/** Whether only spaces are between this place and the beginning of its line, or `done`. */
function beginsLine(text: string, place: number, done: number): boolean {
  let line = place;
  while (line > done && (text[line - 1] === ' ' || text[line - 1] === '\t')) line--;
  return line === done || text[line - 1] === '\n';
}
