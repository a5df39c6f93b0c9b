package probe

// Plan is what a probe would send, at most.
type Plan struct {
	ID     string `json:"id"`
	Method string `json:"method"`
	URL    string `json:"url"`
	// Body is that of the first request, Key its key, and Header the key's.
	Body   string `json:"body"`
	Header string `json:"header"`
	Key    string `json:"key"`
	// Effects is the most requests that may have an effect: never more than
	// Options.MaxEffects.
	Effects int `json:"effects"`
	// Steps are the questions that will be asked, if the answers before them
	// leave them open.
	Steps []Step `json:"steps"`
}

// Step is one question of a plan.
type Step struct {
	Question Question `json:"question"`
	Requests int      `json:"requests"`
	// Skipped says why it will not be asked; empty if it will.
	Skipped string `json:"skipped,omitempty"`
}

// Plan is what would be sent. A question that comes too late for MaxEffects is
// skipped.
func (p *Probe) Plan() Plan {
	first := p.request(p.label(subjectFirst))
	plan := Plan{
		ID: p.options.ID, Method: first.Method, URL: p.hide(first.URL), Body: p.hide(string(first.Body)),
		Header: p.keyHeader(), Key: p.key(subjectFirst),
	}
	for _, q := range Questions() {
		s := Step{Question: q, Requests: q.cost(), Skipped: p.skip(q)}
		if s.Skipped == "" && plan.Effects+s.Requests > p.options.MaxEffects {
			s.Skipped = tooMany(s.Requests)
		}
		if s.Skipped == "" {
			plan.Effects += s.Requests
		} else if q == SameKey {
			plan.Effects++ // its first request is the probe's first, and always sent
		}
		plan.Steps = append(plan.Steps, s)
	}
	return plan
}

// skip says why a question cannot be asked of this target; empty if it can.
func (p *Probe) skip(q Question) string {
	switch q {
	case Absence, Visibility:
		if p.target.Contract.LookupURL == "" {
			return "no lookup is declared"
		}
		if !p.specific() {
			return "the lookup does not tell one request of the probe from another: it must name {key}, {destination_key} or the {body.FIELD} of the label"
		}
	case ChangedBody:
		if _, ok := p.changed("x"); !ok {
			return "there is no other body: give a label, or the changed body"
		}
	case AfterDelay:
		if p.options.Delay == 0 {
			return "no delay was asked for"
		}
	case OtherKey:
		if p.options.MaxEffects >= SameKey.cost()+AtOnce.cost() {
			return "at_once uses another key as well"
		}
	case SameKey, Spelling, AtOnce, AfterError, WithoutKey:
	}
	return ""
}
