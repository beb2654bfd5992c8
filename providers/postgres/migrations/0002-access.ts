import type { Names } from '../names.ts';

export const access = (names: Names): string => `
-- Who did what. An entry of a change is written by the statement that makes the change.
create table ${names.auditLog} (
  -- Order within one millisecond.
  seq         bigint generated always as identity,
  timestamp   timestamptz(3) not null,
  app         text,
  action      text not null,
  user_id     text,
  memory_id   text collate "C",
  scope       text collate "C",
  request_id  text not null,
  outcome     text not null
);

-- GET /audit: one user's entries, newest first.
create index audit_log_user_time on ${names.auditLog} (user_id, timestamp desc, seq desc);

-- Retention: the oldest entries first. (A BRIN index would be smaller, but its ranges never narrow: once the space of
-- deleted entries has been used again, it would tell nothing.)
create index audit_log_time on ${names.auditLog} (timestamp);

-- What an Idempotency-Key was used for. No contents: a repetition brings them along.
create table ${names.onceKeys} (
  caller       text not null,
  key          text collate "C" not null,
  fingerprint  text not null,
  memory_id    text collate "C" not null,
  -- Of the memory, and of the key.
  created_at   timestamptz(3) not null,
  embedding_model text,
  primary key (caller, key)
);

create index once_keys_time on ${names.onceKeys} (created_at);

-- API keys. Never the secret: only what tells that a given one is right.
create table ${names.apiKeys} (
  id            text collate "C" primary key,
  name          text not null unique,
  hash          text not null,
  -- Null: all.
  users         text[],
  grants        text[] not null,
  created_at    timestamptz(3) not null,
  expires_at    timestamptz(3),
  revoked_at    timestamptz(3),
  last_used_at  timestamptz(3)
);

-- Counts of requests, shared by replicas; laid out as rate-limiter-flexible expects. Unlogged: a request is not to wait
-- for the disk to be counted, and counts lost in a crash are those of two minutes.
create unlogged table ${names.rateLimits} (
  key     varchar(255) primary key,
  points  integer not null default 0,
  expire  bigint
);
`;
