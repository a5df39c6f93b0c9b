package sandbox_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

func TestTransferIsFoundOnlyAfterTheVisibilityDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, sandbox.Options{})
		made := post(s, sandbox.Transfers, order)
		post(s, sandbox.Transfers, `{"amount":1,"reference":"other"}`)

		time.Sleep(2*time.Second - 1) // virtual
		wantIn(t, get(s, "/v1/transfers?reference=r"), 200, `{"data":[]}`)
		wantIn(t, get(s, "/v1/transfers/by-reference/r"), 404, `"not_found"`)
		time.Sleep(time.Nanosecond)
		wantIn(t, get(s, "/v1/transfers?reference=r"), 200, `{"data":[`+made.Body+`]}`)
		if got := get(s, "/v1/transfers/by-reference/r"); got.Body != made.Body {
			t.Errorf("got %s, want %s", got.Body, made.Body)
		}
	})
}

func TestListShowsEveryTransferOfAReference(t *testing.T) {
	s := start(t, sandbox.Options{VisibleAfter: -1})
	first := post(s, sandbox.Transfers, order)
	second := post(s, sandbox.Transfers, order)
	other := post(s, sandbox.Transfers, `{"amount":1,"reference":"a/b c"}`)
	wantIn(t, get(s, "/v1/transfers?reference=r"), 200, `{"data":[`+first.Body+","+second.Body+`]}`)
	wantIn(t, get(s, "/v1/transfers"), 200, `{"data":[`+first.Body+","+second.Body+","+other.Body+`]}`)
	wantIn(t, get(s, "/v1/transfers/by-reference/a%2Fb%20c"), 200, other.Body)
}

func TestChargesAndMessagesCannotBeLookedUp(t *testing.T) {
	s := start(t, sandbox.Options{VisibleAfter: -1})
	post(s, sandbox.Charges, order)
	post(s, sandbox.Messages, order)
	wantIn(t, get(s, "/v1/charges?reference=r"), 404, "unknown_route")
	wantIn(t, get(s, "/v1/messages?reference=r"), 404, "unknown_route")
	wantIn(t, get(s, "/v1/transfers?reference=r"), 200, `{"data":[]}`)
}
