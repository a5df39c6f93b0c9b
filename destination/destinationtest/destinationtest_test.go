package destinationtest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// fake is a destination in memory that may be broken in one way.
type fake struct {
	broken  string
	mu      sync.Mutex
	effects map[string]int
	wg      sync.WaitGroup
}

func (f *fake) act(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.effects[name]++
}

func (f *fake) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.effects[name]
}

func (f *fake) Send(ctx context.Context, s *semel.Send) semel.Event {
	name, m := string(s.Operation.Key), Manner(s.Operation.Request.Method)
	if m == Unreachable && f.broken != "unreachable is lost" {
		return semel.Event{Kind: semel.EvRefused}
	}
	if f.broken == "acts before begin" {
		f.act(name)
	}
	err := s.Begin()
	if f.broken == "begins twice" {
		err = s.Begin()
	}
	if err != nil && f.broken != "ignores begin" {
		return semel.Event{Kind: semel.EvRefused}
	}
	if m == Unreachable {
		return semel.Event{Kind: semel.EvLost}
	}
	if f.broken == "changes the operation" {
		s.Operation.Attempt++
	}
	if m == Refuses {
		if f.broken == "confirms without effect" {
			return semel.Event{Kind: semel.EvConfirmed}
		}
		return semel.Event{Kind: semel.EvRefused}
	}
	if f.broken != "acts before begin" {
		f.act(name)
	}
	if f.broken == "sends twice" {
		f.act(name)
	}
	switch m {
	case LosesAnswer:
		if f.broken == "a lost answer is a failure" {
			return semel.Event{Kind: semel.EvRefused}
		}
		return semel.Event{Kind: semel.EvLost, Closed: true}
	case Hangs:
		<-ctx.Done()
		if f.broken == "a cancel is a failure" {
			return semel.Event{Kind: semel.EvRefused}
		}
		return semel.Event{Kind: semel.EvLost, Closed: true}
	case Slow:
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			if s.Late == nil {
				return semel.Event{Kind: semel.EvLost, Closed: true}
			}
			f.wg.Go(func() {
				s.Late(semel.Event{Kind: semel.EvConfirmed})
				if f.broken == "late twice" {
					s.Late(semel.Event{Kind: semel.EvConfirmed})
				}
			})
			return semel.Event{Kind: semel.EvLost, Closed: f.broken == "late after closing"}
		}
	case Succeeds, Refuses, Unreachable:
	}
	if f.broken == "speaks nonsense" {
		return semel.Event{Kind: semel.EvFound}
	}
	return semel.Event{Kind: semel.EvConfirmed}
}

func (f *fake) Look(_ context.Context, s *semel.Send) semel.Event {
	name := string(s.Operation.Key)
	if f.broken == "looking acts" {
		f.act(name)
	}
	if f.count(name) > 0 || f.broken == "finds what is not there" {
		return semel.Event{Kind: semel.EvFound}
	}
	return semel.Event{Kind: semel.EvAbsent}
}

func openFake(broken string) World {
	f := &fake{broken: broken, effects: map[string]int{}}
	return World{
		Destination: f, Effects: f.count, Close: func() error { f.wg.Wait(); return nil },
		Request: func(_ string, m Manner) (semel.Request, semel.Contract, bool) {
			return semel.Request{Kind: "fake", Method: string(m)}, semel.Contract{Protection: semel.Unprotected}, true
		},
	}
}

// An honest destination passes.
func TestHonest(t *testing.T) {
	Test(t, func(*testing.T) World { return openFake("") })
}

// The suite can fail: each defect is caught, by sentence.
func TestDefectsAreCaught(t *testing.T) {
	for broken, want := range map[string]string{
		"acts before begin":          "before Begin agreed",
		"ignores begin":              "want refused after one",
		"begins twice":               "Begin was called 2 times",
		"confirms without effect":    "it never happened",
		"a lost answer is a failure": "and it happened",
		"a cancel is a failure":      "and it happened",
		"unreachable is lost":        "want refused",
		"sends twice":                "happened 2 times",
		"changes the operation":      "changed what it was given",
		"speaks nonsense":            "not evidence of an attempt",
		"late after closing":         "came late although",
		"late twice":                 "Late was called 2 times",
		"looking acts":               "after looking there are",
		"finds what is not there":    "found (), and it never happened",
	} {
		t.Run(broken, func(t *testing.T) {
			var mu sync.Mutex
			var said []string
			for _, c := range cases {
				r := &run{world: openFake(broken), ctx: t.Context(), fail: func(s string) {
					mu.Lock()
					defer mu.Unlock()
					said = append(said, s)
				}}
				c.test(r)
				r.settle()
			}
			if !strings.Contains(strings.Join(said, "\n"), want) {
				t.Errorf("the suite said %q, want something with %q", said, want)
			}
		})
	}
}
