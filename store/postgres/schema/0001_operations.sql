-- +goose Up

-- One row per operation. A claim inserts it, the outcome updates it in place
-- (HOT): version, state and lease_until are in no index, a first claim leaves
-- due_at null, and fillfactor keeps room for the second version of every row
-- on its page. What an outcome changes stands together, so that the log of an
-- update holds that part only.
create table semel.operation (
  id           uuid primary key, -- UUID of version 7: ascending, so the index stays warm
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  lease_until  timestamptz not null,
  due_at       timestamptz, -- when to look at it; infinity: only a person can help
  version      integer not null, -- events so far
  attempt      integer not null,
  cancel       boolean not null,
  incident     boolean not null,
  expired      boolean not null,
  state        text collate "C" not null,
  second_at    timestamptz,
  second_token uuid,
  second       bytea,          -- the second event
  first        bytea not null, -- the first event; it happened at created_at, its token is the id
  scope        text collate "C" not null,
  key          text collate "C" not null,
  fingerprint  bytea not null,
  request      bytea not null,
  contract     bytea not null,
  body         bytea,
  unique (scope, key)
) with (fillfactor = 45);

-- Bodies and answers go to the side table (TOAST), as they are.
alter table semel.operation alter column body set storage external;
alter table semel.operation alter column second set storage external;

create index operation_due on semel.operation (due_at) where due_at is not null;

-- The third and later events of an operation.
create table semel.evidence (
  operation_id uuid not null,
  seq          integer not null,
  at           timestamptz not null,
  token        uuid not null,
  event        bytea not null,
  primary key (operation_id, seq)
);

alter table semel.evidence alter column event set storage external;

-- One row about the store itself.
create table semel.store (
  one               boolean primary key default true check (one),
  swept             timestamptz not null default '-infinity', -- first claims minted before are settled or have due_at
  ahead             interval not null default '0', -- of the server's clock, which was set back by so much
  system_identifier bigint,      -- of the server that holds all claims, as far as anybody knows
  timeline          integer,
  whole_until       timestamptz, -- claims committed from here to accepted_at may be missing
  accepted_at       timestamptz
);

insert into semel.store default values;
