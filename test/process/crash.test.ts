import { expect, test } from 'vitest';
import type { Client } from '../support/client.ts';
import { freshUser } from '../support/subject.ts';
import { dataFolder, startGateway } from './gateway.ts';

const CONCURRENT = 1_000;
/** The process is killed after so many responses, during the other requests. */
const KILL_AFTER = 300;
const ROUNDS = 3;

test(`killed ${ROUNDS} times during ${CONCURRENT} concurrent adds, a gateway keeps every acknowledged memory`, async () => {
  const env = { OMP_DATA_DIR: await dataFolder() };
  const user_id = freshUser();
  const sent = new Set<string>();
  const acknowledged = new Map<string, string>();

  for (let round = 1; round <= ROUNDS; round++) {
    const gateway = await startGateway({ env });
    let answered = 0;
    /** Adds until the connection breaks, so that the kill always comes in between. */
    const lane = async (number: number) => {
      for (let turn = 0; ; turn++) {
        const content = `round ${round}, lane ${number}, turn ${turn}`;
        sent.add(content);
        const memory = await gateway.client.add({ user_id, content });
        acknowledged.set(memory.id, content);
        if (++answered === KILL_AFTER) void gateway.kill();
      }
    };
    const lanes = await Promise.allSettled(Array.from({ length: CONCURRENT }, (_, number) => lane(number)));
    for (const { reason } of lanes as PromiseRejectedResult[]) expect(reason).toBeInstanceOf(TypeError);
    expect((await gateway.ended).signal).toBe('SIGKILL');
    expect(answered).toBeGreaterThanOrEqual(KILL_AFTER);

    const { client, stop } = await startGateway({ env });
    for (const [id, content] of acknowledged) expect(await client.get(id)).toMatchObject({ content, user_id });
    // Memories without acknowledgement are complete and stored at most once.
    const stored = await contentsOf(client, user_id);
    expect(new Set(stored).size).toBe(stored.length);
    expect(stored.filter((content) => !sent.has(content))).toEqual([]);
    expect((await stop()).status).toBe(0);
  }
});

async function contentsOf(client: Client, user_id: string): Promise<string[]> {
  const contents: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list({ user_id, limit: 500, cursor });
    contents.push(...page.items.map(({ content }) => content));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return contents;
}
