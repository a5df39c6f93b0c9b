package connection_test

import (
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
)

// What a drill asks of a connection needs neither its secrets nor its database.
func TestSimulatedCallsNeedNoEnvironment(t *testing.T) {
	c, err := connection.Parse("semel.yaml", []byte(`
connections:
  bank:
    kind: http
    base: https://bank.example.com
    secret: env:BANK_TOKEN_THAT_IS_NOT_SET
    protection: keyed
    key_header: Idempotency-Key
    window: 24h
    actions:
      charge: {post: /v1/charges}
  ledger:
    kind: sql
    url: env:LEDGER_URL_THAT_IS_NOT_SET
`))
	if err != nil {
		t.Fatal(err)
	}
	actions := c.Simulated()
	charge, err := actions.Call("bank", "charge", map[string]any{"amount": 1})
	if err != nil {
		t.Fatal(err)
	}
	paid, err := actions.Call("sql", "exec", map[string]any{"at": "ledger", "statement": "update invoice set paid = 1"})
	if err != nil {
		t.Fatal(err)
	}
	if charge.Contract.Protection != semel.Keyed || paid.Contract.Protection != semel.Transactional {
		t.Errorf("%s and %s, want keyed and transactional", charge.Contract.Protection, paid.Contract.Protection)
	}
	if charge.Request.URL != "https://bank.example.com/v1/charges" || paid.Request.Connection != "ledger" {
		t.Errorf("requests to %q and %q", charge.Request.URL, paid.Request.Connection)
	}
	for _, call := range []semel.Call{charge, paid} {
		if ev := call.Destination.Send(t.Context(), &semel.Send{}); ev.Kind != semel.EvRefused {
			t.Errorf("%s: %s, want refused", call.Action, ev.Kind)
		}
	}
}
