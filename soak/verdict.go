package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// count is what became of the intentions of one protection.
type count struct {
	intended, happened            int // happened: one effect or more
	twice, missing                int
	completed, failed             int
	unknownDone, unknownNot       int // unknown to Semel; the ledger knows
	boundary                      int // a second effect that a freeze explains
	requests, repeated, unsettled int
}

// verdict is the judgement on a soak.
type verdict struct {
	counts   map[Protection]*count
	explains map[string]int // why outcomes are unknown
	faults   map[string]int // requests by what the destination did to them
	lookups  int
	boundary []string // cases of law 7's stated boundary, with their proof
	runs     runCounts
	wrong    []string
}

func (v *verdict) passed() bool { return len(v.wrong) == 0 }

// judge counts effects per intention and holds what Semel says against them.
func judge(e *evidence) *verdict {
	v := &verdict{counts: map[Protection]*count{}, explains: map[string]int{}, faults: map[string]int{}, lookups: e.ledger.lookups}
	for _, p := range Protections() {
		v.counts[p] = &count{}
	}
	claims := map[string]Claim{}
	for _, c := range e.claims {
		if _, twice := claims[c.Key]; twice {
			v.blame("key %s: two operations", c.Key)
		}
		claims[c.Key] = c
	}
	meant := map[string]bool{}
	keys := map[string]bool{}
	for _, i := range e.intentions {
		if meant[i.Reference] || keys[i.Key] {
			v.blame("%s: intended twice, so nobody can count it", i.Key)
		}
		meant[i.Reference], keys[i.Key] = true, true
		v.weigh(e, i, claims[i.Key])
	}
	for reference, effects := range e.ledger.effects {
		if !meant[reference] {
			v.blame("%d effects for %q, which nobody intended", len(effects), reference)
		}
	}
	for key := range claims {
		if !keys[key] {
			v.blame("an operation %s, which nobody intended", key)
		}
	}
	if len(e.runs.plans) > 0 {
		v.judgeRuns(e, claims)
	}
	slices.Sort(v.wrong)
	return v
}

func (v *verdict) blame(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// weigh judges one intention.
func (v *verdict) weigh(e *evidence, i Intention, c Claim) {
	n := v.counts[i.Protection]
	if n == nil {
		v.blame("%s: protection %q is unknown", i.Key, i.Protection)
		return
	}
	effects, requests := e.ledger.effects[i.Reference], e.ledger.requests[i.Reference]
	n.intended++
	n.requests += len(requests)
	if len(requests) > 1 {
		n.repeated++
	}
	for _, r := range requests {
		v.faults[r.Fault]++
	}
	if len(effects) > 0 {
		n.happened++
	}
	for _, x := range effects {
		if x.Resource != i.Resource || x.Amount != i.Amount || x.Partial {
			v.blame("%s: %s of %d happened, intended was %s of %d", i.Key, x.Resource, x.Amount, i.Resource, i.Amount)
		}
		if r, ok := e.ledger.cause(x); !ok || x.At.Sub(r.At) > maxProcessing {
			v.blame("%s: the destination broke its own terms: effect %s at %v, request %d at %v", i.Key, x.ID, x.At, x.Number, r.At)
		}
	}
	proof := e.beyond(i, effects)
	if proof != "" {
		n.boundary++
		v.boundary = append(v.boundary, fmt.Sprintf("%s: %d effects, %s: %s", i.Key, len(effects), c.State, proof))
	}
	story := func() string { return e.story(i, c) }
	if len(effects) > 1 && proof == "" {
		n.twice++
		v.blame("%s happened %d times: %s", i.Key, len(effects), story())
	}
	if c.Incident != "" && proof == "" {
		v.blame("%s has an incident: %s: %s", i.Key, c.Incident, story())
	}
	switch c.State {
	case "completed":
		n.completed++
		if len(effects) == 0 {
			n.missing++
			v.blame("%s is completed and did not happen: %s", i.Key, story())
		}
	case "failed":
		n.failed++
		if len(effects) > 0 && proof == "" {
			v.blame("%s is failed and happened: %s", i.Key, story())
		}
		if len(effects) == 0 && !i.Final && i.Run == "" {
			n.missing++
			v.blame("%s is missing: it failed and nobody tried again: %s", i.Key, story())
		}
	case "unknown":
		if len(effects) > 0 {
			n.unknownDone++
		} else {
			n.unknownNot++
		}
		v.explain(i, c, requests, proof, e.stopped(i.Run), story)
	case "":
		if i.Run != "" && len(effects)+len(requests) == 0 {
			return // its run did not come so far
		}
		fallthrough
	default:
		n.unsettled++
		if len(effects) == 0 {
			n.missing++
		}
		v.blame("%s is left %q after %d effects: %s", i.Key, c.State, len(effects), story())
	}
}

// stopped reports whether somebody asked the run with a key to stop, or one that
// started it.
func (e *evidence) stopped(run string) bool {
	if run == "" {
		return false
	}
	if slices.ContainsFunc(e.runs.asked, func(a Asked) bool { return a.Verb == "cancel" && a.Key == run }) {
		return true
	}
	i := slices.IndexFunc(e.runs.records, func(r Record) bool { return r.Key == run })
	return i >= 0 && e.runs.records[i].Parent != runID{} && e.stopped(e.runs.records[i].Parent.Key)
}

// explain asks why nobody can know. Only what the destination offers, and what
// its own log shows, counts as an explanation.
func (v *verdict) explain(i Intention, c Claim, requests []request, proof string, stopped bool, story func() string) {
	why := ""
	switch i.Protection {
	case None:
		why = "none: the destination offers neither key nor lookup"
	case Short:
		end := c.KeySince.Add(shortWindow - windowMargin - maxProcessing)
		switch {
		case retainedError(requests):
			why = "short: the destination keeps a 500 under the key and says no more"
		case !c.KeySince.IsZero() && c.ListedAt.After(end):
			why = "short: the destination's window for the key is over"
		}
	case Keyed:
		if retainedError(requests) {
			why = "keyed: the destination keeps a 500 under the key and says no more"
		}
	case Lookup: // it can always be found out
	}
	if why == "" && stopped && i.Protection != Lookup {
		why = "cancelled: nothing is sent again to find out, and the destination cannot be asked"
	}
	if proof != "" {
		why = "boundary of law 7: a frozen worker's request came late"
	}
	if why == "" || c.Next != "person" || c.Why == "" {
		v.blame("%s is unknown without need: %s", i.Key, story())
		return
	}
	v.explains[why]++
}

// retainedError reports whether the destination acted, answered 500 and keeps
// that answer under the key.
func retainedError(requests []request) bool {
	return slices.ContainsFunc(requests, func(r request) bool { return r.Fault == "error_after" })
}

// beyond is the proof that this intention met the stated boundary of law 7: a
// request that had an effect arrived after the last moment at which it might
// have left, and the worker that sent it was frozen over that moment. It is
// empty where a key that is still honoured protects the intention, and where
// some effect too many is not explained so.
func (e *evidence) beyond(i Intention, effects []effect) string {
	if i.Protection == Keyed {
		return ""
	}
	var proofs []string
	for _, x := range effects {
		r, ok := e.ledger.cause(x)
		sendBy, err := time.Parse(time.RFC3339Nano, r.Header.Get(sendByHeader))
		if !ok || err != nil || !r.At.After(sendBy) {
			continue
		}
		worker := r.Header.Get(workerHeader)
		for _, f := range e.freezes {
			if f.Worker == worker && !f.From.After(sendBy) && f.To.After(sendBy) && r.At.After(f.To.Add(-10*time.Millisecond)) {
				proofs = append(proofs, fmt.Sprintf("request %d was to leave by %s and came at %s; %s was frozen from %s to %s",
					r.Number, clock(sendBy), clock(r.At), worker, clock(f.From), clock(f.To)))
				break
			}
		}
	}
	if len(proofs) == 0 || len(proofs) < len(effects)-1 {
		return ""
	}
	return strings.Join(proofs, "; ")
}

// story is what the ledger and Semel know about an intention, in one line.
func (e *evidence) story(i Intention, c Claim) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Semel: %s after %d attempts, next %s (%s) %s; ledger:", c.State, c.Attempts, c.Next, c.Why, c.Reason)
	for _, r := range e.ledger.requests[i.Reference] {
		fmt.Fprintf(&b, " [request %d at %s by %s attempt %s key %.8s fault %q status %d, send by %s]", r.Number, clock(r.At),
			r.Header.Get(workerHeader), r.Header.Get(attemptHeader), r.Key, r.Fault, r.Status, r.Header.Get(sendByHeader))
	}
	for _, x := range e.ledger.effects[i.Reference] {
		fmt.Fprintf(&b, " [effect %s at %s of request %d]", x.ID, clock(x.At), x.Number)
	}
	return b.String()
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// print writes the verdict for people.
func (v *verdict) print(w io.Writer) {
	fmt.Fprintf(w, "%-8s %9s %9s %6s %8s %10s %7s %8s %20s %9s %9s\n",
		"", "intended", "happened", "twice", "missing", "completed", "failed", "unknown", "(happened, did not)", "requests", "repeated")
	var sum count
	row := func(name string, n *count) {
		fmt.Fprintf(w, "%-8s %9d %9d %6d %8d %10d %7d %8d %20s %9d %9d\n", name, n.intended, n.happened, n.twice, n.missing, n.completed,
			n.failed, n.unknownDone+n.unknownNot, fmt.Sprintf("(%d, %d)", n.unknownDone, n.unknownNot), n.requests, n.repeated)
	}
	for _, p := range Protections() {
		n := v.counts[p]
		row(string(p), n)
		sum.intended += n.intended
		sum.happened += n.happened
		sum.twice += n.twice
		sum.missing += n.missing
		sum.completed += n.completed
		sum.failed += n.failed
		sum.unknownDone += n.unknownDone
		sum.unknownNot += n.unknownNot
		sum.boundary += n.boundary
		sum.requests += n.requests
		sum.repeated += n.repeated
	}
	row("all", &sum)
	fmt.Fprintf(w, "\nwhy an outcome is unknown (all wait for a person):\n")
	tally(w, v.explains)
	fmt.Fprintf(w, "what the destination did to the requests (and %d lookups):\n", v.lookups)
	faults := map[string]int{}
	for name, n := range v.faults {
		if name == "" {
			name = "answered"
		}
		faults[name] = n
	}
	tally(w, faults)
	fmt.Fprintf(w, "boundary of law 7 (frozen between the check and the write): %d\n", len(v.boundary))
	for _, s := range v.boundary {
		fmt.Fprintf(w, "  %s\n", s)
	}
	if v.runs.planned > 0 {
		v.runs.print(w)
	}
	for _, s := range v.wrong {
		fmt.Fprintf(w, "WRONG: %s\n", s)
	}
	word := "PASS"
	if !v.passed() {
		word = "FAIL"
	}
	fmt.Fprintf(w, "verdict: %s: %d twice, %d missing, %d findings\n", word, sum.twice, sum.missing, len(v.wrong))
}

func tally(w io.Writer, counts map[string]int) {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "  %6d  %s\n", counts[name], name)
	}
}
