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

/** The words of the person: without blocks that begin a line, and without what stands for an interruption. Trimmed. */
export function spokenIn(text: string): string {
  if (text.startsWith('[Request interrupted by user')) return '';
  let left = text;
  for (const name of INJECTED) left = withoutBlocks(left, name);
  return left.replace(/<\/?command-args>/g, '').trim();
}

/**
 * A block holds text of others, such as a piped file, in which the closing tag may stand too: it reaches to the last one. Without any, it
 * is no block but the person's words.
 */
function withoutBlocks(text: string, name: string): string {
  const close = `</${name}>`;
  const last = text.lastIndexOf(close);
  let kept = '';
  let done = 0;
  for (let begin = text.indexOf(`<${name}`); begin >= 0 && begin < last; begin = text.indexOf(`<${name}`, begin + 1)) {
    let line = begin;
    while (text[line - 1] === ' ' || text[line - 1] === '\t') line--;
    const isBlock = (line === 0 || text[line - 1] === '\n') && /[\s>]/.test(text[begin + name.length + 1] ?? '');
    if (!isBlock) continue;
    kept += text.slice(done, begin);
    done = (name === REPEATED ? text.indexOf(close, begin) : last) + close.length;
    begin = done - 1;
  }
  return kept + text.slice(done);
}
