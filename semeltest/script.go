package semeltest

import (
	"slices"

	"github.com/semel-dev/semel"
)

// scriptName names a script; an empty key is that of all the action's
// operations without one of their own.
type scriptName struct {
	action string
	key    semel.Key
}

// script holds the answers still to come.
type script struct{ answers []Answer }

// On says how the destination of an action answers, one request after the
// other; the last answer repeats. It replaces what was said before. An action
// of which nothing was said answers Completed(nil).
//
// Requests that run at once take answers in any order: use OnKey for them.
func (w *World) On(action string, answers ...Answer) {
	w.t.Helper()
	w.OnKey(action, "", answers...)
}

// OnKey is On for one operation of the action: that with this key. The key of
// an action without a Key is semel.StepKey's.
func (w *World) OnKey(action string, key semel.Key, answers ...Answer) {
	w.t.Helper()
	for _, a := range answers {
		if _, err := a.result(); err != nil {
			w.t.Fatalf("semeltest: answer of %s: %v", action, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scripts[scriptName{action, key}] = &script{answers: slices.Clone(answers)}
}

// answer is what becomes of the next request for an operation.
func (w *World) answer(action string, key semel.Key) Answer {
	for _, name := range []scriptName{{action, key}, {action, ""}} {
		s := w.scripts[name]
		if s == nil || len(s.answers) == 0 {
			continue
		}
		a := s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
		return a
	}
	return Completed(nil)
}

// checkScripts reports scripts that can have no use: a name was mistyped.
func (w *World) checkScripts() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.scripts {
		if !w.known(name.action) {
			w.t.Errorf("semeltest: answers are scripted for action %q, which no workflow declares, and no step asked for", name.action)
		}
	}
}
