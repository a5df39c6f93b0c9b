package main

import (
	"fmt"
	"strings"
)

// show prints the verdict on one workflow.
func (d *drilling) show(t *drillTarget) error {
	var b strings.Builder
	if len(d.Workflows) > 1 {
		b.WriteString("\n")
	}
	sample := "a sample inferred from its expressions"
	if t.Sample != "" {
		sample = "a sample inferred from its expressions and " + t.Sample
	}
	how := "Drilled"
	switch {
	case d.options.naive && d.schedule != nil:
		how = "Replayed without Semel"
	case d.options.naive:
		how = "Drilled without Semel"
	case d.schedule != nil:
		how = "Replayed"
	}
	fmt.Fprintf(&b, "%s: %s@%d of %s, with %s.\n", how, t.definition.Name, t.Version, t.File, sample)
	given := "Input " + cut(string(t.Input), 60)
	if e := t.run.Trigger.Event; e != nil {
		given = "Event " + e.Name + " " + cut(string(e.Data), 60)
	}
	fmt.Fprintf(&b, "%s. An unbroken run makes %s of store, destinations and code.\n\n", given, counted(t.Calls, "call"))
	if _, err := t.WriteTo(&b); err != nil {
		return err
	}
	return d.sh.write([]byte(visible(b.String())))
}
