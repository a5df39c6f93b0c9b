package connection_test

import (
	"context"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
)

func ExampleParse() {
	config, err := connection.Parse("semel.yaml", []byte(`
tenant: acme
connections:
  payments:
    kind: http
    base: https://api.stripe.com
    profile: stripe
    secret: env:STRIPE_KEY
    timeout: 30s
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = config.Close(context.Background()) }()
	_, contract, err := config.Open("payments")
	fmt.Println(config.Tenant, config.Names(), contract.Protection, contract.Window, config.Secrets("payments"), err)
	// Output: acme [payments] keyed 24h0m0s [env:STRIPE_KEY] <nil>
}

func ExampleParse_errors() {
	_, err := connection.Parse("semel.yaml", []byte(`
connections:
  payments:
    kind: http
    bsae: https://api.stripe.com
    secret: sk_live_1234
    timeout: 30
`))
	fmt.Println(err)
	// Output:
	// semel.yaml:3:3: connection "payments" has no base: add base: https://... where it lives
	// semel.yaml:5:5: connection payments has no member "bsae": did you mean base?
	// semel.yaml:6:13: secret is not a reference: keep the value out of the file: write env:NAME or file:PATH
	// semel.yaml:7:14: timeout is not a duration: write it with its unit, for example 30s or 24h
}

func ExampleLoad() {
	_, err := connection.Load("does-not-exist.yaml")
	fmt.Println(err)
	// Output: read configuration: stat does-not-exist.yaml: no such file or directory
}

func ExampleConfig_Resolve() {
	var config connection.Config // no semel.yaml: endpoints given by hand still work
	stored := &semel.Operation{Identity: semel.Identity{Request: semel.Request{Kind: "http", URL: "https://api.example.com/charges"}}}
	destination, _, err := config.Resolve(stored)
	fmt.Println(destination != nil, err)
	fmt.Println(config.Close(context.Background()))
	// Output:
	// true <nil>
	// <nil>
}
