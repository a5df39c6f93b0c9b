package httpdest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

type Invoice struct {
	Number string `json:"number"`
	Amount int    `json:"amount"`
}

type Charge struct {
	ID string `json:"id"`
}

// An action over HTTP: what identifies it, and where it goes.
func ExamplePost() {
	stripe, _ := httpdest.BuiltIn("stripe")
	payments, err := httpdest.New(httpdest.Options{Name: "payments", Base: "https://api.stripe.com", Profile: stripe})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = payments.Close(context.Background()) }()
	charge := semel.Action[Invoice, Charge]{
		Name:  "charge",
		Owner: "billing@acme.example",
		Key:   func(i Invoice) string { return "invoice-" + i.Number + "-charge" },
		Send:  httpdest.Post[Invoice, Charge](payments, "/v1/charges"),
	}
	request, err := charge.Send.Request(Invoice{Number: "4417", Amount: 1999})
	fmt.Println(request.Method, request.URL, string(request.Body), err)
	fmt.Println(charge.Send.Contract.Protection, charge.Send.Contract.Window)
	// Output:
	// POST https://api.stripe.com/v1/charges {"number":"4417","amount":1999} <nil>
	// keyed 24h0m0s
}

// A path may name members of the input.
func ExampleCall() {
	tickets, err := httpdest.New(httpdest.Options{Name: "tickets", Base: "https://tickets.example.com/api"})
	if err != nil {
		fmt.Println(err)
		return
	}
	setStatus := httpdest.Call[map[string]string, Charge](tickets, http.MethodPut, "/tickets/{body.id}/status")
	setStatus.Contract.Effect, setStatus.Contract.Protection = semel.SetsValue, semel.Absolute
	request, err := setStatus.Request(map[string]string{"id": "a/7", "status": "open"})
	fmt.Println(request.Method, request.URL, err)
	// Output: PUT https://tickets.example.com/api/tickets/a%2F7/status <nil>
}

// One attempt is one request; the answer becomes evidence.
func ExampleDestination_Send() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":"ch_1"}`))
	}))
	defer server.Close()
	destination, err := httpdest.New(httpdest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = destination.Close(context.Background()) }()
	request, _, err := httpdest.NewRequest("POST", server.URL+"/charges", nil, []byte(`{"amount":1999}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	operation := &semel.Operation{Identity: semel.Identity{Scope: "acme", Key: "invoice-4417-charge", Request: request}}
	evidence := destination.Send(context.Background(), &semel.Send{
		Operation: operation, Attempt: 1, Begin: func() error { fmt.Println("the claim holds"); return nil },
	})
	fmt.Println(evidence.Kind, evidence.Reference)
	// Output:
	// the claim holds
	// confirmed ch_1
}

func ExampleDestination_Look() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("reference") == "4417" {
			_, _ = w.Write([]byte(`{"data":[{"id":"ch_1","amount":1999}]}`))
		}
	}))
	defer server.Close()
	destination, err := httpdest.New(httpdest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	operation := &semel.Operation{Identity: semel.Identity{
		Request:  semel.Request{Kind: httpdest.Kind, Method: "POST", URL: server.URL + "/charges", Body: []byte(`{"invoice":"4417","amount":1999}`)},
		Contract: semel.Contract{LookupURL: server.URL + "/charges?reference={body.invoice}", FoundIn: "data"},
	}}
	evidence := destination.Look(context.Background(), &semel.Send{Operation: operation})
	fmt.Println(evidence.Kind, evidence.Reference)
	// Output: found ch_1
}

func ExampleNewRequest() {
	request, withheld, err := httpdest.NewRequest("POST", "https://api.example.com/charges",
		[]string{"authorization: Bearer secret", "x-account: 7"}, []byte(`{"amount":1999}`))
	fmt.Println(request.Header, request.MediaType, request.Withheld, len(withheld), err)
	_, _, err = httpdest.NewRequest("POST", "https://me:secret@api.example.com/", nil, nil)
	fmt.Println(err)
	// Output:
	// map[X-Account:7] application/json [Authorization] 1 <nil>
	// url holds a user name or password, which would be stored: send it in an Authorization header, which is not stored
}

func ExampleBuiltIn() {
	profile, err := httpdest.BuiltIn("stripe")
	fmt.Println(profile.ID(), profile.Key.Header, profile.Key.Confidence, err)
	_, err = httpdest.BuiltIn("strip")
	fmt.Println(err)
	// Output:
	// stripe@1 Idempotency-Key documented <nil>
	// profile "strip" is unknown: use one of generic@1, sandbox@1, stripe@1
}

func ExampleParseProfile() {
	_, err := httpdest.ParseProfile([]byte("name: acme\nversion: 1\nwindow: {is: 24h}\n"))
	fmt.Println(err)
	// Output: profile "acme": window: names no source
}

func ExampleCheckTemplate() {
	fmt.Println(httpdest.CheckTemplate("https://api.example.com/charges?reference={body.reference}"))
	fmt.Println(httpdest.CheckTemplate("https://{key}/charges"))
	// Output:
	// <nil>
	// {key} stands in the scheme or host of "https://{key}/charges", where no value may
}

func ExampleDestination_SendReply() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Idempotent-Replayed", "true")
		_, _ = w.Write([]byte(`{"id":"ch_1"}`))
	}))
	defer server.Close()
	destination, err := httpdest.New(httpdest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = destination.Close(context.Background()) }()
	operation := &semel.Operation{Identity: semel.Identity{Request: semel.Request{Kind: httpdest.Kind, Method: "POST", URL: server.URL}}}
	evidence, reply := destination.SendReply(context.Background(), &semel.Send{Operation: operation, Attempt: 1, Begin: func() error { return nil }})
	fmt.Println(evidence.Kind, reply.Status, reply.Header.Get("Idempotent-Replayed"), string(reply.Body), reply.Whole)
	// Output: confirmed 200 true {"id":"ch_1"} true
}

func ExampleDestination_LookReply() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	destination, err := httpdest.New(httpdest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	operation := &semel.Operation{Identity: semel.Identity{
		Key: "k", Contract: semel.Contract{LookupURL: server.URL + "/charges/{key}"},
	}}
	evidence, reply := destination.LookReply(context.Background(), &semel.Send{Operation: operation})
	fmt.Println(evidence.Kind, reply.Status)
	// Output: absent 404
}

func ExampleProfile_Read() {
	profile, err := httpdest.BuiltIn("stripe")
	fmt.Println(profile.Read(402, []byte(`{"error":{"type":"card_error","code":"card_declined"}}`)), err)
	fmt.Println(profile.Read(500, nil))
	// Output:
	// retained <nil>
	// unknown
}
