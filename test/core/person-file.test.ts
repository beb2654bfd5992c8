import { describe, expect, it, onTestFinished } from 'vitest';
import type { Provider } from '#contract';
import { altered, CRM, down, failing, HANDBOOK, once, open } from '../stores/mounts-subject.ts';
import { expectError } from '../support/expect-error.ts';
import { callBy, memoryOf } from '../support/requests.ts';
import { openSubject } from '../support/subject.ts';

type Line = Readonly<Record<string, unknown>>;
const parsed = (text: string): Line[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** A gateway on several stores of memory, and the lines of the file of its user. */
async function opened(...args: Parameters<typeof open>) {
  const all = await open(...args);
  const file = async () => {
    const { status, text } = await all.client.ask(`/users/${all.user_id}/file`);
    expect(status, text).toBe(200);
    return parsed(text);
  };
  return { ...all, file };
}

const told = (lines: readonly Line[], type: string, ...fields: string[]) =>
  lines.filter((line) => line.type === type).map((line) => fields.map((name) => line[name]));

describe('[Decision 61] the file of a person, of several stores', () => {
  it('names the store of each memory, and has what a mount hides in the root store', async () => {
    const { add, file, root, user_id } = await opened();
    await add('one');
    await add('two', 'docs/handbook');
    const { id } = await add('three', 'crm/x');
    await root.add({ input: memoryOf(user_id, 'hidden', { scope: 'crm/y' }) }, callBy());
    const lines = await file();
    expect(lines[0]).toMatchObject({
      stores: [
        { name: 'memory' },
        { name: 'handbook', holds: 'docs/handbook and below' },
        { name: 'crm', holds: 'crm and below' },
      ],
    });
    expect(told(lines, 'memory', 'content', 'store').sort()).toEqual([
      ['hidden', 'memory'],
      ['one', 'memory'],
      ['three', 'crm'],
      ['two', 'handbook'],
    ]);
    expect(lines.find((line) => line.content === 'three')).toMatchObject({ id, scope: 'crm/x' });
    expect(lines.at(-1)).toMatchObject({ type: 'end', memories: 4, complete: true });
  });

  it.each([true, false])('names a store that fails, and goes on with the others (required: %s)', async (required) => {
    const { add, file, subject } = await opened([{ ...HANDBOOK, required, current: failing }, CRM]);
    await add('one');
    await add('two', 'crm');
    const lines = await file();
    expect(told(lines, 'memory', 'content')).toEqual([['one'], ['two']]);
    expect(told(lines, 'missing', 'what', 'why')).toEqual([['memories of the store handbook', 'it does not answer']]);
    expect(lines.at(-1)).toMatchObject({ type: 'end', memories: 2, complete: false });
    const logged = subject.lines.filter(({ message }) => message === 'a file of a person is incomplete');
    expect(logged).toHaveLength(1);
  });

  it('lists a store without export, with the versions of each memory, and names one that can do neither', async () => {
    const listed = { ...HANDBOOK, current: once(altered(() => ({ export: undefined as never }))) };
    const silent = {
      ...CRM,
      current: once(
        altered(() => ({ export: undefined as never, list: undefined as never, versions: undefined as never })),
      ),
    };
    const { add, client, file } = await opened([listed, silent]);
    for (let n = 0; n < 3; n++) {
      const { id } = await add(`draft ${n}`, 'docs/handbook');
      await client.update(id, { content: `text ${n}` });
    }
    const lines = await file();
    expect(told(lines, 'memory', 'content').sort()).toEqual([['text 0'], ['text 1'], ['text 2']]);
    for (const [n, line] of lines.entries()) {
      if (line.type === 'memory')
        expect(lines[n + 1]).toMatchObject({ type: 'version', id: line.id, version: 1, store: 'handbook' });
    }
    expect(told(lines, 'missing', 'what', 'why')).toEqual([['memories of the store crm', 'it cannot list them']]);
    expect(told(lines, 'not_kept', 'what')).toEqual([['older versions of the store crm']]);
    expect(lines.at(-1)).toMatchObject({ memories: 3, versions: 3, complete: false });
  });
});

/** The file of `u` from a store of memory that was changed, asked for in process. */
async function fileFrom(
  alter: (provider: Required<Provider>) => Partial<Provider>,
  memories = ['one', 'two', 'three'],
) {
  const subject = await openSubject({
    ...{ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' },
    alter: (provider) => ({ ...provider, ...alter(provider as Required<Provider>) }),
  });
  onTestFinished(subject.close);
  for (const content of memories) {
    const { id } = await subject.client.add({ user_id: 'u', content: `draft of ${content}` });
    await subject.client.update(id, { content: `later draft of ${content}` });
    await subject.client.update(id, { content });
  }
  await subject.client.add({ user_id: 'somebody else', content: 'secret' });
  const reply = await subject.client.ask('/users/u/file');
  return { reply, lines: reply.status === 200 ? parsed(reply.text) : [] };
}

describe('[Decision 61] the file of a person, of one store', () => {
  it('is an error if nothing can be read', async () => {
    const { reply } = await fileFrom(({ name }) => ({ export: () => down(name) }));
    expectError(reply, 'provider_error');
  });

  it('lists a mapped store, whose export may lack memories', async () => {
    const { lines } = await fileFrom(({ capabilities }) => ({
      capabilities: { ...capabilities, mapped: true },
      versions: undefined as never,
      export: async () => ({ items: [], next: undefined }),
    }));
    expect(told(lines, 'memory', 'content').sort()).toEqual([['one'], ['three'], ['two']]);
    expect(lines.at(-1)).toMatchObject({ memories: 3, complete: true });
  });

  it.each([
    ['memories', 'the rest of the memories of the store memory', [['one']]],
    ['audit entries', 'audit entries', [['one'], ['two'], ['three']]],
  ])('says so if %s fail on the way', async (what, missing, found) => {
    const { lines } = await fileFrom(({ name, export: exportPart, audit }) => ({
      export: async (query, call) => {
        if (what === 'memories' && query.after !== undefined) return down(name);
        return exportPart({ ...query, ...(what === 'memories' && { limit: 1 }) }, call);
      },
      audit: { ...audit, ...(what !== 'memories' && { read: () => down(name) }) },
    }));
    expect(told(lines, 'memory', 'content')).toEqual(found);
    expect(told(lines, 'missing', 'what', 'why')).toEqual([[missing, 'it does not answer']]);
    expect(lines.at(-1)).toMatchObject({ type: 'end', complete: false });
  });

  it('reads the versions that an export leaves out because they are large, and names those that it cannot', async () => {
    const few = (parts: Partial<Required<Provider>['versions']>) => (provider: Required<Provider>) => ({
      export: async (...[query, call]: Parameters<typeof provider.export>) => {
        const { items, next } = await provider.export(query, call);
        const cut = items.map((item) => ({ ...item, versions: item.versions?.slice(0, 1), versions_left_out: 1 }));
        return { items: cut, next };
      },
      versions: { ...provider.versions, ...parts },
    });
    const whole = await fileFrom(few({}));
    expect(told(whole.lines, 'version', 'content', 'version')).toEqual(
      ['one', 'two', 'three'].flatMap((text) => [
        [`later draft of ${text}`, 2],
        [`draft of ${text}`, 1],
      ]),
    );
    expect(whole.lines.at(-1)).toMatchObject({ memories: 3, versions: 6, complete: true });
    const { lines } = await fileFrom(few({ list: () => down('memory') }));
    const ids = told(lines, 'memory', 'id');
    expect(told(lines, 'missing', 'what')).toEqual(ids.map(([id]) => [`older versions of ${id}`]));
    expect(lines.at(-1)).toMatchObject({ memories: 3, versions: 3, complete: false });
  });

  it('shows no row of somebody else that a faulty store returns', async () => {
    const { lines, reply } = await fileFrom(({ export: exportPart }) => ({
      export: async ({ user_id: _, ...query }, call) => {
        const { items } = await exportPart({ ...query, after: undefined }, call);
        // The second page is the faulty one.
        return query.after === undefined
          ? { items: items.filter(({ memory }) => memory.user_id === 'u'), next: 'x' }
          : { items, next: undefined };
      },
    }));
    expect(reply.text).not.toContain('secret');
    expect(told(lines, 'missing', 'what')).toEqual([['the rest of the memories of the store memory']]);
    expect(lines.at(-1)).toMatchObject({ memories: told(lines, 'memory').length, complete: false });
  });
});
