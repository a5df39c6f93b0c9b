select id, customer, amount, currency, method, item || ' (due ' || due || ')' as text
from invoice
where due <= ?1
order by rowid
