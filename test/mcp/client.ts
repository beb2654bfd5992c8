import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { onTestFinished } from 'vitest';

/** The two generations of the protocol: with and without `initialize`. */
export const REVISIONS = [
  ['2025-11-25', 'legacy'],
  ['2026-07-28', 'auto'],
] as const;
export type Mode = (typeof REVISIONS)[number][1];

/** A client of the SDK, connected to this URL and closed after the test. */
export async function connect(
  url: string,
  mode: Mode = 'auto',
  headers: Record<string, string> = {},
  names: { readonly name: string; readonly title?: string } = { name: 'test-agent' },
): Promise<Client> {
  const client = new Client({ ...names, version: '1' }, { versionNegotiation: { mode } });
  onTestFinished(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

export interface ToolError {
  readonly code: string;
  readonly message: string;
}

/** The result of a tool; throws if it is an error, or if its text differs from its structure. */
export async function callTool<Result>(client: Client, name: string, args: object = {}): Promise<Result> {
  const { isError, content, structuredContent } = await client.callTool({ name, arguments: { ...args } });
  const [block] = content;
  const text = block?.type === 'text' ? block.text : '';
  if (isError) throw new Error(text);
  if (text !== JSON.stringify(structuredContent))
    throw new Error(`${text} is not ${JSON.stringify(structuredContent)}`);
  return structuredContent as Result;
}

/** The error of a tool that fails. */
export async function toolError(client: Client, name: string, args: object = {}): Promise<ToolError> {
  const { isError, content } = await client.callTool({ name, arguments: { ...args } });
  const [block] = content;
  if (!isError || block?.type !== 'text') throw new Error(`${name} did not fail: ${JSON.stringify(content)}`);
  return (JSON.parse(block.text) as { error: ToolError }).error;
}
