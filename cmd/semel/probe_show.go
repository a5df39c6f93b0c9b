package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/semel-dev/semel/probe"
)

// agree shows what would be sent, and goes on with yes only.
func (sh *shell) agree(plan probe.Plan, yes bool) error {
	sh.say("probe %s sends to %s at most %s that may have an effect there, and lookups.", plan.ID, plan.URL, counted(plan.Effects, "request"))
	fmt.Fprintf(sh.err, "  %s %s\n  %s: %s\n  %s\n", plan.Method, visible(plan.URL), plan.Header, plan.Key, oneLine(cut(plan.Body, 300)))
	for _, s := range plan.Steps {
		if s.Skipped != "" {
			fmt.Fprintf(sh.err, "  not tested: %s: %s\n", s.Question, s.Skipped)
		}
	}
	if yes {
		return nil
	}
	if in, ok := sh.in.(*os.File); ok && !term.IsTerminal(int(in.Fd())) {
		return usagef("nothing was sent: nobody can be asked here. If this is a test endpoint and the effects may happen, add --yes")
	}
	fmt.Fprint(sh.err, "Is this a test endpoint, and may these effects happen? Type yes: ")
	line, _ := bufio.NewReader(sh.in).ReadString('\n') // no answer is no
	if strings.ToLower(strings.TrimSpace(line)) != "yes" {
		return usagef("nothing was sent: the answer was not yes")
	}
	return nil
}

// showProbe shows a report, keeps its profile, and ends with the code that says
// what holds.
func (sh *shell) showProbe(r *probe.Report, o *probeOptions) error {
	if o.writeTo != "" {
		// The effects have happened: what was learnt is shown in any case.
		if err := writeNew(o.writeTo, r.Profile); err != nil {
			sh.say("the profile could not be written, and is shown instead: %v", err)
			o.writeTo = ""
		}
	}
	if sh.json() {
		if err := sh.print(r); err != nil {
			return err
		}
	} else if err := sh.write([]byte(visible(probeText(r, o)))); err != nil {
		return err
	}
	if o.writeTo != "" {
		sh.say("the profile is in %s; in semel.yaml: profile: file:%s", o.writeTo, o.writeTo)
	}
	switch r.Holds() {
	case probe.Broken:
		return &outcomeError{exitFailed}
	case probe.Undecided, probe.Untested:
		return &outcomeError{exitUnknown}
	case probe.Holds:
	}
	return nil
}

func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // it holds no secret
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// probeText is a report for people.
func probeText(r *probe.Report, o *probeOptions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, held against %s\n\nSeen:\n", r.Method, oneLine(r.URL), r.Against)
	for _, q := range r.Observations {
		fmt.Fprintf(&b, "  %-13s  %-15s  %s\n", q.Question, spaced(q.Finding), oneLine(q.Words))
		if o.evidence {
			exchangeLines(&b, q.Exchanges)
		}
	}
	if len(r.Verdicts) > 0 {
		fmt.Fprint(&b, "\nDeclared:\n")
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "  %-13s  %-15s  %s\n", v.Promise, spaced(v.Ruling), oneLine(v.Declared))
		if v.Ruling == probe.Undecided && v.Means != "" {
			fmt.Fprintf(&b, "  %32s  %s\n", "", oneLine(v.Means))
		}
	}
	if len(r.Differences) > 0 {
		fmt.Fprint(&b, "\nDifferences:\n")
	}
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "  %-13s  declared: %s\n  %13s  seen:     %s\n  %13s  so:       %s\n", d.About, oneLine(d.Declared), "", oneLine(d.Seen), "", oneLine(d.Means))
	}
	if o.writeTo == "" {
		fmt.Fprint(&b, "\nProfile (--write FILE keeps it):\n\n")
		indented(&b, "  ", r.Profile)
	}
	fmt.Fprintf(&b, "\n%s could have an effect; %s.\n%s\n", counted(r.Effects.Requests, "request"), effectsText(r.Effects), probeHeadline(r))
	return b.String()
}

func exchangeLines(b *strings.Builder, all []probe.Exchange) {
	for _, e := range all {
		answer := "no answer"
		if e.Status > 0 {
			answer = fmt.Sprintf("%d %s", e.Status, e.Answer)
		}
		fmt.Fprintf(b, "    %s %s  %s  %s\n      -> %s, after %v\n", e.Method, oneLine(e.URL), oneLine(e.Key), oneLine(e.Body), oneLine(answer), e.Took)
	}
}

// spaced is a word of a fixed vocabulary, for people.
func spaced[T ~string](word T) string { return strings.ReplaceAll(string(word), "_", " ") }

func effectsText(n probe.Effects) string {
	if n.AtLeast == n.AtMost {
		return fmt.Sprintf("by the answers %d did", n.AtLeast)
	}
	return fmt.Sprintf("by the answers at least %d did, and at most %d", n.AtLeast, n.AtMost)
}

// probeHeadline is the sentence that says what holds.
func probeHeadline(r *probe.Report) string {
	switch {
	case r.Holds() == probe.Broken:
		return "A declared promise does not hold: change what is declared before you rely on it."
	case r.Holds() == probe.Undecided:
		return "A declared promise stays unknown: the answers do not tell."
	case len(r.Verdicts) == 0:
		return "Nothing is declared, so nothing could be held against it."
	case r.Holds() == probe.Untested:
		return "Nothing was tested: what is declared stays a declaration."
	}
	tested := 0
	for _, v := range r.Verdicts {
		if v.Ruling != probe.Untested {
			tested++
		}
	}
	return fmt.Sprintf("Of %s %d could be tested, and hold at this endpoint today.", counted(len(r.Verdicts), "declared promise"), tested)
}
