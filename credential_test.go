package semel_test

import (
	"fmt"
	"testing"

	"github.com/semel-dev/semel"
)

// Law 9: values of such headers are never stored, shown or compared.
func TestCredentialsAreKnownByTheirNames(t *testing.T) {
	for _, name := range []string{
		"Authorization", "authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "apikey", "X-Auth-Token", "X-Goog-Api-Key", "X-Vault-Token",
		"X-Access-Key", "X-Password", "X-Secret", "Ocp-Apim-Subscription-Key", "X_Auth_Key", "Private-Key",
	} {
		if !semel.IsCredential(name) {
			t.Errorf("%s would be stored", name)
		}
	}
	for _, name := range []string{"X-Author", "Idempotency-Key", "Content-Type", "X-Request-Id", "Stripe-Account", "X-Keyboard", "Key", "Sort-Key", "X-Tokenize", "Accept"} {
		if semel.IsCredential(name) {
			t.Errorf("%s is taken for a credential, so a change of it would not be a conflict", name)
		}
	}
}

func ExampleIsCredential() {
	fmt.Println(semel.IsCredential("X-Vault-Token"), semel.IsCredential("X-Request-Id"))
	// Output: true false
}
