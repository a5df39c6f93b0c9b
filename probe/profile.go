package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	httpdest "github.com/semel-dev/semel/destination/http"
)

// write is what was seen as a profile: what the probe saw as tested, and what it
// did not contradict as it was declared.
func (d *declared) write(r *Report, name string) string {
	w := &profileWriter{seen: fact{"semel probe of " + origin(r.URL), r.At.Format(time.DateOnly), httpdest.Tested}}
	w.line("# %s, as semel probe %s saw it on %s.", origin(r.URL), r.ID, r.At.Format(time.DateOnly))
	w.line("# A test endpoint says nothing certain about production.")
	w.line("name: %s", name)
	w.line("version: 1")
	w.line("title: %s", quoted(origin(r.URL)))
	d.writeKey(w, r)
	if m := r.Of(SameKey).Marker; m != nil {
		w.line("replay_marker: {header: %s, is: %s, %s}", quoted(m.Header), quoted(m.Is), w.seen)
	}
	switch f := d.profile.Reference; {
	case d.answer.Reference != "" && d.reference != "" && d.names:
		w.line("reference: {at: %s, %s}", quoted(d.reference), w.seen)
	case f.At != "" && f.At == d.reference && !d.recurs:
		w.line("reference: {at: %s, %s}", quoted(f.At), factOf(f.Fact))
	}
	if c := d.profile.Compare; len(c.Fields) > 0 {
		w.line("compare: {fields: %s, %s}", quotedList(c.Fields), factOf(c.Fact))
	}
	w.line("answers:")
	d.writeAnswers(w, r)
	return w.String()
}

// writeKey writes the key and its window where keys protect.
func (d *declared) writeKey(w *profileWriter, r *Report) {
	same, many, later := r.Of(SameKey), r.Of(AtOnce), r.Of(AfterDelay)
	for _, o := range []Observation{same, many} {
		if o.Finding == OneEffect || o.Question == AtOnce && o.Finding == NotTested {
			continue
		}
		w.line("# No key, since there was not certainly one effect under one: %s.", oneLine(o.Words))
		return
	}
	limit := ""
	if d.profile.Key.Max > 0 {
		limit = fmt.Sprintf("max_length: %d, ", d.profile.Key.Max)
	}
	w.line("key: {header: %s, quoted: %v, %s%s}", quoted(r.KeyHeader), d.KeyQuoted && !d.spare, limit, w.seen)
	held := time.Duration(later.Waited)
	switch {
	case later.Finding == SeveralEffects && d.Window > 0 && held >= d.Window:
		w.line("# Forgotten within %v.", Duration(held))
		w.line("window: {is: %s, %s}", Duration(d.Window), d.windowFact(w))
	case later.Finding == SeveralEffects:
		w.line("# No window: the key was forgotten within %v. Ask the provider, and add one that is shorter.", Duration(held))
	case d.Window > 0:
		w.line("# The end of the window was not seen%s.", heldWords(later))
		w.line("window: {is: %s, %s}", Duration(d.Window), d.windowFact(w))
	case later.Finding == OneEffect && held >= time.Second:
		w.line("# It held so long; its end was not seen. Put what the provider documents.")
		w.line("window: {is: %s, %s}", Duration(held.Truncate(time.Second)), w.seen)
	default:
		w.line("# No window: how long a key holds was not tried. Put what the provider documents.")
	}
}

func heldWords(o Observation) string {
	if o.Finding != OneEffect {
		return ""
	}
	return fmt.Sprintf("; the key held for at least %v", o.Waited)
}

// windowFact is where the declared window comes from.
func (d *declared) windowFact(w *profileWriter) fact {
	if f := d.profile.Window; time.Duration(f.Is) == d.Window {
		return factOf(f.Fact)
	}
	return fact{"declared by the connection or the command line, not seen", w.seen.checked, httpdest.Assumed}
}

// writeAnswers writes a rule for each answer that was seen to mean something
// else than the profile says, and then the profile's own.
func (d *declared) writeAnswers(w *profileWriter, r *Report) {
	type rule struct {
		conflict *Conflict
		means    httpdest.Meaning
	}
	var rules []rule
	if o := r.Of(SameKey); o.Finding == Refused && d.answer.tells() == made {
		rules = append(rules, rule{o.Conflict, httpdest.MeansUnknown}) // the same request, and perhaps because it had happened
	}
	if o := r.Of(ChangedBody); o.Finding == Refused {
		rules = append(rules, rule{o.Conflict, httpdest.MeansMismatch})
	}
	if o := r.Of(AtOnce); o.Conflict != nil && o.Finding == OneEffect {
		rules = append(rules, rule{o.Conflict, httpdest.MeansRunning})
	}
	if o := r.Of(AfterError); o.Finding == Kept {
		rules = append(rules, rule{o.Conflict, httpdest.MeansRetained})
	} else if o.Finding == Free {
		rules = append(rules, rule{o.Conflict, httpdest.MeansRefused})
	}
	for i, one := range rules {
		same := func(other rule) bool {
			return other.conflict.String() == one.conflict.String() && other.conflict.At == one.conflict.At
		}
		contradicted := slices.ContainsFunc(rules, func(other rule) bool { return same(other) && other.means != one.means })
		switch {
		case contradicted && slices.IndexFunc(rules, same) == i:
			w.line("  # Seen with different meanings: it does not tell.")
			w.rule([]int{one.conflict.Status}, where(one.conflict), httpdest.MeansUnknown, "", w.seen)
		case !contradicted && one.conflict.Read != one.means:
			w.rule([]int{one.conflict.Status}, where(one.conflict), one.means, "", w.seen)
		}
	}
	if d.answer.Status > 0 && d.answer.tells() == made && d.answer.Read == httpdest.MeansUnknown {
		w.line("  # %d was the answer to a request that worked: say what it means.", d.answer.Status)
	}
	for _, a := range d.profile.Answers {
		w.rule(a.Status, a.Where, a.Means, a.Reference, factOf(a.Fact))
	}
}

func where(c *Conflict) map[string][]string {
	if c.Code == "" {
		return nil
	}
	return map[string][]string{c.At: {c.Code}}
}

// profileWriter writes YAML; every text is quoted as in JSON, which YAML reads.
type profileWriter struct {
	strings.Builder
	seen fact
}

func (w *profileWriter) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *profileWriter) rule(status []int, where map[string][]string, means httpdest.Meaning, reference string, f fact) {
	var parts []string
	if len(status) > 0 {
		var all []string
		for _, s := range status {
			all = append(all, strconv.Itoa(s))
		}
		parts = append(parts, "status: ["+strings.Join(all, ", ")+"]")
	}
	if len(where) > 0 {
		var all []string
		for _, path := range slices.Sorted(maps.Keys(where)) {
			all = append(all, quoted(path)+": "+quotedList(where[path]))
		}
		parts = append(parts, "where: {"+strings.Join(all, ", ")+"}")
	}
	parts = append(parts, "means: "+string(means))
	if reference != "" {
		parts = append(parts, "reference: "+quoted(reference))
	}
	w.line("  - {%s, %s}", strings.Join(parts, ", "), f)
}

// fact is where a statement comes from.
type fact struct {
	source, checked string
	confidence      httpdest.Confidence
}

func factOf(f httpdest.Fact) fact { return fact{f.Source, f.Checked, f.Confidence} }

func (f fact) String() string {
	return fmt.Sprintf("source: %s, checked: %s, confidence: %s", quoted(f.source), f.checked, f.confidence)
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

func quotedList(all []string) string {
	parts := make([]string, len(all))
	for i, s := range all {
		parts[i] = quoted(s)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// oneLine is text for a comment.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }), " ")
}
