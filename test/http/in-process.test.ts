import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';

describe('the app without a server around it', () => {
  let subject: Subject;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
  });
  afterAll(() => subject.close());

  it('[SPEC GET /healthz] [SPEC POST /memories] serves requests that come with no environment at all', async () => {
    const { app } = subject;
    expect((await app.request('/healthz')).status).toBe(200);
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
    expect((await app.request('/memories', init)).status).toBe(201);
  });
});
