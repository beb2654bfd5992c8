import { readFileSync } from 'node:fs';

/** The lines with `docker compose` of the block of a document in which `words` are, without their comments. */
export function commandsOf(file: string, words: string): string[] {
  const blocks = [...readFileSync(file, 'utf8').matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].map(
    ([, block = '']) => block,
  );
  const block = blocks.find((each) => each.includes('docker compose') && each.includes(words)) ?? '';
  const lines = block.split('\n').map((line) => line.replace(/\s+# .*$/, '').trim());
  const commands = lines.filter((line) => line.startsWith('docker compose'));
  if (commands.length === 0) throw new Error(`${file} has no docker compose commands with ${words}`);
  return commands;
}
