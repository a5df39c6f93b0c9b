create table ticket (
	id text primary key,
	title text not null,
	due_at text not null, -- 2026-03-01T09:00:00Z
	claimed_by text
);

insert into ticket (id, title, due_at)
values ('T-1', 'Printer on fire', '2026-03-01T09:00:00Z'),
	('T-2', 'No coffee', '2026-03-01T09:30:00Z'),
	('T-3', 'Nice to have', '2099-01-01T00:00:00Z');
