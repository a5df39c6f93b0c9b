package semel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

func TestListsNameTheirItems(t *testing.T) {
	for _, test := range []struct {
		keys, items []string
		says        string
	}{
		{[]string{"a", "b/c"}, []string{`1`, `2`}, ""},
		{[]string{"a", ""}, []string{`1`, `2`}, "key of item 2"},
		{[]string{"a", "b", "a"}, []string{`1`, `2`, `3`}, `two items with the key "a", number 1 and number 3`},
		{[]string{"0", "1"}, []string{`{"id":7}`, `{"id":9}`}, "position in the list"},
		{[]string{"1", "2"}, []string{`{"id":7}`, `{"id":9}`}, "position in the list"},
		{[]string{"1", "2"}, []string{`1`, `2`}, ""}, // they are what they are called
		{[]string{"a[1]"}, []string{`1`}, `contains "["`},
	} {
		s := semel.EachStep{Keys: test.keys}
		for _, item := range test.items {
			s.Items = append(s.Items, []byte(item))
		}
		err := s.Validate("bill")
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: error %v, want %q", test.keys, err, test.says)
		}
	}
}

func TestStepKeysNameTheRunAndTheStep(t *testing.T) {
	run := semel.Run{Workflow: "w", Key: "k"}
	if got := semel.StepKey(&run, "bill[1]/charge"); got != "run/w/k/bill[1]/charge" {
		t.Errorf("got %q", got)
	}
	long := semel.Run{Workflow: "w", Key: semel.Key(strings.Repeat("k", semel.MaxKeyLen))}
	one, two := semel.StepKey(&long, "a"), semel.StepKey(&long, "b")
	if one == two || one != semel.StepKey(&long, "a") || one.Validate() != nil {
		t.Errorf("keys of a long run key: %q and %q", one, two)
	}
	shifted := semel.Run{Workflow: "w", Key: long.Key[1:]}
	if semel.StepKey(&shifted, "ka") == one {
		t.Error("the parts of a key run into each other")
	}
}

func TestEventKeysNameTheEvent(t *testing.T) {
	if got := semel.EventKey(&semel.InboxEvent{Name: "paid", ID: "e1"}); got != "event/paid/e1" {
		t.Errorf("got %q", got)
	}
	long := semel.EventKey(&semel.InboxEvent{Name: "paid", ID: strings.Repeat("i", semel.MaxKeyLen)})
	if err := long.Validate(); err != nil {
		t.Errorf("the key of a long ID: %v", err)
	}
}

func TestOtherInputsAreNamed(t *testing.T) {
	run := semel.Run{Input: []byte(`{"a":1,"b":{"c":9007199254740993}}`)}
	for _, test := range []struct {
		input string
		want  []string
	}{
		{`{"b":{"c":9007199254740993},"a":1.0}`, nil},
		{`{"a":1,"b":{"c":9007199254740992}}`, []string{"input.b.c"}},
		{`{"a":2,"b":{"c":9007199254740993}}`, []string{"input.a"}},
	} {
		if diff := cmp.Diff(test.want, run.DiffInput([]byte(test.input))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.input, diff)
		}
	}
}

func TestRunsAreRefusedWithACure(t *testing.T) {
	w := semel.Workflow[int]{Name: "w", Func: func(semel.Context, int) error { return nil }}
	if _, err := w.New("", 1); err == nil || !strings.Contains(err.Error(), "run key is missing") {
		t.Errorf("without a key: %v", err)
	}
	n := 0
	w.Key = func(int) string { n++; return strings.Repeat("x", n) }
	if _, err := w.New("", 1); err == nil || !strings.Contains(err.Error(), "from the input alone") {
		t.Errorf("a key that changes: %v", err)
	}
	for _, run := range []semel.NewRun{
		{Workflow: "a/b", Version: 1, Key: "k"},
		{Workflow: "w", Key: "k"},
		{Workflow: "w", Version: 1},
		{Workflow: "w", Version: 1, Key: "k", Input: make([]byte, semel.MaxInput+1)},
	} {
		err := run.Validate()
		if _, ok := errors.AsType[*semel.InputError](err); !ok {
			t.Errorf("%s@%d %q: error %v", run.Workflow, run.Version, run.Key, err)
		}
	}
}
