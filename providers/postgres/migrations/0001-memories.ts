import type { Names } from '../names.ts';

export const memories = (names: Names): string => `
create table ${names.memories} (
  -- "C" collation: ids and scopes are compared byte by byte, as prefixes, ranges and cursors require.
  id          text collate "C" primary key,
  user_id     text not null,
  content     text not null,
  scope       text collate "C",
  tags        text[] not null default '{}',
  source      jsonb,
  confidence  double precision,
  created_at  timestamptz(3) not null,
  updated_at  timestamptz(3) not null,
  valid_from  timestamptz(3),
  valid_to    timestamptz(3),
  supersedes  text[] not null default '{}',
  -- The caller's x- keys.
  extensions  jsonb not null default '{}',
  -- Hashed search terms; see keywords.ts.
  keywords    bigint[] not null,
  -- Its dimensions are set when the first embedder is adopted.
  embedding   ${names.halfvec},
  -- Rows of users with so many memories that the indexes on vectors and keywords pay. Only those rows are in
  -- them: a vector index over everybody makes an insert ten times dearer and gives small users nothing.
  large       boolean not null default false
);

-- List newest first, keyset paging, and every exact search.
create index memories_user_time on ${names.memories} (user_id, created_at desc, id desc);

-- Scope equality, prefixes and globs. User and scope together can outgrow an index entry, hence the hash.
create index memories_user_scope on ${names.memories} (hashtextextended(user_id, 0), scope) where scope is not null;

create index memories_tags on ${names.memories} using gin (tags);

create index memories_keywords on ${names.memories} using gin (keywords) where large;

-- Empty while every memory has its vector; tells at once whether some have none.
create index memories_without_vector on ${names.memories} (id) where embedding is null;

-- Users whose memories carry the flag "large": new ones from the moment the row exists, all of them once "ready".
create table ${names.largeUsers} (
  user_id  text primary key,
  ready    boolean not null default false
);

-- What the data was made with. One row.
create table ${names.store} (
  only_row          boolean primary key default true check (only_row),
  analyser_version  integer not null,
  embedding_model   text,
  dimensions        integer
);
`;
