-- +goose Up

-- One row: what holds for the whole store.
create table store (
  one         integer primary key check (one = 1),
  id          blob not null,              -- tells this store from every other
  clock       integer not null,           -- the latest time stamped, in ns: the clock never runs back
  suspect_at  integer,                    -- the file is an older copy, whole up to here, and waits to be accepted
  whole_until integer,                    -- the time up to which a person vouched for the data
  accepted_at integer                     -- when; between the two, claims may be missing
) strict;

-- One row per operation. Rows are in the order in which they were created, so
-- newest first needs no index. The first two events, claim and outcome, are in
-- the row: the common operation is one insert and one update.
create table operation (
  seq          integer primary key,
  id           blob not null,             -- UUIDv7
  scope        text not null,
  key          text not null,
  fingerprint  blob not null,
  request      text not null,             -- JSON, without the body
  body         blob,
  contract     text not null,             -- JSON
  state        text not null,
  version      integer not null,          -- events applied
  attempt      integer not null,
  lease_until  integer not null,          -- ns
  cancel       integer not null,          -- somebody asked to stop it
  incident     integer not null,          -- contradicting evidence is open
  expired      integer not null,
  due_at       integer,                   -- ns: lease end, next automatic look, or far future for a person; null when settled
  created_at   integer not null,
  updated_at   integer not null,
  first        text not null,             -- event 1, at created_at, its token is id
  second       text,                      -- event 2
  second_at    integer,
  second_token blob
) strict;

create unique index operation_id on operation (id);
create unique index operation_scope_key on operation (scope, key);
create index operation_due_at on operation (due_at) where due_at is not null;

-- Events 3 and later.
create table evidence (
  operation blob not null,
  seq       integer not null,
  at        integer not null,
  token     blob not null,
  event     text not null,
  primary key (operation, seq)
) strict, without rowid;

insert into store (one, id, clock)
values (1, randomblob(16), 0);
