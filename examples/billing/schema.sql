create table invoices (
	id text primary key,
	customer text not null,
	email text not null,
	amount bigint not null, -- in cents
	due_on date not null,
	charge text -- of the payment provider, once it is paid
);

insert into invoices (id, customer, email, amount, due_on)
values ('4417', 'Ann', 'ann@example.com', 12900, '2026-03-01'),
	('4418', 'Bob', 'bob@example.com', 4950, '2026-03-01'),
	('4419', 'Eve', 'eve@example.com', 100, '2026-03-02');
