package command_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
)

// M10: program, arguments and input are the identity, byte by byte; even JSON
// input is bytes, since a program may see the difference.
func TestRequestIdentity(t *testing.T) {
	same := func(a, b semel.Request) bool {
		t.Helper()
		x, err := a.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		y, err := b.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return x == y
	}
	first := request(t, []byte(`{"a":1}`), "charge", "4417")
	if !same(first, request(t, []byte(`{"a":1}`), "charge", "4417")) {
		t.Error("one request has two identities")
	}
	for name, other := range map[string]semel.Request{
		"program":   request(t, []byte(`{"a":1}`), "./charge", "4417"),
		"argument":  request(t, []byte(`{"a":1}`), "charge", "4418"),
		"split":     request(t, []byte(`{"a":1}`), "charge", "44", "17"),
		"input":     request(t, []byte(`{"a": 1}`), "charge", "4417"),
		"no input":  request(t, nil, "charge", "4417"),
		"bad UTF-8": request(t, []byte{0xff}, "charge", "4417"),
	} {
		if same(first, other) {
			t.Errorf("another %s has the same identity", name)
		}
	}
}

// M13: what could not be kept exactly is refused before anything is claimed.
func TestUnusableRequestsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		input []byte
		field string
	}{
		"no program":    {nil, nil, "program"},
		"empty program": {[]string{"", "x"}, nil, "program"},
		"NUL":           {[]string{"charge", "a\x00b"}, nil, "argument"},
		"not UTF-8":     {[]string{"charge", "a\xffb"}, nil, "argument 1"},
		"large input":   {[]string{"charge"}, bytes.Repeat([]byte("x"), semel.MaxBody+1), "body"},
	} {
		_, err := command.NewRequest(test.args, test.input)
		if input := (*semel.InputError)(nil); !errors.As(err, &input) || input.Field != test.field {
			t.Errorf("%s: got %v, want an error about %s", name, err, test.field)
		}
	}
	for _, code := range []int{0, -1, 256} {
		_, err := command.New(command.Options{NoEffectExit: []int{code}})
		if input := (*semel.InputError)(nil); !errors.As(err, &input) {
			t.Errorf("exit code %d: got %v, want an input error", code, err)
		}
	}
}

func request(t *testing.T, input []byte, args ...string) semel.Request {
	t.Helper()
	r, err := command.NewRequest(args, input)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
