update ticket
set claimed_by = $1
where id = $2
	and claimed_by is null
