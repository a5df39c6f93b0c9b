package sandbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/semel-dev/semel/sandbox"
)

// A client that loses the first answer and tries again under the same key has
// charged once. Without a key it would have charged twice.
func Example() {
	provider, err := sandbox.New(sandbox.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close()
	server := httptest.NewServer(provider)
	defer server.Close()

	for range 2 {
		body := strings.NewReader(`{"amount":4200,"reference":"invoice-4417"}`)
		req, _ := http.NewRequest("POST", server.URL+"/v1/charges", body)
		req.Header.Set("Idempotency-Key", "invoice-4417-charge")
		req.Header.Set("Sandbox-Fault", "drop_after@1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println("no answer")
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode, "replayed:", resp.Header.Get("Idempotent-Replayed"))
	}
	fmt.Println("charged:", provider.Count(sandbox.Charges, "invoice-4417"))
	// Output:
	// no answer
	// 201 replayed: true
	// charged: 1
}

// A fifth of all references lose their first answer, the same ones for every
// client that meets this seed.
func ExampleRate() {
	provider, err := sandbox.New(sandbox.Options{
		Seed: 1,
		Faults: sandbox.Rate{
			First: 0.2,
			Mix:   map[sandbox.Fault]int{sandbox.DropAfter: 3, sandbox.DropBefore: 1},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close()
	server := httptest.NewServer(provider)
	defer server.Close()

	for i := range 20 {
		body := strings.NewReader(fmt.Sprintf(`{"text":"hello","reference":"note-%d"}`, i))
		resp, err := http.Post(server.URL+"/v1/messages", "application/json", body)
		if err == nil {
			resp.Body.Close()
		}
	}
	sum := provider.Summary()[sandbox.Messages]
	fmt.Println("sent:", sum.Effects, "answers lost:", sum.Lost, "faults:", sum.Faults)
	// Output:
	// sent: 19 answers lost: 3 faults: map[drop_after:3 drop_before:1]
}
