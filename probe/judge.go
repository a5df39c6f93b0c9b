package probe

import (
	"fmt"
	"slices"
	"strings"
)

// judgeSame reads two answers to one request under one key, or without any.
func judgeSame(o *Observation) (p proof) {
	a, b := &o.Exchanges[0], &o.Exchanges[1]
	switch {
	case a.tells() == made && b.tells() == made:
		o.Finding, o.Words, p = compared(a, b)
	case a.tells() == made && b.tells() == refused:
		o.Finding, o.Conflict = Refused, conflict(b)
		o.Words = fmt.Sprintf("the first had an effect, the second was refused with %s", o.Conflict)
	case a.tells() == silent && b.tells() == made && b.Marked != "":
		o.Finding, o.Words = OneEffect, "the first was not answered clearly, and the second brought its answer from memory"
		p.marker = true
	case a.tells() == refused && b.tells() == refused && b.Marked != "":
		o.Finding, o.Conflict = Refused, conflict(b)
		o.Words = fmt.Sprintf("both were refused with %s, the second from memory: the key keeps this error", o.Conflict)
	case a.tells() == refused && b.tells() == refused:
		o.Finding, o.Conflict = Refused, conflict(b)
		o.Words = fmt.Sprintf("both were refused with %s", o.Conflict)
	case a.tells() == silent && b.tells() == silent && b.Marked != "":
		o.Finding, o.Words = Unknown, fmt.Sprintf("the second was answered %d from memory: the key keeps an answer that does not tell, so sending again never settles it", b.Status)
	default:
		o.Finding, o.Words = Unknown, "first: "+a.Says+"; second: "+b.Says
	}
	o.Marker = markerOf(b)
	return p
}

// judgeAgain reads the answer to one more request under the key of another that
// had an effect.
func judgeAgain(o *Observation, answer *Exchange) (p proof) {
	e := &o.Exchanges[0]
	switch e.tells() {
	case made:
		o.Finding, o.Words, p = compared(answer, e)
	case refused:
		o.Finding, o.Conflict = Refused, conflict(e)
		o.Words = "it was refused with " + o.Conflict.String()
	case silent:
		o.Finding, o.Words = Unknown, e.Says
	}
	o.Marker = markerOf(e)
	if o.Question == ChangedBody && o.Finding == OneEffect {
		o.Finding, o.Words = Replayed, "the old answer came back, to another request: "+o.Words
	}
	return p
}

// compared tells one effect from two by what two answers of success say.
func compared(a, b *Exchange) (Finding, string, proof) {
	partly := ""
	remembered := b.Marked != "" && !b.learnt
	if a.Status == 207 || b.Status == 207 {
		partly = "; an answer is partly successful"
	}
	switch {
	case a.Reference != "" && b.Reference != "" && a.Reference != b.Reference:
		return SeveralEffects, fmt.Sprintf("the answers name %s and %s%s", a.Reference, b.Reference, partly), proof{names: true}
	case a.Reference != "" && a.Reference == b.Reference:
		return OneEffect, "the answers name " + a.Reference + marked(b) + partly, proof{names: true, marker: remembered}
	case b.Marked != "":
		return OneEffect, "the answer came from memory, as " + b.Marked + " says" + partly, proof{marker: remembered}
	case a.cut || b.cut:
		return Unknown, "an answer was cut off before it named an effect" + partly, proof{}
	}
	return Unknown, "the answers name no effect that tells them apart: " + instead + partly, proof{}
}

func marked(e *Exchange) string {
	if e.Marked == "" {
		return ", and no header marks a replay"
	}
	return ", from memory (" + e.Marked + ")"
}

// judgeAtOnce reads the answers to requests with one key that began together.
func judgeAtOnce(o *Observation) (p proof) {
	var references []string
	done, unnamed, fresh, lost, certain, cut := 0, 0, 0, 0, 0, false
	for i := range o.Exchanges {
		e := &o.Exchanges[i]
		switch e.tells() {
		case made:
			done++
			if e.Reference == "" {
				unnamed++
				cut = cut || e.cut
			} else if !slices.Contains(references, e.Reference) {
				references = append(references, e.Reference)
			}
			if e.Marked == "" {
				fresh++
			} else {
				o.Marker = markerOf(e)
				if !e.learnt {
					certain++
				}
			}
		case refused:
			o.Conflict = conflict(e)
		case silent:
			lost++
		}
	}
	answered := fmt.Sprintf("%d of %d were answered with success", done, len(o.Exchanges))
	if o.Conflict != nil {
		answered += ", the others refused with " + o.Conflict.String()
	}
	switch {
	case len(references) > 1:
		o.Finding, o.Words = SeveralEffects, answered+"; the answers name "+strings.Join(references, ", ")
		p.names = true
	case lost > 0:
		o.Finding, o.Words = Unknown, fmt.Sprintf("%s; %d not clearly", answered, lost)
	case done == 0:
		o.Finding, o.Words = Unknown, answered
	case unnamed > 0 && fresh > 1 && cut:
		o.Finding, o.Words = Unknown, answered+", and an answer was cut off before it named an effect"
	case unnamed > 0 && fresh > 1:
		o.Finding, o.Words = Unknown, answered+", and name no effect"
	case len(references) == 1:
		o.Finding, o.Words = OneEffect, answered+"; they name "+references[0]
	default:
		o.Finding, o.Words = OneEffect, answered
	}
	if o.Finding == OneEffect {
		p = proof{names: unnamed == 0, marker: certain > 0 && done-certain <= 1, other: done == 1}
	}
	return p
}

// judgeError reads what a good request gets under a key that had an error.
func judgeError(o *Observation) {
	bad, good := &o.Exchanges[0], &o.Exchanges[1]
	o.Conflict = conflict(bad)
	switch good.tells() {
	case made:
		o.Finding, o.Words = Free, fmt.Sprintf("after %s the key was free: a good request under it had an effect", o.Conflict)
	case refused:
		o.Finding = Kept
		o.Words = fmt.Sprintf("after %s a good request under the key was refused with %s", o.Conflict, conflict(good))
		if good.Status == bad.Status && good.whole == bad.whole {
			o.Words = fmt.Sprintf("the key keeps %s: a good request under it got the same answer", o.Conflict)
		}
	case silent:
		o.Finding, o.Words = Unknown, fmt.Sprintf("after %s: %s", o.Conflict, good.Says)
	}
	o.Marker = markerOf(good)
}

// judgeListed adds how many effects a lookup lists. Where it lists more than
// one, no answer says otherwise. That it lists one says nothing of a request
// which may still be running. It reports whether the finding rests on the list.
func judgeListed(o *Observation, n int) bool {
	running := slices.ContainsFunc(o.Exchanges, func(e Exchange) bool { return !e.lookup && e.tells() == silent })
	switch {
	case n > 1:
		o.Finding, o.Words = SeveralEffects, fmt.Sprintf("%s; a lookup lists %d", o.Words, n)
	case n == 1 && o.Finding == Unknown && !running:
		o.Finding, o.Words = OneEffect, o.Words+"; a lookup lists one"
	case n == 1:
		o.Words += "; a lookup lists one"
		return !running
	default:
		o.Words += "; a lookup lists none"
		return false
	}
	return true
}

// conflict is an answer that refuses.
func conflict(e *Exchange) *Conflict {
	c := &Conflict{Status: e.Status, Read: e.Read}
	for _, path := range []string{"error.code", "error.type", "code", "type", "title", "error"} {
		if code := scalarAt(e.whole, path); code != "" {
			c.At, c.Code = path, code
			break
		}
	}
	return c
}

// String is the status with the code.
func (c *Conflict) String() string {
	if c.Code == "" {
		return fmt.Sprint(c.Status)
	}
	return fmt.Sprintf("%d %s", c.Status, c.Code)
}
