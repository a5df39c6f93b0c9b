package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// proof is what a finding about the number of effects rests on.
type proof struct {
	names  bool // the names in the answers
	marker bool // a header that marks an answer from memory
	other  bool // a lookup that lists, or only one answer of success
}

func (r *run) prove(o *Observation, p proof) { r.proof[o.Question] = p }

var byList = proof{other: true}

// weigh takes back every finding that rests on what does not tell effects apart.
// It can only be done at the end: that takes an effect under another key.
func (r *run) weigh() {
	echo := r.echoed()
	r.noNames, r.noMarker = echo, r.marksAlways()
	if r.noNames == "" {
		r.noNames = r.recurring()
	}
	r.recurs = r.noNames != "" && echo == ""
	if r.noNames == "" {
		r.noNames = r.notCrossed()
	}
	for i := range r.seen {
		o := &r.seen[i]
		p := r.proof[o.Question]
		switch {
		case o.Finding == OneEffect || o.Finding == Replayed:
			if p.other || p.names && r.noNames == "" || p.marker && r.noMarker == "" {
				break
			}
			why := r.noNames
			if !p.names {
				why = r.noMarker
			}
			o.Finding, o.Words = Unknown, o.Words+"; "+why
		case o.Finding == SeveralEffects && p.names && echo != "" && (o.Question == Spelling || o.Question == ChangedBody):
			o.Finding, o.Words = Unknown, o.Words+"; "+echo // what was sent differed as well
		case o.Finding == Free && r.namesFirst(o):
			o.Finding, o.Words = Unknown, o.Words+"; "+r.noNames
		}
		for _, e := range o.Exchanges {
			if e.learnt && r.noNames != "" {
				o.Marker = nil // it was learnt from names
			}
		}
	}
}

// namesFirst reports whether an answer of a question names the effect of the first.
func (r *run) namesFirst(o *Observation) bool {
	for i := range o.Exchanges {
		if e := &o.Exchanges[i]; named(e) && e.Reference == r.answer.Reference {
			return true
		}
	}
	return false
}

func named(e *Exchange) bool { return !e.lookup && e.tells() == made && e.Reference != "" }

const instead = "say where the answers name their effect, or give a lookup that lists what it finds"

// echoed says which name is only what the request said; empty for none.
func (r *run) echoed() string {
	for _, o := range r.seen {
		for i := range o.Exchanges {
			e := &o.Exchanges[i]
			if !named(e) {
				continue
			}
			if what := r.repeats(e); what != "" {
				return fmt.Sprintf("%s repeats %s, so it does not tell effects apart: %s", e.Reference, what, instead)
			}
		}
	}
	return ""
}

// shortest is how much of a name must agree with what was sent to be no chance,
// in letters and digits.
const shortest = 6

// repeats says what of a request the name in its answer repeats.
func (r *run) repeats(e *Exchange) string {
	name, mark := letters(e.Reference), "semel-probe-"+r.options.ID
	within := func(sent string) bool {
		sent = letters(sent)
		return sent == name || len(sent) >= shortest && strings.Contains(name, sent)
	}
	said := func(text string) bool {
		if text == "" || name == "" {
			return false
		}
		part := len(name) >= shortest && strings.HasPrefix(text, mark) && strings.Contains(strings.TrimRight(letters(text), "0"), name)
		return part || within(text) || len(text) >= shortest && slices.ContainsFunc(encodings(text), within)
	}
	_, key, _ := strings.Cut(e.Key, ": ")
	switch key = strings.Trim(key, `"`); {
	case said(key), said(strings.TrimRight(key, "0-")):
		return "the key that was sent"
	case slices.ContainsFunc(append(scalars(e.Body), e.Body), said):
		return "what was sent in the body"
	case within(mark):
		return "the label of the probe"
	}
	return ""
}

// letters are the letters and digits of a text, in lower case.
func letters(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80 {
			return c
		}
		return -1
	}, strings.ToLower(s))
}

// scalars are the texts and numbers in a JSON body.
func scalars(body string) (all []string) {
	dec := json.NewDecoder(bytes.NewReader([]byte(body)))
	dec.UseNumber()
	var root any
	if dec.Decode(&root) != nil {
		return nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		case string:
			if v != "" {
				all = append(all, v)
			}
		case json.Number:
			all = append(all, v.String())
		}
	}
	walk(root)
	return all
}

// use is what a question used its requests under: the first key, or one of its
// own.
func (q Question) use() Question {
	if q == Spelling || q == ChangedBody || q == AfterDelay {
		return SameKey
	}
	return q
}

// recurring says which name came back where another effect should have one;
// empty for none.
func (r *run) recurring() string {
	by := map[string]Question{}
	for _, o := range r.seen {
		for i := range o.Exchanges {
			e := &o.Exchanges[i]
			if !named(e) {
				continue
			}
			if q, known := by[e.Reference]; known && q != o.Question.use() {
				where := "under another key"
				if o.Question == WithoutKey {
					where = "without a key"
				}
				return fmt.Sprintf("%s an answer names %s again: either not only the key tells a repetition, or names do not tell effects apart: give a label, or %s", where, e.Reference, instead)
			}
			by[e.Reference] = o.Question.use()
		}
	}
	if o := r.found(WithoutKey); o.Finding == OneEffect && r.proof[WithoutKey].names {
		return fmt.Sprintf("two requests without a key get one name, %s: either not only the key tells a repetition, or names do not tell effects apart: %s", o.Exchanges[0].Reference, instead)
	}
	return ""
}

// notCrossed says why it is not certain that two effects get two names; empty
// where they were seen to.
func (r *run) notCrossed() string {
	tried := false
	for _, o := range r.seen {
		if o.Question.use() == SameKey {
			continue
		}
		for i := range o.Exchanges {
			e := &o.Exchanges[i]
			if named(e) && e.Reference != r.answer.Reference {
				return ""
			}
			tried = tried || !e.lookup && !e.Unsent
		}
	}
	if tried {
		return "not certain: under another key no answer named another effect"
	}
	return "not certain: under another key nothing was tried"
}

// marksAlways says that the marker of a replay is on first answers as well;
// empty where it is not.
func (r *run) marksAlways() string {
	const why = "the marker is on the answer to a first request as well, so it marks nothing"
	for _, o := range r.seen {
		all := o.Question == AtOnce && len(o.Exchanges) > 0
		for i := range o.Exchanges {
			e := &o.Exchanges[i]
			if e.lookup {
				continue
			}
			marked := e.Marked != "" && !e.learnt
			if e.fresh && e.tells() == made && marked {
				return why
			}
			all = all && (e.tells() == refused || e.tells() == made && marked)
		}
		if all {
			for i := range o.Exchanges {
				if o.Exchanges[i].tells() == made {
					return why
				}
			}
		}
	}
	return ""
}
