package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// How often the run is gone through again: so often that a map of two members
// comes in another order, and less where that takes its time.
const (
	fewResumes  = 8
	manyResumes = 64
	resumesTake = 200 * time.Millisecond
)

// repeat goes through the same run again, as after a crash, and finds steps
// that come in another order or ask for something else.
func (p *plan) repeat(first *recorder, effects []*effect) ([]Finding, error) {
	found := unstable{keys: map[string]string{}}
	began := time.Now()
	for n := range manyResumes {
		if n >= fewResumes && time.Since(began) > resumesTake {
			break
		}
		r, err := p.run(dry{resume: n + 1})
		if err != nil {
			return nil, err
		}
		if f, wrong := wrongContext(r); wrong {
			return []Finding{f}, nil
		}
		found.compare(first.steps, r.steps)
	}
	for _, e := range effects {
		if e.key.changing == "" {
			e.key.changing = found.keys[e.path]
		}
	}
	found.dated(p, first)
	return found.all, nil
}

// unstable collects what differs between two times that a run is gone through.
type unstable struct {
	all     []Finding
	ordered bool              // a difference in the steps was found
	keys    map[string]string // what is wrong with the key of a step
}

func (u *unstable) compare(was, is []requested) {
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(is):
			u.steps(was[i].path, "step "+plain(was[i].path)+" is not asked for again when the run is gone through a second time")
		case i >= len(was):
			u.steps(is[i].path, "step "+plain(is[i].path)+" is asked for only when the run is gone through a second time")
		case was[i].path != is[i].path:
			u.steps(was[i].path, fmt.Sprintf("step %s is asked for first, and step %s in its place when the run is gone through a second time", was[i].path, is[i].path))
		case semel.KindOf(was[i].step) != semel.KindOf(is[i].step):
			u.steps(was[i].path, fmt.Sprintf("step %s is of kind %s first, and then of kind %s", plain(was[i].path), semel.KindOf(was[i].step), semel.KindOf(is[i].step)))
		default:
			u.key(was[i], is[i])
			if problem := another(was[i].step, is[i].step); problem != "" {
				u.request(was[i].path, "step "+plain(was[i].path)+" "+problem+" when the run is gone through a second time")
			}
			continue
		}
		return // what follows is compared with something else
	}
}

// key notes a key that differs.
func (u *unstable) key(was, is requested) {
	a, ok := was.step.(*semel.DoStep)
	b, also := is.step.(*semel.DoStep)
	if ok && also && a.Call.Key != b.Call.Key {
		u.keys[plain(was.path)] = fmt.Sprintf("is %q and then %q when the run is gone through a second time", a.Call.Key, b.Call.Key)
	}
}

func (u *unstable) steps(path, problem string) {
	if u.ordered {
		return
	}
	u.ordered = true
	u.all = append(u.all, Finding{
		Code: workflowfile.CodeUnstableSteps, Severity: workflowfile.SeverityError, Step: plain(path), Message: problem + ": the run is held after a crash",
		Fix: "decide by inputs and answers alone, sort what comes from a map, and keep the time and chance with semel.Now and semel.Random",
	})
}

func (u *unstable) request(path, problem string) {
	if slices.ContainsFunc(u.all, func(f Finding) bool { return f.Step == plain(path) && f.Code == workflowfile.CodeUnstableRequest }) {
		return
	}
	u.all = append(u.all, Finding{
		Code: workflowfile.CodeUnstableRequest, Severity: workflowfile.SeverityError, Step: plain(path), Message: problem + ": the run is held after a crash",
		Fix: "make it of inputs and answers, and keep the time, chance and ids with semel.Now, semel.Random or semel.Compute",
	})
}

// another says in which way a step asks for something else at the same place.
// A key that differs is found as such.
func another(was, is semel.Step) string {
	const request = "sends another request"
	switch was := was.(type) {
	case *semel.DoStep:
		is := is.(*semel.DoStep)
		switch {
		case was.Call.Action != is.Call.Action:
			return "performs another action"
		case was.Call.Contract.Protection == semel.Commutes || was.Call.Key != is.Call.Key:
		case differ(was.Call.Request, is.Call.Request):
			return request
		}
	case *semel.ApprovalStep:
		if differ(was.Call.Request, is.(*semel.ApprovalStep).Call.Request) {
			return "asks about another request"
		}
	case *semel.EventStep:
		if is := is.(*semel.EventStep); was.Name != is.Name || was.Match != is.Match {
			return "waits for another event"
		}
	case *semel.ChildStep:
		a, errA := was.Run.Fingerprint()
		b, errB := is.(*semel.ChildStep).Run.Fingerprint()
		if is := is.(*semel.ChildStep); was.Run.Workflow != is.Run.Workflow || was.Run.Key != is.Run.Key || errA == nil && errB == nil && a != b {
			return "starts another run"
		}
	}
	return ""
}

// dated finds requests with the present day or time in them, which two dry runs
// within one second agree in.
func (u *unstable) dated(p *plan, first *recorder) {
	now, source := time.Now(), p.source()
	if slices.ContainsFunc(days(now), func(day string) bool { return strings.Contains(source, day) }) {
		return // the input's date may be written in another way
	}
	for _, s := range first.steps {
		do, ok := s.step.(*semel.DoStep)
		if !ok || do.Call.Contract.Protection == semel.Commutes || len(do.Call.Request.Volatile) > 0 {
			continue
		}
		r := do.Call.Request
		text := strings.Join(append([]string{r.URL, string(r.Body)}, r.Args...), " ")
		if k := (key{text: text, source: source}); k.dated(now) {
			u.request(s.path, "has today's date or the present time in its request, which neither the input nor an answer has, so it sends another one")
		}
	}
}
