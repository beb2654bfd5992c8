import { createMcpHandler } from '@modelcontextprotocol/server';
import type { ToolCaller } from './memories.ts';
import { createServer, type McpServerOptions } from './server.ts';

/** MCP over HTTP, without sessions: every request gets a server of its own (all revisions that the SDK speaks). */
export function createHandler(options: McpServerOptions, onerror: (error: Error) => void) {
  const handler = createMcpHandler(
    ({ authInfo }) => createServer(options, authInfo?.extra?.caller as ToolCaller),
    // Nothing here changes, so there is nothing to subscribe to.
    { maxSubscriptions: 0, keepAliveMs: 0, onerror },
  );
  /** `message` is the parsed body of the request; the SDK reads no body itself. */
  return (request: Request, message: unknown, caller: ToolCaller): Promise<Response> =>
    handler.fetch(request, {
      parsedBody: message,
      authInfo: { token: '', clientId: '', scopes: [], extra: { caller } },
    });
}
