package probe

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// lookupVerdicts rule on what is declared of the lookup.
func (d *declared) lookupVerdicts(r *Report) (all []Verdict) {
	if d.LookupURL == "" {
		return nil
	}
	seen, absent := r.Of(Visibility), r.Of(Absence)
	found := Verdict{Promise: PromiseLookup, Declared: "a lookup finds an effect", Ruling: Undecided, Seen: seen.Words}
	switch seen.Finding {
	case Found:
		found.Ruling = Holds
	case NotTested:
		found.Ruling = Untested
	case NotFound:
		found.Ruling, found.Means = Broken, "an unknown outcome would not be settled by looking, and waits for a person. Mend the lookup, or declare protection: none."
	case OneEffect, SeveralEffects, Refused, Replayed, Kept, Free, Absent, Unknown:
		found.Means = "whether the lookup works is not known."
	}
	all = append(all, found)
	if d.VisibleAfter > 0 || d.AbsenceIsProof {
		v := Verdict{Promise: PromiseVisible, Declared: "an effect is visible after " + Duration(d.VisibleAfter).String(), Ruling: found.Ruling, Seen: seen.Words}
		if time.Duration(seen.MissedAt) > d.VisibleAfter && (seen.Finding == Found || seen.Finding == NotFound) {
			v.Ruling = Broken
			v.Means = "\"not found\" would be believed too early, and the effect made a second time. " + longer(&seen)
		}
		all = append(all, v)
	}
	none := Verdict{Promise: PromiseAbsence, Declared: "a lookup tells when there is nothing", Ruling: Undecided, Seen: absent.Words}
	switch absent.Finding {
	case Absent:
		none.Ruling = Holds
	case Found:
		none.Ruling, none.Means = Broken, "an effect that never happened would be put on record as completed. Mend the lookup, or declare protection: none."
	case NotTested:
		none.Ruling = Untested
	case OneEffect, SeveralEffects, Refused, Replayed, Kept, Free, NotFound, Unknown:
		none.Means = "\"not found\" is never evidence, so what did not happen waits for a person."
		if d.AbsenceIsProof && len(absent.Exchanges) > 0 && absent.Exchanges[0].Status > 0 {
			none.Ruling = Broken
		}
	}
	all = append(all, none)
	if d.MaxProcessing > 0 {
		all = append(all, Verdict{
			Promise: PromiseTime, Declared: "a request runs for at most " + Duration(d.MaxProcessing).String(), Ruling: Untested,
			Seen: "the longest time is not to be seen in a few requests",
		})
	}
	return all
}

// longer is the visibility delay to declare after what was measured.
func longer(o *Observation) string {
	if o.Finding == NotFound {
		return "It was never found: mend the lookup."
	}
	return fmt.Sprintf("Declare visible_after: %v or longer; one measurement is no upper bound.", generous(time.Duration(o.FoundAfter)))
}

// generous is three times what was measured, in whole seconds.
func generous(d time.Duration) time.Duration {
	return max((3*d + time.Second - 1).Truncate(time.Second), time.Second)
}

// differences lists every way in which the destination is not as declared, those
// in which a promise does not hold first. It is pure.
func (d *declared) differences(r *Report) []Difference {
	var all []Difference
	for _, v := range r.Verdicts {
		if v.Ruling == Broken {
			all = append(all, Difference{string(v.Promise), v.Declared, v.Seen, v.Means})
		}
	}
	add := func(q Question, declared string, means string) {
		all = append(all, Difference{string(q), declared, r.Of(q).Words, means})
	}
	same, many, spell, changed := r.Of(SameKey), r.Of(AtOnce), r.Of(Spelling), r.Of(ChangedBody)
	if d.Protection != semel.Keyed && same.Finding == OneEffect {
		add(SameKey, protectionOf(&d.Contract), fmt.Sprintf("keys protect here: with key_header: %s and the window that the provider documents, Semel may send again by itself.", r.KeyHeader))
	}
	if d.Protection != semel.Keyed && !d.spare && same.Finding == SeveralEffects {
		add(SameKey, "the key goes in "+d.KeyHeader, "the header does not protect: leave out key_header, so that nobody relies on it.")
	}
	if same.Finding == Refused && d.answer.tells() == made {
		add(SameKey, protectionOf(&d.Contract), "there is no second effect, but a resend brings no answer back: an unknown stays unknown until a lookup or a person settles it.")
	}
	if spell.Finding == SeveralEffects {
		add(Spelling, "one spelling of the key", "the bare and the quoted key are two keys: do not change key_quoted while outcomes are unknown.")
	}
	again := changed.Finding == Refused && same.Finding == Refused && *changed.Conflict == *same.Conflict // whatever the body
	if !again && !d.promises(httpdest.MeansMismatch) && (changed.Finding == Replayed || changed.Finding == SeveralEffects || changed.Finding == Refused && changed.Conflict.Read != httpdest.MeansMismatch) {
		add(ChangedBody, "nothing", changedMeans(&changed))
	}
	if !d.promises(httpdest.MeansRunning) && many.Conflict != nil && many.Conflict.Read != httpdest.MeansRunning {
		add(AtOnce, "nothing", runningMeans(many.Conflict))
	}
	if o := r.Of(AfterError); o.Conflict != nil && !d.promises(o.Conflict.Read) {
		if v := d.errorVerdict(&o); v.Ruling == Broken {
			add(AfterError, v.Declared+" (assumed)", v.Means)
		}
	}
	if m := same.Marker; m != nil && d.profile.ReplayMarker.Header == "" {
		add(SameKey, "no replay marker", fmt.Sprintf("%s: %s marks an answer from memory; a profile can say so, and screens then do.", m.Header, m.Is))
	}
	if f := d.profile.Reference; f.At != "" && f.Confidence == httpdest.Assumed && d.answer.tells() == made && d.answer.Reference == "" {
		all = append(all, Difference{"reference", "an answer names its effect at " + d.reference + " (assumed)", "there is nothing at " + d.reference, "no reference goes on record. Say in a profile where the answers name the effect."})
	}
	return append(all, d.otherDifferences(r)...)
}

// otherDifferences are those of requests without a key and of lookups.
func (d *declared) otherDifferences(r *Report) (all []Difference) {
	add := func(q Question, declared string, means string) {
		all = append(all, Difference{string(q), declared, r.Of(q).Words, means})
	}
	switch r.Of(WithoutKey).Finding {
	case Refused:
		if d.spare {
			add(WithoutKey, "no key header", "requests need a key: declare key_header.")
		}
	case OneEffect:
		add(WithoutKey, "nothing", "the destination tells a repetition by the request itself: two that are both meant, and look the same, are one.")
	case SeveralEffects, Replayed, Kept, Free, Absent, Found, NotFound, Unknown, NotTested:
	}
	seen := r.Of(Visibility)
	if d.LookupURL != "" && d.VisibleAfter == 0 && !d.AbsenceIsProof && seen.Finding == Found {
		add(Visibility, "no visible_after", "\"not found\" proves nothing yet. "+longer(&seen))
	}
	if r.Of(Absence).Finding == Unknown && !d.AbsenceIsProof {
		add(Absence, "nothing", "\"not found\" is never evidence: what did not happen waits for a person.")
	}
	return all
}
