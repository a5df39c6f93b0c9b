// Package demo is a night of billing that loses answers and workers.
//
// A few hundred invoices are due. Some are charged through payments, which
// honours keys; some are paid through a bank, which knows no keys and can be
// asked by reference after a delay; and for each a receipt goes out by mail,
// which offers neither. The night is run twice against sandbox destinations
// with the same seed, so that the same requests lose their answers and the same
// workers die: the usual way (at least once, a fresh key minted per call), and
// with Semel as one run of a workflow, billing/nightly_billing.yaml, which also
// marks in the biller's own ledger what was paid. Workers are real processes,
// killed with SIGKILL while a request of theirs is at the destination.
//
// What happened is counted in the ledgers of the destinations and of the biller
// alone. Semel's own rows are asked about which effects nobody can know, and how
// far the run is.
//
// [Run] is the whole night. It starts its own program again as workers, which
// call [Work].
package demo
