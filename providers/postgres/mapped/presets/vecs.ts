import type { Preset } from './preset.ts';

/**
 * A collection of vecs 0.4.5, which is a table of its name: `src/vecs/collection.py` (`build_table`), `client.py`.
 * vecs keeps no text, only metadata that its users make up. There is no default for it on purpose: with a wrong one the
 * gateway would start, and show nobody anything.
 */
export const vecs: Preset = {
  schema: 'vecs',
  id: ['id'],
  new_ids: 'text',
  embedding: 'vec',
  fields: { user_id: "metadata->>'user_id'" },
};
