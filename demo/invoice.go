package demo

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/semel-dev/semel/sandbox"
)

//go:embed invoices.csv
var invoicesCSV []byte

// MaxInvoices is the longest night: one query answers with what is due. Beyond
// the invoices of the file, their numbers get a suffix.
const MaxInvoices = 1_000

// invoice is one line of the file.
type invoice struct {
	Number   string
	Customer string
	Amount   int64 // in cents
	Currency string
	Due      string
	Transfer bool // paid by bank transfer, not by card
	For      string
}

// reference is how the destinations know the invoice.
func (i invoice) reference() string { return "invoice-" + i.Number }

// resource is where the invoice's money moves.
func (i invoice) resource() sandbox.Resource {
	if i.Transfer {
		return sandbox.Transfers
	}
	return sandbox.Charges
}

// order is what a destination is asked for. Its reference tells two invoices
// apart that are otherwise the same, and both meant.
type order struct {
	Reference string `json:"reference"`
	Customer  string `json:"customer"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Text      string `json:"text"`
}

func (i invoice) order() order {
	return order{i.reference(), i.Customer, i.Amount, i.Currency, i.For + " (due " + i.Due + ")"}
}

func (i invoice) receipt() order {
	o := i.order()
	o.Text = "Receipt for " + o.Text
	return o
}

// invoices are the first n that are due.
func invoices(n int) ([]invoice, error) {
	rows, err := csv.NewReader(bytes.NewReader(invoicesCSV)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the invoices: %w", err)
	}
	rows = rows[1:]
	due := make([]invoice, n)
	for i := range due {
		row := rows[i%len(rows)]
		amount, err := strconv.ParseInt(strings.Replace(row[2], ".", "", 1), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the amount of invoice %s: %w", row[0], err)
		}
		due[i] = invoice{Number: row[0], Customer: row[1], Amount: amount, Currency: row[3], Due: row[4], Transfer: row[5] == "transfer", For: row[6]}
		if round := i / len(rows); round > 0 {
			due[i].Number += fmt.Sprintf("-%d", round+1)
		}
	}
	return due, nil
}
