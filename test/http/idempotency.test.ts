import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';

describe('what counts as the same memory', () => {
  let subject: Subject;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
  });
  afterAll(() => subject.close());

  /** Posts these texts under one key. */
  const post = async (...bodies: readonly string[]) => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': freshUser() };
    const replies: Reply[] = [];
    for (const body of bodies) replies.push(await subject.client.raw('/memories', { method: 'POST', headers, body }));
    return replies;
  };

  it('[Decision 20] is not its writing: order, spaces, escapes, spelling of numbers and times', async () => {
    const replies = await post(
      `{"content":"tea","user_id":"u","source":{"app":"a","ref":"r"},"confidence":0.5,
        "valid_to":"2030-01-01T00:00:00Z","tags":["t"],"x-a":{"b":[1,{"c":2,"d":3}],"10":0},"x-b":-0}`,
      `{"x-b":0.0,"x-a":{"10":0,"b":[1.0,{"d":3e0,"c":2}]},"tags":["t","t"],"valid_to":"2030-01-01T01:00+01:00",
        "confidence":5e-1,"source":{"ref":"r","type":null,"app":"a"},"user_id":"u","content":"\\u0074ea","scope":null}`,
    );
    expect(replies.map(({ status }) => status)).toEqual([201, 201]);
    expect(replies[1]?.text).toBe(replies[0]?.text);
  });

  it('[Decision 20] is everything it says, what engines have names of their own for included', async () => {
    const memory = (own: string) => `{"content":"tea","user_id":"u","x-a":${own}}`;
    const values = ['{}', '{"__proto__":1}', '{"__proto__":{"a":1}}', '{"constructor":1}', '[]', '[[]]', '"{}"', '0'];
    for (const value of values) {
      const [first, again, ...others] = await post(...[value, value, ...values.filter((v) => v !== value)].map(memory));
      expect(first?.text, value).toContain(`"x-a":${value}`);
      expect(again?.text, value).toBe(first?.text);
      for (const other of others) expectError(other, 'invalid_request');
    }
  });

  it('[Decision 6] [Decision 7] __proto__ in a caller’s own keys is data, in every answer', async () => {
    const user_id = freshUser();
    const body = `{"content":"tea","user_id":"${user_id}","x-a":{"__proto__":{"a":1}},"__proto__":{"scope":"s"}}`;
    const [added] = (await post(body)) as [Reply];
    const { id } = added.body as { id: string };
    const own = '"x-a":{"__proto__":{"a":1}}';
    expect(added.text).toContain(own);
    expect(added.body).toMatchObject({ scope: null });
    const path = subject.client.byId(id);
    expect((await subject.client.ask(path)).text).toContain(own);
    expect((await subject.client.ask('/memories', { user_id })).text).toContain(own);
    const headers = { 'content-type': 'application/json' };
    const patch = (text: string) => subject.client.raw(path, { method: 'PATCH', headers, body: text });
    const same = await patch(`{"x-a":{"__proto__":{"a":1}}}`);
    expect(same.text, 'a patch that changes nothing').toBe(added.text);
    const changed = await patch(`{"x-a":{"__proto__":{"a":2}}}`);
    expect(changed.text).toContain('"x-a":{"__proto__":{"a":2}}');
  });
});
