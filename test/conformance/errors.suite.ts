import { describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { MAX_BODY_BYTES } from '../support/wire.ts';
import type { GetSubject } from './subject.ts';

const UNKNOWN = '/memories/mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';

export const errorsSuite = (subject: GetSubject) =>
  describe('errors', () => {
    const { raw, post } = {
      raw: (path: string, init?: RequestInit) => subject().client.raw(path, init),
      post: (body: string, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
        subject().client.raw('/memories', { method: 'POST', body, headers }),
    };

    it('[SPEC Errors envelope] [SPEC Errors code] [SPEC Errors message] [SPEC Errors type] [SPEC Errors request_id] is one object with the single key error', async () => {
      const reply = await raw(UNKNOWN);
      const { code, message, type, request_id } = expectError(reply, 'not_found');
      expect(reply.body).toEqual({ error: { code, message, type, request_id } });
    });

    it('[SPEC Service one envelope] [SPEC Errors not_found] [Decision 16] unknown paths and methods answer it too', async () => {
      const asked: readonly (readonly [string, string])[] = [
        ['GET', '/'],
        ['GET', '/memory'],
        ['GET', '/memories/'],
        ['GET', '/memories/a/b'],
        ['GET', '/Memories'],
        ['GET', '/v1/memories'],
        ['GET', '//memories'],
        ['PUT', UNKNOWN],
        ['POST', UNKNOWN],
        ['DELETE', '/memories'],
        ['PATCH', '/memories'],
        ['POST', '/memories/search'],
        ['GET', '/context'],
        ['POST', '/capabilities'],
        ['DELETE', '/healthz'],
        ['OPTIONS', '/memories'],
      ];
      for (const [method, path] of asked) {
        const reply = await raw(path, { method });
        expect(reply.status, `${method} ${path}`).toBe(404);
        expectError(reply, 'not_found');
      }
    });

    it('[SPEC Errors not_found] [Decision 16] any id that is not stored is simply absent', async () => {
      const ids = [
        'mem_',
        'x',
        'search%20',
        '%00',
        'a%00b',
        '%2F',
        '..%2F..',
        '%E8%A8%98',
        '%F0%9F%98%80',
        "'%20or%201=1",
        'a%20b',
        'mem_x?',
        '%25',
        'A'.repeat(2000),
      ];
      for (const id of ids) {
        expectError(await raw(`/memories/${id}`), 'not_found');
        expectError(await raw(`/memories/${id}`, { method: 'DELETE' }), 'not_found');
        const patch = { method: 'PATCH', body: '{"content":"x"}', headers: { 'content-type': 'application/json' } };
        expectError(await raw(`/memories/${id}`, patch), 'not_found');
      }
    });

    it('[SPEC Errors invalid_request] a body that is no JSON object', async () => {
      const bodies = [
        '',
        ' ',
        '{',
        '{"content":"a",}',
        'null',
        '[]',
        '"text"',
        '5',
        'true',
        'undefined',
        '{"content":"a"} x',
        "{'content':'a'}",
      ];
      for (const body of bodies) expectError(await post(body), 'invalid_request');
    });

    it('[SPEC Errors invalid_request] [SPEC Service json] a body that is not declared as JSON', async () => {
      const body = JSON.stringify({ content: 'x', user_id: freshUser() });
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'application/jsonx',
        'text/json',
      ]) {
        expectError(await post(body, { 'content-type': type }), 'invalid_request');
      }
      for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/vnd.omp+json']) {
        expect((await post(body, { 'content-type': type })).status, type).toBe(201);
      }
    });

    it('[SPEC Errors invalid_request] a known query parameter given twice', async () => {
      const user_id = freshUser();
      for (const twice of [
        'limit=1&limit=2',
        'tag=a&tag=a',
        'scope=a&scope=b',
        'since=2024&since=2024',
        `user_id=${user_id}`,
      ]) {
        expectError(await raw(`/memories?user_id=${user_id}&${twice}`), 'invalid_request');
      }
      expectError(await raw(`/memories/search?user_id=${user_id}&q=a&q=b`), 'invalid_request');
    });

    it('[Decision 6] [SPEC Versioning 3] query parameters it does not know are ignored, twice too', async () => {
      const reply = await raw(`/memories?user_id=${freshUser()}&future=1&future=2&sort=asc`);
      expect(reply.status).toBe(200);
    });

    it('[SPEC Errors invalid_request] percent-encoding that means no text', async () => {
      for (const bad of ['%', '%zz', '%E0%A4%A', '%ff', '%ED%A0%80', 'a%00b']) {
        expectError(await raw(`/memories?user_id=${bad}`), 'invalid_request');
        expectError(await raw(`/memories?user_id=u&tag=${bad}`), 'invalid_request');
        expectError(await raw(`/memories?user_id=u&scope=${bad}`), 'invalid_request');
        expectError(await raw(`/memories/search?user_id=u&q=${bad}`), 'invalid_request');
      }
    });

    it('[SPEC Errors payload_too_large] [SPEC Limits body] one byte more than 1 MiB', async () => {
      const body = JSON.stringify({ content: 'x', user_id: freshUser() });
      expect((await post(body.padEnd(MAX_BODY_BYTES))).status).toBe(201);
      expectError(await post(body.padEnd(MAX_BODY_BYTES + 1)), 'payload_too_large');
      expectError(await post('{'.padEnd(2 * MAX_BODY_BYTES)), 'payload_too_large');
      const patch = {
        method: 'PATCH',
        body: '{}'.padEnd(MAX_BODY_BYTES + 1),
        headers: { 'content-type': 'application/json' },
      };
      expectError(await raw(UNKNOWN, patch), 'payload_too_large');
      expectError(await raw('/context', { ...patch, method: 'POST' }), 'payload_too_large');
    });

    it('[SPEC Limits body] bytes are counted, not characters', async () => {
      const body = (filler: string) => JSON.stringify({ content: 'x', user_id: freshUser(), ignored: filler });
      const euros = Math.floor(MAX_BODY_BYTES / 3);
      expectError(await post(body('€'.repeat(euros))), 'payload_too_large');
      expect((await post(body('€'.repeat(euros - 100)))).status).toBe(201);
    });

    it('[Decision 15] [SPEC Errors request_id] x-request-id is taken over when it is well formed', async () => {
      for (const given of ['a', 'A.b_c-9', 'x'.repeat(64)]) {
        for (const path of ['/healthz', '/memories', UNKNOWN, '/nowhere']) {
          const reply = await raw(path, { headers: { 'x-request-id': given } });
          expect(reply.headers.get('x-request-id'), path).toBe(given);
        }
        expect(expectError(await raw(UNKNOWN, { headers: { 'x-request-id': given } }), 'not_found').request_id).toBe(
          given,
        );
      }
    });

    it('[Decision 15] otherwise one is made, another each time', async () => {
      for (const given of ['', ' ', 'a b', 'x'.repeat(65), 'a,b', 'ü', '<script>', 'a/b']) {
        const [first, second] = await Promise.all(
          [0, 1].map(async () =>
            (await raw('/healthz', { headers: { 'x-request-id': given } })).headers.get('x-request-id'),
          ),
        );
        expect(first, given).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
        expect(first).not.toBe(given);
        expect(first).not.toBe(second);
      }
    });
  });
