import { createMcpHandler } from '@modelcontextprotocol/server';
import type { ToolCaller } from './memories.ts';
import { createServer, type McpServerOptions } from './server.ts';

/** MCP over HTTP, without sessions: every request gets a server of its own (all revisions that the SDK speaks). */
export function createHandler(
  options: McpServerOptions & { readonly max_request_bytes: number },
  onerror: (error: Error) => void,
) {
  const handler = createMcpHandler(
    ({ authInfo }) => createServer(options, authInfo?.extra?.caller as ToolCaller),
    // Nothing here changes, so there is nothing to subscribe to.
    { maxSubscriptions: 0, keepAliveMs: 0, maxRequestBodySize: options.max_request_bytes, onerror },
  );
  return (request: Request, caller: ToolCaller): Promise<Response> =>
    handler.fetch(request, { authInfo: { token: '', clientId: '', scopes: [], extra: { caller } } });
}
