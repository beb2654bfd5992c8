import type { Names } from '../names.ts';

export const reembed = (names: Names): string => `
alter table ${names.store}
  -- Where the vectors in use are.
  add column embedding_column text not null default 'embedding',
  -- How many columns for vectors there have been. None is ever called as an earlier one was, so that a gateway that knows
  -- only that one fails instead of mixing vectors of two models.
  add column columns_made integer not null default 1,
  -- The embedder that everything is being embedded for anew, and where its vectors are.
  add column next_model text,
  add column next_dimensions integer,
  add column next_column text,
  add constraint store_next check (num_nulls(next_model, next_dimensions, next_column) in (0, 3));
`;
