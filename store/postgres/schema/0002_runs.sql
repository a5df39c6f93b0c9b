-- +goose Up

-- An operation that a step of a run claimed first names both. Runs have
-- ascending IDs, so the index stays warm.
alter table semel.operation add column run_id uuid;
alter table semel.operation add column step text collate "C";
alter table semel.operation add column watched boolean not null default false; -- a run may wait for it

create index operation_run on semel.operation (run_id) where run_id is not null;

-- One row per run. What executions change stands together and in no index but
-- for due_at.
create table semel.run (
  id           uuid primary key, -- UUID of version 7
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  lease_until  timestamptz, -- of the worker that executes it; null for none
  due_at       timestamptz, -- when a worker looks at it
  ended_at     timestamptz,
  retried_at   timestamptz,
  attempt      integer not null default 0, -- the fence
  crashes      integer not null default 0,
  done         integer not null default 0,
  total        integer not null default 0,
  version      integer not null,
  priority     smallint not null,
  cancel_asked integer, -- the attempt in or after which somebody asked to stop it
  tied         boolean not null default false, -- another run may wait for it, or it asked for approval
  state        text collate "C" not null,
  claimed_by   text collate "C" not null default '',
  paused_by    text collate "C", -- who asked to leave it alone
  reason       text collate "C" not null default '',
  workflow     text collate "C" not null,
  key          text collate "C" not null,
  definition   text collate "C" not null,
  parent       uuid,
  parent_step  text collate "C" not null,
  fingerprint  bytea not null,
  trigger      bytea not null, -- JSON
  input        bytea not null,
  result       bytea,
  unique (workflow, key)
) with (fillfactor = 50);

alter table semel.run alter column input set storage external;
alter table semel.run alter column result set storage external;

create index run_due on semel.run (workflow, version, priority, due_at) where due_at is not null and paused_by is null;
create index run_parent on semel.run (parent, id) where parent is not null;
create index run_attention on semel.run (state, id) where state in ('held', 'failed');

-- Records of steps, but for those whose operation says it all.
create table semel.step (
  run_id       uuid not null,
  path         text collate "C" not null,
  kind         text collate "C" not null,
  what         text collate "C" not null,
  operation_id uuid,
  outcome      text collate "C" not null,
  result       bytea,
  failure      text collate "C" not null,
  at           timestamptz not null,
  primary key (run_id, path)
);

alter table semel.step alter column result set storage external;

-- What suspended runs wait for.
create table semel.wait (
  run_id  uuid not null,
  seq     bigint generated always as identity,
  path    text collate "C" not null,
  kind    text collate "C" not null,
  until   timestamptz,
  event   text collate "C" not null,
  match   text collate "C" not null,
  target  uuid, -- an operation, an approval or a run
  version integer not null,
  person  boolean not null,
  since   timestamptz not null,
  reason  text collate "C" not null,
  primary key (run_id, seq)
);

create index wait_event on semel.wait (event, match) where kind = 'event';
create index wait_target on semel.wait (target) where target is not null;

-- What people and workers did to a run.
create table semel.run_note (
  run_id uuid not null,
  seq    bigint generated always as identity,
  at     timestamptz not null,
  kind   text collate "C" not null,
  by     text collate "C" not null,
  text   text collate "C" not null,
  primary key (run_id, seq)
);

create table semel.event (
  id        uuid primary key, -- UUID of version 7; the sender's name for it is sent_id
  name      text collate "C" not null,
  sent_id   text collate "C" not null,
  match     text collate "C" not null,
  data      bytea,
  by        text collate "C" not null,
  at        timestamptz not null,
  delivered boolean not null,
  unique (name, sent_id)
);

alter table semel.event alter column data set storage external;

create index event_match on semel.event (name, match, at, id);
create index event_undelivered on semel.event (id) where not delivered;

-- An event serves one wait of a workflow.
create table semel.event_taken (
  event_id uuid not null,
  workflow text collate "C" not null,
  run_id   uuid not null,
  path     text collate "C" not null,
  at       timestamptz not null,
  primary key (event_id, workflow)
);

create table semel.event_started (
  event_id uuid not null,
  run_id   uuid not null,
  primary key (event_id, run_id)
);

create table semel.approval (
  id         uuid primary key,
  run_id     uuid not null,
  path       text collate "C" not null,
  digest     text collate "C" not null,
  scope      text collate "C" not null,
  key        text collate "C" not null,
  request    bytea not null, -- JSON, without the body
  body       bytea,
  ask        bytea not null, -- JSON
  state      text collate "C" not null,
  asked_at   timestamptz not null,
  by         text collate "C" not null default '',
  reason     text collate "C" not null default '',
  decided_at timestamptz,
  until      timestamptz
);

create index approval_run on semel.approval (run_id, id);
create index approval_pending on semel.approval (id) where state = 'pending';

-- The newest version of each workflow that a worker registered.
create table semel.workflow (
  name       text collate "C" primary key,
  version    integer not null,
  definition text collate "C" not null,
  owner      text collate "C" not null
);

create table semel.definition (
  digest   text collate "C" primary key,
  workflow text collate "C" not null,
  version  integer not null,
  text     bytea not null
);

-- Which workflows an event starts.
create table semel.subscription (
  event    text collate "C" not null,
  workflow text collate "C" not null,
  primary key (event, workflow)
);

create table semel.schedule (
  workflow  text collate "C" not null,
  name      text collate "C" not null,
  version   integer not null,
  cron      text collate "C" not null,
  zone      text collate "C" not null,
  missed    text collate "C" not null,
  input     bytea not null,
  paused    boolean not null default false,
  paused_by text collate "C" not null default '',
  seen      timestamptz not null,
  next_at   timestamptz not null,
  primary key (workflow, name)
);

-- Limits that hold for all workers: how often, and how often at once.
create table semel.rate (
  name text collate "C" primary key,
  free timestamptz not null default '-infinity' -- when a place is due if they come evenly
);

create table semel.place (
  name   text collate "C" not null,
  holder uuid not null,
  until  timestamptz not null,
  primary key (name, holder)
);
