create table if not exists invoice (
	id       text not null unique,
	customer text not null,
	amount   integer not null, -- in cents
	currency text not null,
	due      text not null,
	method   text not null,
	item     text not null
);

-- One row for each payment that came in: an invoice that was paid twice has two.
create table if not exists paid (
	invoice text not null,
	amount  integer not null,
	at      text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
