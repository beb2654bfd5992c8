import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { Subject } from '../support/subject.ts';
import { bearer, clientWith, openBackdoor } from './callers.ts';
import { RUNS, SEED } from './random.ts';
import { checkSequence, plot } from './sequences.ts';
import { STORES } from './stores.ts';

const RACES = 40;

describe('no sequence of requests leaves the grant', () => {
  let subject: Subject | undefined;
  afterEach(() => subject?.close());

  it.for(STORES)(
    '[Decision 14] changes or tells nothing outside of it on $label, ranking $mode',
    async ({ label, open, mode, share }) => {
      const door = openBackdoor();
      const stage = {
        subject: await open({ mode, authenticator: door.authenticator }),
        door,
        seen: { changed: 0, refused: 0, outside: 0, revealed: 0 },
      };
      subject = stage.subject;
      const property = fc.asyncProperty(plot, (drawn) => checkSequence(drawn, stage));
      await fc.assert(property, { numRuns: Math.ceil(RUNS * share), seed: SEED });
      console.log(`${label}, ${mode}: ${JSON.stringify(stage.seen)}`);
      expect(Math.min(...Object.values(stage.seen))).toBeGreaterThan(0);
    },
  );

  it.for(STORES)(
    '[Decision 14] a record that is moved out of reach at that moment is not changed any more on $label, ranking $mode',
    async ({ open, mode }) => {
      const door = openBackdoor();
      subject = await open({ mode, authenticator: door.authenticator });
      const master = clientWith(subject, bearer(door.admit('master')));
      const key = { grants: ['*:open/*'], users: null };
      const { ask, tell, byId } = clientWith(subject, bearer(door.admit('key', key)));
      for (let race = 0; race < RACES; race++) {
        const { id } = await master.add({ user_id: 'ana', scope: 'open/x', content: 'coffee' });
        // Whichever comes first: once the record is in the closed scope, the key can do nothing to it.
        const [moved, other] = await Promise.all([
          master.tell('PATCH', byId(id), { scope: 'closed/x' }),
          race % 2 ? tell('DELETE', byId(id)) : tell('PATCH', byId(id), { scope: 'open/y', content: 'tea' }),
        ]);
        if (race % 2) expect([moved.status, other.status]).toEqual(moved.status === 200 ? [200, 403] : [404, 204]);
        else {
          expect(moved.status).toBe(200);
          expect([200, 403]).toContain(other.status);
        }
        const reply = await ask(byId(id));
        expect(reply.status).toBe(moved.status === 200 ? 403 : 404);
        if (moved.status !== 200) continue;
        expect(await master.get(id)).toMatchObject({
          scope: 'closed/x',
          content: other.status === 200 ? 'tea' : 'coffee',
        });
      }
    },
  );
});
