select id, customer, email, amount
from invoices
where due_on <= $1
	and charge is null
order by id
