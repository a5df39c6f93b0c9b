update invoices set paid = true, charge = $2 where id = $1
