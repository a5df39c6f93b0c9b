package semel_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// The table below is written by hand from section 3 of the design and its
// laws. Each block is a situation, then what each kind of evidence does to
// it: the state, the open attempts, and whether an incident is open. Evidence
// that a block does not list cannot happen: it fails and changes nothing.

// reports are the pieces of evidence that are tried in every situation. All of
// them come an hour and a half after the first claim, when absence has had its
// time, except where the name says otherwise.
func reports() map[string]semel.Event {
	now := 90 * time.Minute
	all := map[string]semel.Event{}
	for name, n := range map[string]int{"": 0, " 1": 1, " 2": 2, " 3": 3, " 4": 4} {
		all["claimed"+name] = claim(n, now)
		forced := claim(n, now)
		forced.Force = true
		all["claimed"+name+" forced"] = forced
		for _, k := range []semel.EventKind{semel.EvRefused, semel.EvRetained, semel.EvLost, semel.EvCancelled} {
			all[string(k)+name] = event(k, n, now)
		}
		all["confirmed"+name] = confirmed(n, "", now)
		all["confirmed"+name+" ch_1"] = confirmed(n, "ch_1", now)
		all["confirmed"+name+" ch_2"] = confirmed(n, "ch_2", now)
		all["mismatch"+name] = mismatch(n, now)
	}
	all["found"] = found("", now)
	all["found ch_1"] = found("ch_1", now)
	all["found ch_2"] = found("ch_2", now)
	all["absent"] = absent(after(now), now)
	all["absent early"] = absent(t0, now)
	all["absent undated"] = absent(time.Time{}, now)
	forced := event(semel.EvDidNotHappen, 0, time.Second)
	forced.Force, forced.Reason = true, "asked the bank"
	all["did_not_happen early forced"] = forced
	all["did_not_happen early"] = event(semel.EvDidNotHappen, 0, time.Second)
	all["lapsed early"] = event(semel.EvLapsed, 0, time.Second)
	for _, s := range []semel.State{semel.Completed, semel.Failed, semel.Unknown, semel.InProgress, ""} {
		all["incident_closed "+string(s)] = closing(s, now)
	}
	for _, k := range []semel.EventKind{
		semel.EvLapsed, semel.EvNoAnswer, semel.EvHappened, semel.EvDidNotHappen, semel.EvCancelAsked,
		semel.EvContradiction, semel.EvJoined, semel.EvExpired, "", "imagined",
	} {
		all[string(k)] = event(k, 0, now)
	}
	return all
}

type situation struct {
	name     string
	contract semel.Contract
	events   []semel.Event
	want     string
}

var (
	lost1    = event(semel.EvLost, 1, 5*time.Second)
	lost2    = event(semel.EvLost, 2, 15*time.Second)
	refused1 = event(semel.EvRefused, 1, 5*time.Second)
	refused2 = event(semel.EvRefused, 2, 15*time.Second)
	claim2   = claim(2, 10*time.Second)

	asked   = event(semel.EvCancelAsked, 0, 6*time.Second)
	against = event(semel.EvContradiction, 0, 25*time.Second)
)

func TestEvidenceInEverySituation(t *testing.T) {
	all := reports()
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			want := map[string]string{}
			for line := range strings.Lines(s.want) {
				report, end, ok := strings.Cut(strings.TrimSpace(line), "->")
				if !ok {
					continue
				}
				for name := range strings.SplitSeq(report, ",") {
					name = strings.TrimSpace(name)
					if _, ok := all[name]; !ok || want[name] != "" {
						t.Fatalf("the table names %q, which is no report, or names it twice", name)
					}
					want[name] = strings.TrimSpace(end)
				}
			}
			for name, ev := range all {
				o := replay(t, s.contract, s.events...)
				before := replay(t, s.contract, s.events...)
				next, err := o.Apply(ev)
				if diff := cmp.Diff(before, o, cmp.Exporter(anyType)); diff != "" {
					t.Errorf("%s changed the value it was applied to: %s", name, diff)
				}
				if want[name] != "" {
					if got := summary(next); err != nil || got != want[name] {
						t.Errorf("%s -> got %s %v, want %s", name, got, err, want[name])
					}
					if raises := ev.Kind == semel.EvContradiction || ev.Incident != "" || o.State == semel.Completed; o.Incident != "" && next.Incident != "" && !raises && next.Incident != o.Incident {
						t.Errorf("%s -> the open incident is now %q", name, next.Incident)
					}
					if next.Version != o.Version+1 || !next.UpdatedAt.Equal(ev.At) {
						t.Errorf("%s -> version %d at %v", name, next.Version, next.UpdatedAt)
					}
					continue
				}
				if never, ok := errors.AsType[*semel.TransitionError](err); !ok || never.State != o.State || never.Event != ev.Kind {
					t.Errorf("%s -> got %s %v, want a TransitionError", name, summary(next), err)
				}
				if diff := cmp.Diff(before, next, cmp.Exporter(anyType)); diff != "" {
					t.Errorf("%s cannot happen, but changed: %s", name, diff)
				}
			}
		})
	}
}

func anyType(reflect.Type) bool { return true }

var situations = []situation{
	{"nobody claimed it", keyed(), nil, `
		claimed 1, claimed 1 forced -> in_progress open 1`},

	{"in progress, the first attempt", keyed(), []semel.Event{claim(1, 0)}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed
		found, found ch_1, found ch_2                   -> completed open 1
		refused 1                        -> failed
		refused                          -> in_progress open 1
		retained 1                       -> failed
		retained                         -> in_progress open 1
		lost 1                           -> unknown open 1
		lost                             -> in_progress open 1
		mismatch 1                       -> unknown open 1 incident
		mismatch                         -> in_progress open 1 incident
		lapsed                           -> unknown open 1
		cancel_requested                 -> in_progress open 1
		cancelled 1                      -> failed
		cancelled                        -> in_progress open 1
		absent, absent early, absent undated, no_answer -> in_progress open 1
		contradiction                    -> in_progress open 1 incident
		joined                           -> in_progress open 1`},

	{"in progress, an older attempt open", keyed(), []semel.Event{claim(1, 0), lost1, claim2}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1,2
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed open 2
		confirmed 2, confirmed 2 ch_1, confirmed 2 ch_2 -> completed open 1
		found, found ch_1, found ch_2                   -> completed open 1,2
		refused 2                        -> unknown open 1
		refused 1                        -> in_progress open 2
		refused                          -> in_progress open 1,2
		retained 2                       -> failed
		retained 1                       -> in_progress open 2
		retained                         -> in_progress open 1,2
		lost 2                           -> unknown open 1,2
		lost, lost 1                     -> in_progress open 1,2
		mismatch 2                       -> unknown open 1,2 incident
		mismatch, mismatch 1             -> in_progress open 1,2 incident
		lapsed                           -> unknown open 1,2
		cancel_requested                 -> in_progress open 1,2
		cancelled 2                      -> unknown open 1
		cancelled 1                      -> in_progress open 2
		cancelled                        -> in_progress open 1,2
		absent, absent early, absent undated, no_answer -> in_progress open 1,2
		contradiction                    -> in_progress open 1,2 incident
		joined                           -> in_progress open 1,2`},

	{"in progress again after a failure", keyed(), []semel.Event{claim(1, 0), refused1, claim2}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 2
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed open 2
		confirmed 2, confirmed 2 ch_1, confirmed 2 ch_2 -> completed
		found, found ch_1, found ch_2                   -> completed open 2
		refused 2, retained 2, cancelled 2              -> failed
		refused, refused 1, retained, retained 1        -> in_progress open 2
		cancelled, cancelled 1                          -> in_progress open 2
		lost 2                           -> unknown open 2
		lost, lost 1                     -> in_progress open 2
		mismatch 2                       -> unknown open 2 incident
		mismatch, mismatch 1             -> in_progress open 2 incident
		lapsed                           -> unknown open 2
		cancel_requested                 -> in_progress open 2
		absent, absent early, absent undated, no_answer -> in_progress open 2
		contradiction                    -> in_progress open 2 incident
		joined                           -> in_progress open 2`},

	{"in progress, an incident open", keyed(), []semel.Event{claim(1, 0), against}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1 incident
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed incident
		found, found ch_1, found ch_2                   -> completed open 1 incident
		refused 1, retained 1, cancelled 1              -> unknown incident
		refused, retained, cancelled     -> in_progress open 1 incident
		lost 1, mismatch 1               -> unknown open 1 incident
		lost, mismatch                   -> in_progress open 1 incident
		lapsed                           -> unknown open 1 incident
		cancel_requested                 -> in_progress open 1 incident
		absent, absent early, absent undated, no_answer -> in_progress open 1 incident
		contradiction                    -> in_progress open 1 incident
		joined                           -> in_progress open 1 incident`},

	{"failed", keyed(), []semel.Event{claim(1, 0), refused1}, `
		claimed 2, claimed 2 forced      -> in_progress open 2
		confirmed, confirmed ch_1, confirmed ch_2       -> unknown open 1 incident
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> unknown open 1 incident
		found, found ch_1, found ch_2, contradiction    -> unknown open 1 incident
		mismatch, mismatch 1             -> unknown open 1 incident
		refused, refused 1, retained, retained 1        -> failed
		lost, lost 1, cancelled, cancelled 1            -> failed
		absent, absent early, absent undated, no_answer -> failed
		cancel_requested, joined, expired -> failed`},

	{"failed, cancelled before sending", keyed(), []semel.Event{claim(1, 0), asked, event(semel.EvCancelled, 1, 7*time.Second)}, `
		claimed 2 forced                 -> in_progress open 2
		confirmed, confirmed ch_1, confirmed ch_2       -> unknown open 1 incident
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> unknown open 1 incident
		found, found ch_1, found ch_2, contradiction    -> unknown open 1 incident
		mismatch, mismatch 1             -> unknown open 1 incident
		refused, refused 1, retained, retained 1        -> failed
		lost, lost 1, cancelled, cancelled 1            -> failed
		absent, absent early, absent undated, no_answer -> failed
		cancel_requested, joined, expired -> failed`},

	{"failed, cancelled by the worker, nobody asked", keyed(), []semel.Event{claim(1, 0), event(semel.EvCancelled, 1, 7*time.Second)}, `
		claimed 2 forced                 -> in_progress open 2
		confirmed, confirmed ch_1, confirmed ch_2       -> unknown open 1 incident
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> unknown open 1 incident
		found, found ch_1, found ch_2, contradiction    -> unknown open 1 incident
		mismatch, mismatch 1             -> unknown open 1 incident
		refused, refused 1, retained, retained 1        -> failed
		lost, lost 1, cancelled, cancelled 1            -> failed
		absent, absent early, absent undated, no_answer -> failed
		cancel_requested, joined, expired -> failed`},

	{"failed, retention over", keyed(), []semel.Event{claim(1, 0), refused1, event(semel.EvExpired, 0, time.Hour)}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> unknown open 1 incident
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> unknown open 1 incident
		found, found ch_1, found ch_2, contradiction    -> unknown open 1 incident
		mismatch, mismatch 1             -> unknown open 1 incident
		refused, refused 1, retained, retained 1        -> failed
		lost, lost 1, cancelled, cancelled 1            -> failed
		absent, absent early, absent undated, no_answer -> failed
		cancel_requested, joined, expired -> failed`},

	{"unknown, keyed", keyed(), []semel.Event{claim(1, 0), lost1}, `
		claimed 2, claimed 2 forced      -> in_progress open 1,2
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed
		found, found ch_1, found ch_2, happened         -> completed open 1
		refused 1, retained, retained 1, cancelled 1    -> failed
		refused, cancelled, lost, lost 1                -> unknown open 1
		mismatch, mismatch 1             -> unknown open 1 incident
		absent                           -> failed
		absent early, absent undated, no_answer         -> unknown open 1
		did_not_happen, did_not_happen early forced     -> failed
		cancel_requested, joined         -> unknown open 1
		contradiction                    -> unknown open 1 incident`},

	{"unknown, lookup", lookup(), []semel.Event{claim(1, 0), lost1}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed
		found, found ch_1, found ch_2, happened         -> completed open 1
		refused 1, retained, retained 1, cancelled 1    -> failed
		refused, cancelled, lost, lost 1                -> unknown open 1
		mismatch, mismatch 1             -> unknown open 1 incident
		absent                           -> failed
		absent early, absent undated, no_answer         -> unknown open 1
		did_not_happen, did_not_happen early forced     -> failed
		cancel_requested, joined         -> unknown open 1
		contradiction                    -> unknown open 1 incident`},

	{"unknown, the lease lapsed, absence is no proof", unprotected(), []semel.Event{claim(1, 0), event(semel.EvLapsed, 1, 30*time.Second)}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed
		found, found ch_1, found ch_2, happened         -> completed open 1
		refused 1, retained, retained 1, cancelled 1    -> failed
		refused, cancelled, lost, lost 1                -> unknown open 1
		mismatch, mismatch 1             -> unknown open 1 incident
		absent, absent early, absent undated, no_answer -> unknown open 1
		did_not_happen, did_not_happen early forced     -> failed
		cancel_requested, joined         -> unknown open 1
		contradiction                    -> unknown open 1 incident`},

	{"unknown, somebody asked to stop it", keyed(), []semel.Event{claim(1, 0), lost1, asked}, `
		claimed 2 forced                 -> in_progress open 1,2
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed
		found, found ch_1, found ch_2, happened         -> completed open 1
		refused 1, retained, retained 1, cancelled 1    -> failed
		refused, cancelled, lost, lost 1                -> unknown open 1
		mismatch, mismatch 1             -> unknown open 1 incident
		absent                           -> failed
		absent early, absent undated, no_answer         -> unknown open 1
		did_not_happen, did_not_happen early forced     -> failed
		cancel_requested, joined         -> unknown open 1
		contradiction                    -> unknown open 1 incident`},

	{"unknown, two attempts open", keyed(), []semel.Event{claim(1, 0), lost1, claim2, lost2}, `
		claimed 3, claimed 3 forced      -> in_progress open 1,2,3
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1,2
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed open 2
		confirmed 2, confirmed 2 ch_1, confirmed 2 ch_2 -> completed open 1
		found, found ch_1, found ch_2, happened         -> completed open 1,2
		refused 1, cancelled 1           -> unknown open 2
		refused 2, cancelled 2           -> unknown open 1
		refused, cancelled, lost, lost 1, lost 2        -> unknown open 1,2
		retained, retained 1, retained 2 -> failed
		mismatch, mismatch 1, mismatch 2 -> unknown open 1,2 incident
		absent                           -> failed
		absent early, absent undated, no_answer         -> unknown open 1,2
		did_not_happen, did_not_happen early forced     -> failed
		cancel_requested, joined         -> unknown open 1,2
		contradiction                    -> unknown open 1,2 incident`},

	{"unknown, the resend was refused", keyed(), []semel.Event{claim(1, 0), lost1, claim2, refused2}, `
		claimed 3, claimed 3 forced      -> in_progress open 1,3
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed
		confirmed 2, confirmed 2 ch_1, confirmed 2 ch_2 -> completed open 1
		found, found ch_1, found ch_2, happened         -> completed open 1
		refused 1, cancelled 1           -> failed
		refused, refused 2, cancelled, cancelled 2      -> unknown open 1
		lost, lost 1, lost 2             -> unknown open 1
		retained, retained 1, retained 2 -> failed
		mismatch, mismatch 1, mismatch 2 -> unknown open 1 incident
		absent                           -> failed
		absent early, absent undated, no_answer         -> unknown open 1
		did_not_happen, did_not_happen early forced     -> failed
		cancel_requested, joined         -> unknown open 1
		contradiction                    -> unknown open 1 incident`},

	{"unknown, an incident open", keyed(), []semel.Event{claim(1, 0), lost1, claim2, lost2, against}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> unknown open 1,2 incident
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> unknown open 1,2 incident
		confirmed 2, confirmed 2 ch_1, confirmed 2 ch_2 -> unknown open 1,2 incident
		found, found ch_1, found ch_2    -> unknown open 1,2 incident
		refused 1, cancelled 1, retained 1 -> unknown open 2 incident
		refused 2, cancelled 2           -> unknown open 1 incident
		retained 2                       -> unknown incident
		refused, cancelled, retained, lost, lost 1, lost 2 -> unknown open 1,2 incident
		mismatch, mismatch 1, mismatch 2, contradiction -> unknown open 1,2 incident
		absent, absent early, absent undated, no_answer -> unknown open 1,2 incident
		cancel_requested, joined         -> unknown open 1,2 incident
		incident_closed completed        -> completed open 1,2
		incident_closed failed           -> failed
		incident_closed unknown          -> unknown open 1,2`},

	{"unknown, one attempt and an incident open", keyed(), []semel.Event{claim(1, 0), lost1, against}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> unknown open 1 incident
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> unknown open 1 incident
		found, found ch_1, found ch_2    -> unknown open 1 incident
		refused 1, cancelled 1, retained 1 -> unknown incident
		refused, cancelled, retained, lost, lost 1      -> unknown open 1 incident
		mismatch, mismatch 1, contradiction             -> unknown open 1 incident
		absent, absent early, absent undated, no_answer -> unknown open 1 incident
		cancel_requested, joined         -> unknown open 1 incident
		incident_closed completed        -> completed open 1
		incident_closed failed           -> failed
		incident_closed unknown          -> unknown open 1`},

	{"completed", keyed(), []semel.Event{claim(1, 0), confirmed(1, "ch_1", time.Second)}, `
		confirmed, confirmed ch_1, confirmed 1, confirmed 1 ch_1, found, found ch_1 -> completed
		confirmed ch_2, confirmed 1 ch_2, found ch_2    -> completed incident
		refused 1, cancelled 1           -> completed incident
		retained, retained 1             -> completed incident
		refused, cancelled, lost, lost 1 -> completed
		mismatch, mismatch 1             -> completed incident
		absent                           -> completed incident
		absent early, absent undated, no_answer         -> completed
		contradiction                    -> completed incident
		cancel_requested, joined, expired -> completed`},

	{"completed by a resend", keyed(), []semel.Event{claim(1, 0), lost1, claim2, confirmed(2, "ch_1", 11*time.Second)}, `
		confirmed, confirmed 2           -> completed open 1
		confirmed ch_1, confirmed 2 ch_1                -> completed open 1
		confirmed 1, confirmed 1 ch_1    -> completed
		confirmed 1 ch_2                 -> completed incident
		confirmed ch_2, confirmed 2 ch_2, found ch_2    -> completed open 1 incident
		found, found ch_1                -> completed open 1
		refused 1, cancelled 1           -> completed
		refused 2, cancelled 2           -> completed open 1 incident
		retained                         -> completed open 1 incident
		retained 1, retained 2           -> completed incident
		refused, cancelled, lost, lost 1, lost 2        -> completed open 1
		mismatch, mismatch 1, mismatch 2 -> completed open 1 incident
		absent                           -> completed open 1 incident
		absent early, absent undated, no_answer         -> completed open 1
		contradiction                    -> completed open 1 incident
		cancel_requested, joined, expired -> completed open 1`},

	{"completed, a second attempt without protection", unprotected(), []semel.Event{claim(1, 0), refused1, claim2, confirmed(2, "", 11*time.Second)}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed
		confirmed 2, confirmed 2 ch_1, confirmed 2 ch_2 -> completed
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed incident
		found, found ch_1, found ch_2    -> completed
		refused 2, cancelled 2           -> completed incident
		refused 1, cancelled 1, refused, cancelled      -> completed
		retained, retained 1, retained 2 -> completed incident
		lost, lost 1, lost 2             -> completed
		mismatch, mismatch 1, mismatch 2 -> completed incident
		absent, absent early, absent undated, no_answer -> completed
		contradiction                    -> completed incident
		cancel_requested, joined, expired -> completed`},

	{"completed by a lookup", lookup(), []semel.Event{claim(1, 0), lost1, found("ch_1", 6*time.Second)}, `
		confirmed, confirmed ch_1        -> completed open 1
		confirmed 1, confirmed 1 ch_1    -> completed
		confirmed ch_2                   -> completed open 1 incident
		confirmed 1 ch_2                 -> completed incident
		found, found ch_1                -> completed open 1
		found ch_2                       -> completed open 1 incident
		refused 1, cancelled 1, retained 1 -> completed incident
		retained                         -> completed open 1 incident
		refused, cancelled, lost, lost 1 -> completed open 1
		mismatch, mismatch 1             -> completed open 1 incident
		absent                           -> completed open 1 incident
		absent early, absent undated, no_answer         -> completed open 1
		contradiction                    -> completed open 1 incident
		cancel_requested, joined, expired -> completed open 1`},

	{"completed by a person", unprotected(), []semel.Event{claim(1, 0), lost1, event(semel.EvHappened, 0, time.Hour)}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed open 1
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed
		found, found ch_1, found ch_2    -> completed open 1
		refused 1, cancelled 1, retained 1 -> completed incident
		retained                         -> completed open 1 incident
		refused, cancelled, lost, lost 1 -> completed open 1
		mismatch, mismatch 1             -> completed open 1 incident
		absent, absent early, absent undated, no_answer -> completed open 1
		contradiction                    -> completed open 1 incident
		cancel_requested, joined, expired -> completed open 1`},

	{"completed, an incident open", keyed(), []semel.Event{claim(1, 0), confirmed(1, "ch_1", time.Second), against}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed incident
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed incident
		found, found ch_1, found ch_2    -> completed incident
		refused, refused 1, cancelled, cancelled 1      -> completed incident
		retained, retained 1, lost, lost 1, mismatch, mismatch 1 -> completed incident
		absent, absent early, absent undated, no_answer -> completed incident
		contradiction, cancel_requested, joined         -> completed incident
		incident_closed completed        -> completed
		incident_closed failed           -> failed
		incident_closed unknown          -> unknown open 1`},

	{"completed, retention over", keyed(), []semel.Event{claim(1, 0), confirmed(1, "ch_1", time.Second), event(semel.EvExpired, 0, time.Hour)}, `
		confirmed, confirmed ch_1, confirmed ch_2       -> completed
		confirmed 1, confirmed 1 ch_1, confirmed 1 ch_2 -> completed
		found, found ch_1, found ch_2    -> completed
		refused 1, cancelled 1           -> completed incident
		retained, retained 1             -> completed incident
		refused, cancelled, lost, lost 1 -> completed
		mismatch, mismatch 1             -> completed incident
		absent                           -> completed incident
		absent early, absent undated, no_answer         -> completed
		contradiction                    -> completed incident
		cancel_requested, joined, expired -> completed`},
}

// Every pair of a state and a kind of evidence has a row in the table of the
// code exactly where a situation above says that it can happen.
func TestTransitionsListWhatCanHappen(t *testing.T) {
	type pair struct {
		from semel.State
		on   semel.EventKind
	}
	all := reports()
	can := map[pair]bool{}
	for _, s := range situations {
		o := replay(t, s.contract, s.events...)
		for _, ev := range all {
			if _, err := o.Apply(ev); err == nil {
				can[pair{o.State, ev.Kind}] = true
			}
		}
	}
	listed := map[pair]bool{}
	for _, row := range semel.Transitions() {
		listed[pair{row.From, row.On}] = true
	}
	if diff := cmp.Diff(can, listed); diff != "" {
		t.Error(diff)
	}
	rows := semel.Transitions()
	rows[0].To = semel.Unknown
	if slices.ContainsFunc(semel.Transitions(), func(r semel.Transition) bool { return r.From == "" && r.To == semel.Unknown }) {
		t.Error("a caller can change the state table")
	}
}
