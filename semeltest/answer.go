package semeltest

import (
	"encoding/json"
	"fmt"

	"github.com/semel-dev/semel"
)

// Answer is what becomes of one request that reaches a scripted destination:
// whether it has an effect, and what the worker hears of it. The zero Answer is
// Completed(nil).
type Answer struct {
	fate   fate
	reason string
	value  any
}

type fate int

const (
	completes fate = iota
	refuses
	losesRequest
	losesAnswer
)

// Completed has an effect and says so. The value is the destination's answer,
// encoded as JSON unless it is a semel.Result; nil answers nothing, which reads
// as the zero value.
func Completed(value any) Answer { return Answer{fate: completes, value: value} }

// Refused says that nothing happened, and why.
func Refused(reason string) Answer { return Answer{fate: refuses, reason: reason} }

// LostBefore has no effect and no answer: the worker cannot know.
func LostBefore() Answer {
	return Answer{fate: losesRequest, reason: "the connection broke"}
}

// LostAfter has an effect, and its answer is lost: the worker cannot know. The
// value is what a destination that recognises the request answers later.
func LostAfter(value any) Answer {
	return Answer{fate: losesAnswer, reason: "the connection broke", value: value}
}

// happens: the request has an effect.
func (a Answer) happens() bool { return a.fate == completes || a.fate == losesAnswer }

// result is what the destination answers.
func (a Answer) result() (semel.Result, error) {
	switch v := a.value.(type) {
	case nil:
		return semel.Result{}, nil
	case semel.Result:
		return v, nil
	}
	body, err := json.Marshal(a.value)
	if err != nil {
		return semel.Result{}, fmt.Errorf("encode the answer: %w", err)
	}
	return semel.Result{MediaType: "application/json", Body: body}, nil
}

// evidence is what the worker hears.
func (a Answer) evidence(result semel.Result) semel.Event {
	switch a.fate {
	case completes:
		return semel.Event{Kind: semel.EvConfirmed, Result: &result}
	case refuses:
		return semel.Event{Kind: semel.EvRefused, Reason: a.reason}
	case losesRequest, losesAnswer:
	}
	return semel.Event{Kind: semel.EvLost, Reason: a.reason, Closed: true}
}
