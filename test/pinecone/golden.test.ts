import { readFile } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { ExportedMemory, Memory, Provider, SearchHit } from '#contract';
import { post } from '../pinecone-server/plain.ts';
import { startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, listOf, refTo, searchFor } from '../support/requests.ts';
import { type Gateway, openGateway } from './gateways.ts';
import { allPages, idsOf, paging } from './listing.ts';

/**
 * All records of an index that a gateway filled on 2026-11-27, before its verbs were made by the kit of collections, and what that gateway
 * answered about them: whole memories, emptied fields, a text without signal, memories of other stores.
 */
interface Golden {
  readonly records: Readonly<Record<string, Readonly<Record<string, { values: number[]; metadata: object }>>>>;
  readonly ids: readonly string[];
  readonly answers: Awaited<ReturnType<typeof answersOf>>;
}

const exportAll = async (gateway: Required<Pick<Provider, 'export'>>): Promise<ExportedMemory[]> => {
  const items: ExportedMemory[] = [];
  for (let after: string | undefined; ; ) {
    const page = await gateway.export({ vectors: true, limit: 2, max_bytes: 1e9, ...(after && { after }) }, call);
    items.push(...page.items);
    if (page.next === undefined) return items;
    after = page.next;
  }
};

async function answersOf(gateway: Gateway & Required<Pick<Provider, 'export'>>, ids: readonly string[]) {
  const got = await Promise.all(ids.map((id) => gateway.get(refTo(id), call)));
  const listed: Memory[][] = [];
  const found: SearchHit[][] = [];
  for (const user of new Set(got.flatMap((memory) => memory?.user_id ?? []))) {
    listed.push(await allPages(paging((query, by) => gateway.list(query, by), user, { limit: 2 })));
    listed.push(await gateway.list(listOf(user, { tags: ['home'] }), call));
    found.push(await gateway.search(searchFor(user, 'the cat sleeps'), call));
    found.push(await gateway.search(searchFor(user, 'cat', { limit: 200, tags: ['home'] }), call));
  }
  return {
    got,
    listed: listed.map(idsOf),
    found: found.map((hits) => hits.map(({ memory, score }) => `${memory.id} ${score}`)),
    exported: (await exportAll(gateway)).map(({ memory, vector }) => ({
      memory,
      vector: vector && [...vector].map((component) => Number(component.toFixed(6))),
    })),
  };
}

it('[Decision 64] an index that an earlier gateway filled answers as before', async () => {
  const golden = JSON.parse(await readFile(new URL('golden.json', import.meta.url), 'utf8')) as Golden;
  const server = await startPinecone({ dimension: 8 });
  onTestFinished(server.close);
  for (const [namespace, records] of Object.entries(golden.records)) {
    const vectors = Object.entries(records).map(([id, record]) => ({ id, ...record }));
    expect((await post(server, '/vectors/upsert', { namespace, vectors })).status).toBe(200);
  }
  const gateway = await openGateway(server, { options: { layout: 'sharded' }, embedder: hashingEmbedder(8) });
  onTestFinished(gateway.close);
  expect(await answersOf(gateway as Parameters<typeof answersOf>[0], golden.ids)).toEqual(golden.answers);
});
