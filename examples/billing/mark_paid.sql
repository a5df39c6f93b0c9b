update invoices
set charge = $2
where id = $1
