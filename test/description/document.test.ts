import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSubject, type Subject } from '../support/subject.ts';
import { type Document, endpointsOf, fetchDocument, judgeDocument, judgeOf, pointerTo } from './document.ts';

/** Files of the page at /docs, no part of the interface. */
const UNDESCRIBED = ['GET /docs/start.js', 'GET /docs/:asset'];

describe('the description', () => {
  let subject: Subject;
  let document: Document;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
    document = await fetchDocument(subject.client);
  });
  afterAll(() => subject.close());

  it('is JSON that the official schema of OpenAPI 3.1 accepts', async () => {
    const reply = await subject.client.ask('/openapi.json');
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toBe('application/json');
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(await judgeDocument(document)).toEqual([]);
    expect(await judgeDocument({ ...document, paths: { memories: {} } }), 'the judge must see a fault').not.toEqual([]);
  });

  it('names the protocol, its version and this server', () => {
    expect(document.info).toMatchObject({ title: 'Open Memory Protocol gateway', version: '0.1' });
    expect(document.info.version).toBe(subject.capabilities.omp_version);
    expect(document.servers).toEqual([{ url: '.' }]);
  });

  it('uses no word that OpenAPI 3.1 removed', () => {
    expect(JSON.stringify(document)).not.toContain('"nullable"');
  });

  it('describes every route there is, and no other', () => {
    const routes = subject.app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method} ${path}`);
    const described = endpointsOf(document).map(
      ({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    );
    expect(described).toEqual([...new Set(described)]);
    expect([...described, ...UNDESCRIBED].sort()).toEqual([...new Set(routes)].sort());
  });

  it('[SPEC Authentication 3] [SPEC Authentication 4] asks for a credential wherever it tells of 401, and lets an open gateway do without', () => {
    expect(Object.keys(document.components.securitySchemes)).toEqual(['bearer', 'apiKey']);
    expect(document.security).toEqual([{ bearer: [] }, { apiKey: [] }, {}]);
    for (const { method, path, operation } of endpointsOf(document))
      expect(operation.security, `${method} ${path}`).toEqual('401' in operation.responses ? undefined : []);
  });

  it('tells what every parameter and every field of a body is', () => {
    for (const { method, path, parameters } of endpointsOf(document))
      for (const { name, description } of parameters) expect(description, `${method} ${path} ${name}`).toMatch(/\S/);
    for (const name of ['NewMemory', 'MemoryPatch', 'ContextRequest'])
      for (const [field, schema] of Object.entries(document.components.schemas[name]?.properties ?? {}))
        if (field !== 'source') expect(schema, `${name}.${field}`).toHaveProperty('description');
  });

  it('gives examples that its own schemas accept', async () => {
    const judge = await judgeOf(document, { closed: true });
    let seen = 0;
    const check = async (pointer: string, value: unknown) => {
      seen++;
      expect(await judge.mistakes(`${pointer}/schema`, value), `${pointer} ${JSON.stringify(value)}`).toEqual([]);
    };
    for (const { method, path, operation, parameters } of endpointsOf(document)) {
      for (const [index, parameter] of parameters.entries())
        if (parameter.example !== undefined)
          await check(pointerTo('paths', path, method.toLowerCase(), 'parameters', String(index)), parameter.example);
      const places = [
        { place: ['requestBody'], content: operation.requestBody?.content },
        ...Object.entries(operation.responses).map(([status, { content }]) => ({
          place: ['responses', status],
          content,
        })),
      ];
      for (const { place, content } of places)
        for (const [type, { example, examples = {} }] of Object.entries(content ?? {})) {
          const pointer = pointerTo('paths', path, method.toLowerCase(), ...place, 'content', type);
          if (example !== undefined) await check(pointer, example);
          for (const { value } of Object.values(examples)) await check(pointer, value);
        }
    }
    expect(seen).toBeGreaterThan(40);
    await judge.close();
  });
});
