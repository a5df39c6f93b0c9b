select id, customer, email, amount
from invoices
where due <= $1 and not paid
order by id
