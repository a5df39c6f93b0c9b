package httpdest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-dev/semel"
)

const (
	// maxAnswer is how much of an answer is read, and answerTime for how long.
	maxAnswer  = 16 << 20
	answerTime = 10 * time.Second
	// maxReference is the longest reference kept, in bytes.
	maxReference = 255
	// maxCheckAfter caps what a destination may ask for.
	maxCheckAfter = time.Hour
)

// answer is what came back, as far as it was read.
type answer struct {
	header http.Header
	result semel.Result
	whole  bool // read to its end
}

// readAnswer reads the answer, within bounds: what it holds never decides
// whether the effect happened, its status does.
func readAnswer(resp *http.Response) answer {
	a := answer{header: resp.Header, result: semel.Result{Status: resp.StatusCode, MediaType: plain(resp.Header.Get("Content-Type"))}}
	digest, size := sha256.New(), int64(0)
	buffer := make([]byte, 32<<10)
	for size < maxAnswer {
		n, err := resp.Body.Read(buffer)
		size += int64(n)
		digest.Write(buffer[:n])
		if room := semel.MaxResult - len(a.result.Body); room > 0 {
			a.result.Body = append(a.result.Body, buffer[:min(n, room)]...)
		}
		if err != nil {
			a.whole = err == io.EOF
			break
		}
	}
	switch {
	case !a.whole:
		a.result.Size = -1
	case size > int64(len(a.result.Body)):
		a.result.Size, a.result.SHA256 = size, hex.EncodeToString(digest.Sum(nil))
	}
	return a
}

// kept reports whether the body is at hand from beginning to end.
func (a *answer) kept() bool { return a.whole && !a.result.Truncated() }

// judge reads an answer by the profile.
func (p *Profile) judge(s *semel.Send, a answer) semel.Event {
	rule := p.match(a.result.Status, a.result.Body, a.kept())
	ev := semel.Event{Kind: semel.EvLost, Attempt: s.Attempt, Result: &a.result, Reason: a.words(p)}
	switch rule.meaning() {
	case MeansCompleted:
		ev.Kind = semel.EvConfirmed
		a.result.Reference = p.reference(&a.result, p.Reference.At)
	case MeansExists:
		p.judgeExisting(&ev, s, rule)
	case MeansAccepted:
		ev.Reason += "; it was accepted, which is not yet done"
		ev.CheckAfter = a.retryAfter()
	case MeansRefused:
		ev.Kind = semel.EvRefused
	case MeansRetained:
		ev.Kind = semel.EvRetained
	case MeansRunning:
		ev.Reason += "; a request with this key is still running"
		ev.CheckAfter = a.retryAfter()
	case MeansMismatch:
		ev.Incident = ev.Reason + "; the destination saw this key with another request, so the original may have happened"
	case MeansPartial:
		ev.Reason += "; only some of it may have happened"
		ev.Person = true
	case MeansUnknown:
		ev.CheckAfter = a.retryAfter()
		if a.result.Status >= 300 && a.result.Status < 400 {
			ev.Reason += "; redirects are not followed"
		}
	}
	if ev.Kind == semel.EvConfirmed {
		ev.Reference = a.result.Reference
	}
	return ev
}

// judgeExisting takes "it exists already" for a confirmation, if what exists
// is what was asked for.
func (p *Profile) judgeExisting(ev *semel.Event, s *semel.Send, rule *Answer) {
	path := rule.Reference
	if path == "" {
		path = p.Reference.At
	}
	v, _ := parse(ev.Result.Body)
	ev.Result.Reference = p.reference(ev.Result, path)
	if ev.Result.Reference == "" {
		ev.Reason += "; it says that something exists, but not what"
		ev.Person = true
		return
	}
	if other := p.contradicts(s.Operation.Request.Body, v, nil); other != "" {
		ev.Reason += "; what exists is not what was asked for: " + plain(other)
		ev.Person = true
		return
	}
	ev.Kind = semel.EvConfirmed
}

// words is the answer for people.
func (a *answer) words(p *Profile) string {
	text := fmt.Sprintf("the destination answered %d", a.result.Status)
	if s := http.StatusText(a.result.Status); s != "" {
		text += " " + s
	}
	if m := p.ReplayMarker; m.Header != "" && strings.EqualFold(a.header.Get(m.Header), m.Is) {
		text += " from its memory of this key"
	}
	if a.result.Status >= 300 && a.kept() {
		if v, ok := parse(a.result.Body); ok {
			for _, path := range []string{"error.message", "message", "detail", "title", "error"} {
				if said, ok := scalarAt(v, path); ok && said != "" {
					return plain(text + ": " + said)
				}
			}
		}
	}
	return text
}

// reference is the destination's identifier in an answer, empty where it names
// none that could be stored.
func (p *Profile) reference(r *semel.Result, path string) string {
	if path == "" || p.Reference.Confidence == Uncertain {
		return ""
	}
	ref, ok := "", false
	if v, parsed := parse(r.Body); parsed {
		ref, ok = scalarAt(v, path)
	} else {
		ref, ok = streamed(r.Body, path)
	}
	if !ok || len(ref) > maxReference || plain(ref) != ref || strings.ContainsRune(ref, utf8.RuneError) {
		return ""
	}
	return ref
}

// contradicts compares what was asked for with what was found, in the members
// that the profile names and in those given; it returns what differs in words,
// or nothing. A member that either side lacks contradicts nothing.
func (p *Profile) contradicts(asked []byte, found any, more []string) string {
	v, ok := parse(asked)
	if !ok {
		return ""
	}
	for _, field := range append(more, p.Compare.Fields...) {
		want, ok1 := scalarAt(v, field)
		got, ok2 := scalarAt(found, field)
		if ok1 && ok2 && !sameScalar(want, got) {
			return fmt.Sprintf("%s is %s, asked for was %s", field, got, want)
		}
	}
	return ""
}

// shares reports whether the object repeats a field of what was asked for.
func (p *Profile) shares(asked []byte, found any, more []string) bool {
	v, ok := parse(asked)
	if !ok {
		return false
	}
	return slices.ContainsFunc(slices.Concat(more, p.Compare.Fields), func(field string) bool {
		want, ok1 := scalarAt(v, field)
		got, ok2 := scalarAt(found, field)
		return ok1 && ok2 && sameScalar(want, got)
	})
}

// sameScalar compares as a careful person would: 100 is 100.00, EUR is eur.
func sameScalar(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	const long = 60 // more digits than any amount has
	if len(a) > long || len(b) > long || strings.ContainsAny(a+b, "eEpPxX_/") {
		return false
	}
	x, ok1 := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok1 && ok2 && x.Cmp(y) == 0
}

// retryAfter is when the destination asked to be asked again.
func (a *answer) retryAfter() time.Duration {
	value := strings.TrimSpace(a.header.Get("Retry-After"))
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxCheckAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	sent, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(sent), 0), maxCheckAfter)
}
