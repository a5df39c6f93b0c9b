select id, title
from ticket
where due_at < $1
	and claimed_by is null
order by id
