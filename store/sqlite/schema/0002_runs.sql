-- +goose Up

-- Which run claimed an operation first, and in which step; null outside runs.
alter table operation add column run_id blob;
alter table operation add column step text;
create index operation_run_id on operation (run_id) where run_id is not null;

-- One row per run: what a worker needs to claim it. Rows are in the order in
-- which they were created.
create table run (
  seq          integer primary key,
  id           blob not null,             -- UUIDv7
  workflow     text not null,
  version      integer not null,
  definition   text not null,             -- digest; empty for Go
  key          text not null,
  input        text not null,             -- JSON
  fingerprint  blob not null,             -- of the input
  trigger      text not null,             -- JSON
  priority     integer not null,
  parent       blob,
  parent_step  text,
  state        text not null,
  reason       text not null default '',
  attempt      integer not null,          -- claims by workers: the fence
  crashes      integer not null default 0,
  by           text not null,             -- who holds or last held it
  lease_until  integer,                   -- ns; null when nobody holds it
  due_at       integer,                   -- ns: when a worker looks at it; null for never
  cancel_asked integer,                   -- the attempt in or after which somebody asked to stop it
  paused_by    text,                      -- who asked to leave it alone
  retried_at   integer,
  done         integer not null default 0,
  total        integer not null default 0,
  result       text,                      -- JSON
  created_at   integer not null,
  updated_at   integer not null,
  ended_at     integer
) strict;

create unique index run_id on run (id);
create unique index run_workflow_key on run (workflow, key);
create index run_due on run (workflow, version, priority, due_at) where due_at is not null and paused_by is null;
create index run_parent on run (parent) where parent is not null;
create index run_held on run (seq) where state = 'held';

-- What steps without an operation of their own recorded.
create table step (
  seq       integer primary key,
  run       blob not null,
  path      text not null,
  kind      text not null,
  what      text not null,
  operation blob,                         -- joined, not claimed by this step
  outcome   text not null,
  result    text,                         -- JSON
  failure   text not null,
  at        integer not null
) strict;

create unique index step_run_path on step (run, path);

-- What a suspended run waits for.
create table wait (
  seq     integer primary key,
  run     blob not null,
  path    text not null,
  kind    text not null,
  until   integer,                        -- ns; null for ever
  event   text,
  match   text,
  target  blob,                           -- an operation, an approval or a run
  version integer not null,               -- of the operation, as it was read
  person  integer not null,
  since   integer not null,
  reason  text not null
) strict;

create index wait_run on wait (run);
create index wait_target on wait (target) where target is not null;
create index wait_event on wait (event, match) where event is not null;

-- What people and workers did to a run.
create table run_note (
  seq  integer primary key,
  run  blob not null,
  at   integer not null,
  kind text not null,
  by   text not null,
  text text not null
) strict;

create index run_note_run on run_note (run);

-- The inbox: what happened elsewhere.
create table event (
  seq       integer primary key,
  id        text not null,
  name      text not null,
  match     text not null,
  data      text,                         -- JSON
  by        text not null,
  at        integer not null,
  delivered integer not null              -- runs were woken and started
) strict;

create unique index event_name_id on event (name, id);
create index event_match on event (name, match, at);
create index event_undelivered on event (seq) where not delivered;

-- Each event serves one step of a workflow, and starts runs.
create table taken (
  event    integer not null,              -- seq
  workflow text not null,
  run      blob not null,
  step     text not null,
  primary key (event, workflow)
) strict, without rowid;

create table started (
  event integer not null,                 -- seq
  run   blob not null,
  primary key (event, run)
) strict, without rowid;

-- Questions to people about exact requests.
create table approval (
  seq        integer primary key,
  id         blob not null,
  run        blob not null,
  path       text not null,
  digest     text not null,
  scope      text not null,
  key        text not null,
  request    text not null,               -- JSON, without the body
  body       blob,
  ask_of     text not null,
  summary    text not null,
  timeout    integer not null,            -- ns
  valid      integer not null,            -- ns
  state      text not null,
  asked_at   integer not null,
  by         text not null,
  reason     text not null,
  decided_at integer,
  until      integer
) strict;

create unique index approval_id on approval (id);
create index approval_run on approval (run);
create index approval_pending on approval (seq) where state = 'pending';

-- Definitions by digest, for runs that began with them.
create table definition (
  digest   text primary key,
  workflow text not null,
  version  integer not null,
  text     blob not null
) strict, without rowid;

-- The newest version of each workflow that a worker registered, and what
-- starts it.
create table workflow (
  name    text primary key,
  version integer not null,
  digest  text not null,
  owner   text not null
) strict, without rowid;

create table subscription (
  event    text not null,
  workflow text not null,
  primary key (event, workflow)
) strict, without rowid;

create table schedule (
  workflow  text not null,
  name      text not null,
  cron      text not null,
  zone      text not null,
  missed    text not null,
  input     text not null,
  paused_by text,
  seen      integer not null,             -- the last tick that was handled
  next_at   integer not null,             -- when to look again
  primary key (workflow, name)
) strict, without rowid;

-- Limits that hold for all workers: who has a place, and when the next is free.
create table place (
  name   text not null,
  holder blob not null,
  until  integer not null,
  primary key (name, holder)
) strict, without rowid;

create table rate (
  name text primary key,
  next integer not null                   -- ns: when all that was taken is paid for
) strict, without rowid;
