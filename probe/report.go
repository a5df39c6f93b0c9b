package probe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// Report is what a probe found.
type Report struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	URL    string    `json:"url"`
	// Against names the profile that the observations were held against.
	Against string `json:"against"`
	// KeyHeader carried the keys.
	KeyHeader string `json:"key_header"`
	// Observations are in the order of Questions.
	Observations []Observation `json:"observations"`
	// Verdicts say which declared promise holds.
	Verdicts []Verdict `json:"verdicts"`
	// Differences are between what is declared and what was seen.
	Differences []Difference `json:"differences"`
	Effects     Effects      `json:"effects"`
	// Profile is what was seen, as YAML that httpdest.ParseProfile reads.
	Profile string `json:"profile"`
}

// Effects counts what the probe did to the destination, by its answers.
type Effects struct {
	// Requests are those that may have had an effect.
	Requests int `json:"requests"`
	// AtLeast and AtMost bound the effects, by the destination's own word.
	AtLeast int `json:"at_least"`
	AtMost  int `json:"at_most"`
}

// Of is what was seen of a question.
func (r *Report) Of(q Question) Observation {
	i := slices.IndexFunc(r.Observations, func(o Observation) bool { return o.Question == q })
	if i < 0 {
		return Observation{Question: q, Finding: NotTested}
	}
	return r.Observations[i]
}

// Holds is the least favourable of the verdicts: a promise that does not hold,
// else one that is unknown, else one that holds. It is Untested where there are
// promises and none could be tested, and Holds where nothing is promised.
func (r *Report) Holds() Ruling {
	worst := Holds
	if len(r.Verdicts) > 0 {
		worst = Untested
	}
	for _, v := range r.Verdicts {
		switch {
		case v.Ruling == Broken:
			return Broken
		case v.Ruling == Undecided:
			worst = Undecided
		case v.Ruling == Holds && worst == Untested:
			worst = Holds
		}
	}
	return worst
}

// report puts together what was seen.
func (r *run) report(began time.Time) Report {
	slices.SortStableFunc(r.seen, func(a, b Observation) int {
		return cmp.Compare(slices.Index(Questions(), a.Question), slices.Index(Questions(), b.Question))
	})
	for i := range r.seen {
		r.hideIn(&r.seen[i])
	}
	r.hideInExchange(&r.answer)
	r.weigh()
	d := declared{
		Contract: r.target.Contract, profile: r.target.Destination.Profile(), spare: r.spare != "", reference: r.target.Reference, answer: r.answer,
		names: r.noNames == "", recurs: r.recurs,
	}
	report := Report{
		ID: r.options.ID, At: began, Method: r.target.Request.Method, URL: r.hide(r.target.Request.URL), Against: d.profile.ID(),
		KeyHeader: r.keyHeader(), Observations: r.seen, Effects: r.effects(), Differences: []Difference{}, Verdicts: []Verdict{},
	}
	report.Verdicts = append(report.Verdicts, d.verdicts(&report)...)
	report.Differences = append(report.Differences, d.differences(&report)...)
	report.Profile = d.write(&report, r.options.Name)
	return report
}

// effects bounds the effects by what the answers say. A request that was refused
// had none, and an effect that is named twice is one, where names tell effects
// apart.
func (r *run) effects() Effects {
	n := Effects{Requests: r.sent}
	named := map[string]bool{}
	for _, o := range r.seen {
		unnamed := false
		for i := range o.Exchanges {
			e := &o.Exchanges[i]
			if e.lookup || e.Unsent {
				continue
			}
			remembered := e.Marked != "" && r.noMarker == "" && (!e.learnt || r.noNames == "")
			switch told := e.tells(); {
			case told == refused, told == silent && remembered:
			case told == silent:
				n.AtMost++
			case e.Reference != "" && named[e.Reference]:
				if r.noNames != "" && !remembered {
					n.AtMost++
				}
			case e.Reference == "" && remembered:
			case e.Read == httpdest.MeansAccepted: // it may still fail
				n.AtMost++
			case e.Reference != "" && r.noNames != "" && o.Question.use() != o.Question: // under the first key
				if !remembered {
					n.AtMost++
				}
			case e.Reference != "":
				named[e.Reference] = true
				n.AtLeast++
				n.AtMost++
			default:
				n.AtMost++
				if !unnamed && o.Question != Spelling && o.Question != ChangedBody && o.Question != AfterDelay {
					n.AtLeast++ // at least the first of an intention
				}
				unnamed = true
			}
		}
	}
	if o := r.found(Visibility); n.AtLeast == 0 && o.Finding == Found {
		n.AtLeast = 1
	}
	return n
}

// origin is where a URL leads, without what may identify somebody.
func origin(url string) string {
	before, _, _ := strings.Cut(url, "?")
	return before
}

// protectionOf is a protection with its window, in words.
func protectionOf(c *semel.Contract) string {
	if c.Protection == semel.Keyed {
		return "keyed for " + Duration(c.Window).String()
	}
	return string(c.Protection)
}
