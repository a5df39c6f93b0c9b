package probe

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// Ruling says whether a declared promise is true of the destination.
type Ruling string

// The rulings.
const (
	Holds     Ruling = "holds"
	Broken    Ruling = "does_not_hold"
	Undecided Ruling = "unknown"    // it was tried, and the answers do not tell
	Untested  Ruling = "not_tested" // it was not tried
)

// Promise is one thing that a contract or a profile declares.
type Promise string

// The promises.
const (
	PromiseKey      Promise = "key"      // sending again under a key has no second effect
	PromiseAtOnce   Promise = "at_once"  // neither have requests at once
	PromiseWindow   Promise = "window"   // a key holds so long
	PromiseMismatch Promise = "mismatch" // another body under a used key is refused, and so read
	PromiseRunning  Promise = "running"  // a key in use is answered so that it is read as running
	PromiseError    Promise = "error"    // what an error leaves under its key
	PromiseMarker   Promise = "marker"   // a header marks a replay
	PromiseName     Promise = "name"     // an answer names its effect
	PromiseLookup   Promise = "lookup"   // a lookup finds an effect
	PromiseVisible  Promise = "visible"  // and does so in time
	PromiseAbsence  Promise = "absence"  // a lookup says that there is nothing
	PromiseRepeat   Promise = "repeat"   // repeating changes nothing
	PromiseTime     Promise = "time"     // the longest time a request runs
)

// Verdict is one declared promise and what is true of it.
type Verdict struct {
	Promise  Promise `json:"promise"`
	Declared string  `json:"declared"`
	Ruling   Ruling  `json:"ruling"`
	Seen     string  `json:"seen"`
	// Means is what follows for recovery, empty where it holds.
	Means string `json:"means,omitempty"`
}

// Difference is where the destination is not as declared.
type Difference struct {
	About    string `json:"about"`
	Declared string `json:"declared"`
	Seen     string `json:"seen"`
	// Means is what follows for recovery, and what to declare.
	Means string `json:"means"`
}

// declared is what observations are held against.
type declared struct {
	semel.Contract
	profile   *httpdest.Profile
	spare     bool // no key header is declared
	reference string
	answer    Exchange // the first that told of the effect
	names     bool     // names tell effects apart
	recurs    bool     // one name is several effects', or may be
}

// verdicts rules on every declared promise. It is pure.
func (d *declared) verdicts(r *Report) []Verdict {
	var all []Verdict
	add := func(p Promise, declared string, o Observation, ruling Ruling, means string) {
		if ruling == Holds || ruling == Untested {
			means = ""
		}
		all = append(all, Verdict{Promise: p, Declared: declared, Ruling: ruling, Seen: o.Words, Means: means})
	}
	switch d.Protection {
	case semel.Keyed:
		what := protectionOf(&d.Contract)
		same, many := r.Of(SameKey), r.Of(AtOnce)
		add(PromiseKey, what+": sending again has no second effect", same, effectRuling(&same), d.withoutKeys(&same))
		add(PromiseAtOnce, what+": requests at once have one effect", many, effectRuling(&many),
			"a resend while the first request is still running could do it twice. "+d.instead())
		all = append(all, d.window(r))
	case semel.Commutes, semel.Absolute:
		add(PromiseRepeat, string(d.Protection)+": repeating changes nothing",
			Observation{Words: "a probe counts effects, and does not see what a repetition changed"}, Untested, "")
	case semel.Transactional, semel.Lookup, semel.Unprotected:
	}
	all = append(all, d.profileVerdicts(r)...)
	return append(all, d.lookupVerdicts(r)...)
}

// effectRuling rules on how many effects there were. That a second request was
// refused need not be because of its key.
func effectRuling(o *Observation) Ruling {
	switch o.Finding {
	case OneEffect:
		return Holds
	case SeveralEffects:
		return Broken
	case NotTested:
		return Untested
	case Refused, Replayed, Kept, Free, Absent, Found, NotFound, Unknown:
	}
	return Undecided
}

// withoutKeys says what follows where keys do not protect.
func (d *declared) withoutKeys(o *Observation) string {
	if o.Finding == Refused && o.Conflict.Status == http.StatusConflict {
		return "the second request was refused, perhaps because of its key: a resend then brings no answer back. Declare a lookup beside the key."
	}
	if o.Finding != SeveralEffects {
		if o.Finding == Unknown && !slices.ContainsFunc(o.Exchanges, func(e Exchange) bool { return !e.lookup && e.tells() != made }) {
			return "whether a resend would do it twice is not known: nothing proves that these answers are about one effect."
		}
		return "whether a resend would do it twice is not known. Probe again when the destination answers."
	}
	return "the destination acted twice under one key: a resend would do it twice. " + d.instead()
}

// instead is what to declare where keys do not protect.
func (d *declared) instead() string {
	if d.LookupURL != "" {
		return "Declare protection: lookup, or none."
	}
	return "Declare protection: none, or lookup if the destination can be asked by a reference."
}

// window rules on how long a key holds. Its end is never seen.
func (d *declared) window(r *Report) Verdict {
	o := r.Of(AfterDelay)
	v := Verdict{Promise: PromiseWindow, Declared: "a key holds for " + Duration(d.Window).String(), Ruling: Untested, Seen: o.Words}
	within := time.Duration(o.Waited) < d.Window
	switch {
	case o.Finding == SeveralEffects && within:
		v.Ruling = Broken
		v.Means = fmt.Sprintf("a resend later than %v would do it twice. Declare the window that the provider documents, shorter than this.", o.Waited)
	case o.Finding == SeveralEffects, o.Finding == OneEffect && !within:
		v.Ruling = Holds
	case o.Finding == OneEffect:
		v.Seen += "; its end was not seen"
	case o.Finding == Unknown, o.Finding == Refused:
		v.Ruling, v.Means = Undecided, "whether the key still held is not known."
	case r.Of(SameKey).Finding == OneEffect:
		v.Seen = "not longer than between two requests: " + o.Words
	}
	return v
}

// promises reports whether the profile has a rule with this meaning that is more
// than an assumption.
func (d *declared) promises(m httpdest.Meaning) bool {
	return slices.ContainsFunc(d.profile.Answers, func(a httpdest.Answer) bool {
		return a.Means == m && slices.Contains([]httpdest.Confidence{httpdest.Tested, httpdest.Documented, httpdest.Quoted}, a.Confidence)
	})
}

// profileVerdicts rule on how the profile says that answers are read.
func (d *declared) profileVerdicts(r *Report) (all []Verdict) {
	id := d.profile.ID()
	if d.promises(httpdest.MeansMismatch) {
		o := r.Of(ChangedBody)
		v := Verdict{Promise: PromiseMismatch, Declared: id + " knows how another body under a used key is refused", Seen: o.Words, Ruling: Undecided}
		switch {
		case o.Finding == NotTested:
			v.Ruling = Untested
		case o.Finding == Refused && o.Conflict.Read == httpdest.MeansMismatch:
			v.Ruling = Holds
		case o.Finding != Unknown:
			v.Ruling, v.Means = Broken, changedMeans(&o)
		}
		all = append(all, v)
	}
	if d.promises(httpdest.MeansRunning) {
		o := r.Of(AtOnce)
		v := Verdict{Promise: PromiseRunning, Declared: id + " knows how a key in use is answered", Seen: o.Words, Ruling: Untested}
		switch {
		case o.Conflict == nil:
			v.Seen = "no request met another one under way"
		case o.Conflict.Read == httpdest.MeansRunning:
			v.Ruling = Holds
		default:
			v.Ruling, v.Means = Broken, runningMeans(o.Conflict)
		}
		all = append(all, v)
	}
	if o := r.Of(AfterError); o.Conflict != nil && d.promises(o.Conflict.Read) {
		all = append(all, d.errorVerdict(&o))
	}
	if m := d.profile.ReplayMarker; m.Header != "" {
		o := r.Of(SameKey)
		v := Verdict{Promise: PromiseMarker, Declared: fmt.Sprintf("%s: %s marks an answer from memory", m.Header, m.Is), Ruling: Untested, Seen: o.Words}
		switch {
		case o.Marker != nil && o.Marker.Header == m.Header:
			v.Ruling = Holds
		case o.Finding == OneEffect:
			v.Ruling, v.Means = Broken, "a replay is not told from a first answer on screens; nothing is decided by it."
		case o.Finding == Unknown:
			v.Ruling = Undecided
		}
		all = append(all, v)
	}
	if f := d.profile.Reference; f.At != "" && f.Confidence != httpdest.Assumed && f.Confidence != httpdest.Uncertain && d.answer.tells() == made {
		v := Verdict{Promise: PromiseName, Declared: "an answer names its effect at " + f.At, Ruling: Holds, Seen: "it names " + d.answer.Reference}
		if scalarAt(d.answer.whole, f.At) == "" {
			v.Ruling, v.Seen, v.Means = Broken, "there is nothing at "+f.At, "no reference goes on record, so late evidence and reports cannot be matched by it."
		}
		if v.Ruling == Holds && d.recurs {
			v.Ruling, v.Means = Undecided, "one name may be that of several effects."
		}
		all = append(all, v)
	}
	return all
}

// errorVerdict rules on what an error leaves under its key.
func (d *declared) errorVerdict(o *Observation) Verdict {
	v := Verdict{
		Promise: PromiseError, Seen: o.Words, Ruling: Undecided,
		Declared: fmt.Sprintf("%s reads %s as %s", d.profile.ID(), o.Conflict, o.Conflict.Read),
	}
	kept := o.Conflict.Read == httpdest.MeansRetained
	switch {
	case o.Finding == Kept && kept, o.Finding == Free && !kept:
		v.Ruling = Holds
	case o.Finding == Kept && o.Conflict.Read == httpdest.MeansRefused, o.Finding == Free:
		v.Ruling, v.Means = Broken, errorMeans(o)
	case o.Finding == NotTested:
		v.Ruling = Untested
	}
	return v
}

func changedMeans(o *Observation) string {
	switch {
	case o.Finding == SeveralEffects:
		return "another body under a used key is done as well. Semel refuses it before it is sent; whoever else sends under this key does not."
	case o.Finding == Replayed:
		return "the body is not compared: whoever reuses a key is told of success for something else. Semel refuses a changed request before it is sent, but a key that another program used meets no objection."
	case o.Conflict != nil && o.Conflict.Read == httpdest.MeansRefused:
		return "this answer is read as \"nothing happened\", although the key's first request may have happened. Add a rule that reads it as mismatch."
	}
	return "this answer raises no incident: the operation stays unknown. Add a rule that reads it as mismatch."
}

func runningMeans(c *Conflict) string {
	if c.Read == httpdest.MeansRefused || c.Read == httpdest.MeansRetained {
		return "\"a request with this key is running\" is read as \"nothing happened\". Add a rule that reads it as running."
	}
	return "it stays unknown and is sent again later, which is safe; a rule that reads it as running says why."
}

func errorMeans(o *Observation) string {
	if o.Finding == Kept {
		return "a retry under this key gets this error for ever. Add a rule that reads it as retained: the next attempt then gets a new key."
	}
	return "the key is free after this error, and a retry would needlessly get a new one. Add a rule that reads it as refused."
}
