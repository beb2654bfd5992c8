import type { Context } from 'hono';
import type { FileAnswer } from '../verbs/verb.ts';
import { reportError } from './error-envelope.ts';
import type { Env } from './request.ts';

/**
 * Lines of JSON, made while they are sent: the next page when the client has taken the one before. A file that cannot be sent to its end
 * breaks the connection, so that no client takes a part for the whole.
 */
export function fileAnswer(c: Context<Env>, { name, pages }: FileAnswer): Response {
  const call = c.get('call');
  const encoder = new TextEncoder();
  const chunks = async function* () {
    try {
      for await (const page of pages) {
        yield encoder.encode(page.map((line) => `${JSON.stringify(line)}\n`).join(''));
        call.partTaken = true;
        // It may take as long as its client likes.
        await call.reauthenticate();
      }
    } catch (error) {
      reportError(error, c);
      c.env?.outgoing?.destroy();
    }
  };
  call.isStream = true;
  return c.body(ReadableStream.from(chunks()), 200, {
    'content-type': 'application/x-ndjson',
    'content-disposition': `attachment; filename="${name}"`,
  });
}
