insert into paid (invoice, amount) values (?1, ?2)
