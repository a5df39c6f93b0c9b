insert into notes (member, grp) values ($1, $2) on conflict do nothing
