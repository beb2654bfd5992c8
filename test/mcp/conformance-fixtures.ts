import { McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { onTestFinished, vi } from 'vitest';
import { z } from 'zod';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==';

const text = (value: string) => ({ type: 'text', text: value }) as const;
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' } as const;
const audio = { type: 'audio', data: SILENCE, mimeType: 'audio/wav' } as const;
const resource = (uri: string) =>
  ({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'text' } }) as const;

/**
 * Until the end of the test, every MCP server of this process also has the tools, resources and prompts that scenarios of
 * the conformance runner call by name.
 */
export function mountFixtures(): void {
  const { connect } = McpServer.prototype;
  const spy = vi.spyOn(McpServer.prototype, 'connect').mockImplementation(function (this: McpServer, transport) {
    register(this);
    return connect.call(this, transport);
  });
  onTestFinished(() => spy.mockRestore());
}

function register(server: McpServer): void {
  const contents = {
    test_simple_text: [text('text')],
    test_image_content: [image],
    test_audio_content: [audio],
    test_embedded_resource: [resource('test://embedded-resource')],
    test_multiple_content_types: [text('text'), image, resource('test://mixed-content-resource')],
  };
  for (const [name, content] of Object.entries(contents)) {
    server.registerTool(name, { description: name }, () => ({ content: [...content] }));
  }
  server.registerTool('test_error_handling', { description: 'Fails' }, () => {
    throw new Error('failed on purpose');
  });
  server.registerTool('test_tool_with_progress', { description: 'Reports progress' }, async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: progressToken ?? 0, progress, total: 100 },
      });
    }
    return { content: [text('done')] };
  });

  const mimeType = 'text/plain';
  server.registerResource('text', 'test://static-text', { mimeType }, ({ href }) => ({
    contents: [{ uri: href, mimeType, text: 'text' }],
  }));
  server.registerResource('binary', 'test://static-binary', { mimeType: 'image/png' }, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'image/png', blob: PIXEL }],
  }));
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  server.registerResource('template', template, { mimeType }, ({ href }, { id }) => ({
    contents: [{ uri: href, mimeType, text: `data of ${id}` }],
  }));

  const user = <Content>(content: Content) => ({ role: 'user' as const, content });
  server.registerPrompt('test_simple_prompt', { description: 'Text' }, () => ({ messages: [user(text('text'))] }));
  server.registerPrompt('test_prompt_with_image', { description: 'An image' }, () => ({ messages: [user(image)] }));
  const two = z.object({ arg1: z.string(), arg2: z.string() });
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'Two arguments', argsSchema: two },
    ({ arg1, arg2 }) => ({
      messages: [user(text(`${arg1} ${arg2}`))],
    }),
  );
  const argsSchema = z.object({ resourceUri: z.string() });
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'A resource', argsSchema },
    ({ resourceUri }) => ({
      messages: [user(resource(resourceUri))],
    }),
  );
}
