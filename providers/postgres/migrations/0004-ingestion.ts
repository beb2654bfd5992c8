import type { Names } from '../names.ts';

export const ingestion = (names: Names): string => `
-- Memories whose vectors are yet to be computed, and those for which that failed in the end. Gateways of before know nothing
-- of it: what they delete leaves by the foreign key, what they embed is found done.
create table ${names.ingestion} (
  memory_id  text collate "C" primary key references ${names.memories} on delete cascade,
  status     text not null default 'queued' check (status in ('queued', 'indexing', 'failed')),
  -- Times it failed alone while the embedding service worked for other texts.
  attempts   integer not null default 0,
  -- When it may be taken; of what is being indexed, when it may be taken from a gateway that tells nothing any more.
  due_at     timestamptz not null default now(),
  -- Whose it is while it is being indexed.
  claim      uuid,
  -- Why it failed.
  error      text,
  queued_at  timestamptz not null default now()
);

create index ingestion_due on ${names.ingestion} (due_at) where status <> 'failed';

create index ingestion_claim on ${names.ingestion} (claim) where claim is not null;

-- What the first answer said, so that a repeated add says the same.
alter table ${names.onceKeys} add column status text not null default 'done';
`;
