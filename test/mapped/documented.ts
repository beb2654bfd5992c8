import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { runDoctor } from '../../src/cli/doctor.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Gateway, serve } from '../../src/serve.ts';
import { type Answer, embeddingsServer, sendJson } from '../embedding/embeddings-server.ts';
import { type Client, clientOf } from '../support/client.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';

/**
 * Settings of the first `sh` block of `docs/integrations/<page>.md`, or of the part under a heading, as a user would paste
 * them into a shell.
 */
export function documentedEnvironment(page: string, heading?: string): Record<string, string> {
  const [block] = blocksOf(page, heading, 'sh');
  if (block === undefined) throw new Error(`${page}.md has no sh block${heading ? ` under "${heading}"` : ''}`);
  const lines = block.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map(settingIn));
}

/** Statements of all `sql` blocks, without their semicolons. */
export const documentedSql = (page: string, heading?: string): string[] =>
  blocksOf(page, heading, 'sql')
    .flatMap((block) => block.split(/;\s*$/m))
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');

function blocksOf(page: string, heading: string | undefined, language: string): string[] {
  const text = readFileSync(new URL(`../../docs/integrations/${page}.md`, import.meta.url), 'utf8');
  const part = heading === undefined ? text : text.split(/^## /m).find((each) => each.startsWith(`${heading}\n`));
  if (part === undefined) throw new Error(`${page}.md has no heading "${heading}"`);
  const blocks = part.matchAll(new RegExp(`\`\`\`${language}\\n([^\`]*)\`\`\``, 'g'));
  return [...blocks].map(([, block]) => (block as string).replaceAll('…', 'x'));
}

/** `NAME=value`, the value bare or in double quotes, as a shell and Docker's env files read it. */
function settingIn(line: string): [string, string] {
  const [, name, quoted, bare] = /^(\w+)=(?:"([^"\\$`]*)"|([^\s"'$`\\#]*))$/.exec(line) ?? [];
  if (name === undefined) throw new Error(`not a plain setting: ${line}`);
  return [name, quoted ?? bare ?? ''];
}

export interface RunningMapped {
  readonly client: Client;
  readonly gateway: Gateway;
  close(): Promise<void>;
}

/** A gateway with documented settings; `env` names the test's own database and embedding service. */
export async function serveDocumented(
  env: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {},
): Promise<RunningMapped> {
  const { config, warnings } = loadConfig({ env: { ...env, OMP_PORT: '0', ...more } });
  expect(warnings).toEqual([]);
  const gateway = await serve(config, recordingLog());
  const base = `http://127.0.0.1:${gateway.port}`;
  return { gateway, client: clientOf((path, init) => fetch(base + path, init)), close: gateway.close };
}

/** Runs `omp-gateway doctor --json` in this process. */
export async function askDoctor(env: Readonly<Record<string, string>>) {
  const [stdout, stderr]: [string[], string[]] = [[], []];
  const status = await runDoctor(['--json'], {
    env,
    stdout: { write: (text: string) => stdout.push(text) },
    stderr: { write: (text: string) => stderr.push(text) },
  });
  return { status, stdout: stdout.join(''), stderr: stderr.join('') };
}

/** Vector lengths of the models that the documentation names, as their makers publish them. */
const DIMENSIONS: Readonly<Record<string, number>> = {
  'text-embedding-3-small': 1536,
  'text-embedding-3-large': 3072,
  'text-embedding-ada-002': 1536,
  'sentence-transformers/all-mpnet-base-v2': 768,
  'all-MiniLM-L6-v2': 384,
  'Supabase/gte-small': 384,
  'nomic-embed-text': 768,
  // Of recorded tables.
  eight: 8,
};

/** Of the same length for equal texts: similar spelling comes out near. */
export const vectorOf = async (text: string, dimensions: number): Promise<Float32Array> =>
  (await hashingEmbedder(dimensions).embed([text], 'document', call))[0] as Float32Array;

const answer: Answer = async ({ model, input, encoding_format, dimensions = DIMENSIONS[model] }, response) => {
  if (dimensions === undefined) throw new Error(`no length is known for the model ${model}`);
  const data = await Promise.all(
    // One text may come by itself.
    [input].flat().map(async (text, index) => {
      const vector = await vectorOf(text, dimensions);
      const embedding = encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector];
      return { object: 'embedding', index, embedding };
    }),
  );
  sendJson(response, 200, { object: 'list', model, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
};

/** An embedding service on loopback with OpenAI's interface; its vectors are those of `vectorOf`. */
export async function openAiServer() {
  const server = await embeddingsServer();
  server.answer = answer;
  return server;
}
