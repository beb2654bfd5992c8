import { expect } from 'vitest';
import type { Reply } from './client.ts';
import { ERRORS, type WireError, type WireErrorCode } from './wire.ts';

const ENVELOPE_KEYS = ['code', 'message', 'provider', 'request_id', 'type'];
/** Words that only driver text, SQL, stack traces or our own sources would bring into a message. */
const INNER_TEXT = /\bselect\b.*\bfrom\b|node_modules|\bat .*\(.*:\d+:\d+\)|ECONN|postgres:\/\/|\/src\//i;

/** Asserts the one envelope with the status and type that belong to the code, and returns the error. */
export const expectError = (reply: Reply, code: WireErrorCode): WireError['error'] => {
  expect({ status: reply.status, body: reply.body }, reply.text).toMatchObject({
    status: ERRORS[code].status,
    body: { error: { code, type: ERRORS[code].type } },
  });
  expect(reply.headers.get('content-type')).toMatch(/^application\/json(;|$)/);
  const body = reply.body as WireError;
  expect(Object.keys(body)).toEqual(['error']);
  const { error } = body;
  expect(ENVELOPE_KEYS, 'an unknown key in the envelope').toEqual(expect.arrayContaining(Object.keys(error)));
  expect(error.message).toMatch(/\S/);
  expect(error.message).not.toMatch(INNER_TEXT);
  expect(error.request_id).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  expect(error.request_id).toBe(reply.headers.get('x-request-id'));
  return error;
};
