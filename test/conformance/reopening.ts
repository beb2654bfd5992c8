import { describe, expect, it, type TestContext } from 'vitest';
import { freshUser, type GatewayOptions, type Subject } from '../support/gateway.ts';
import { needs, supports } from './subject.ts';

/** A backend of its own, on which the provider can be opened one time after another. */
export interface Started {
  /** Of `Prepared`. */
  readonly volatile: boolean;
  open(more?: GatewayOptions): Promise<Subject>;
  /** Of `Prepared`. */
  readonly settle: (() => Promise<unknown>) | undefined;
  tidy(): Promise<void>;
}

/** Declares the tests of what stays when a provider is closed. */
export function reopening(label: string, start: () => Promise<Started>): void {
  const run = async ({ skip }: TestContext, work: (using: Using) => Promise<void>) => {
    const { open, settle, tidy, volatile } = await start();
    try {
      skip(volatile, 'what it stores ends with it');
      await work(async (then, more) => {
        const subject = await open(more);
        try {
          return await then(subject);
        } finally {
          await subject.close();
          await settle?.();
        }
      });
    } finally {
      await tidy();
    }
  };

  describe(`${label}, opened again`, () => {
    it('[Decision 50] has what was acknowledged before it was closed', (context) =>
      run(context, async (using) => {
        const user_id = freshUser();
        const found = async (subject: Subject) =>
          supports(subject, 'search') ? subject.client.search({ user_id, q: 'green tea' }) : [];
        const [id, before] = await using(async (subject) => {
          needs(context.skip, subject, 'add');
          const { id } = await subject.client.add({ user_id, content: 'green tea' });
          return [id, await found(subject)] as const;
        });
        await using(async (subject) => {
          expect(await subject.client.get(id)).toMatchObject({ id, user_id, content: 'green tea' });
          expect(await found(subject)).toEqual(before);
        });
      }));

    it('[Decision 50] refuses an embedder of another model, whose vectors cannot be compared', (context) =>
      run(context, async (using) => {
        const embedder = await using(async (subject) => {
          needs(context.skip, subject, 'add', 'vector_search');
          context.skip(subject.raw.capabilities.mapped === true, 'another application makes its vectors');
          await subject.client.add({ user_id: freshUser(), content: 'green tea' });
          return subject.embedder;
        });
        const other = embedder && { ...embedder, model: `not ${embedder.model}` };
        await expect(using(async () => 'it was opened', { embedder: other })).rejects.toThrow();
      }));
  });
}

type Using = <Result>(then: (subject: Subject) => Promise<Result>, more?: GatewayOptions) => Promise<Result>;
