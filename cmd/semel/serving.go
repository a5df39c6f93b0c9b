package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schedule"
	"github.com/semel-dev/semel/workflowfile"
)

// serving is what serve says when it starts.
type serving struct {
	sh       *shell
	p        *project
	d        database
	runs     semel.Runs
	earlier  []semel.WorkflowDefinition
	lost     []string
	listener net.Listener // nil for none
}

// tell says what was loaded, and what nobody here can execute.
func (s *serving) tell(ctx context.Context) error {
	with := "no connections"
	if s.p.from != "" {
		with = "the connections of " + s.p.from
	}
	s.sh.say("serving %s of %s with %s; runs are kept in %s", counted(len(s.p.files), "workflow"), s.p.dir, with, s.d)
	states, err := s.runs.Schedules(ctx)
	if err != nil {
		return err
	}
	for _, d := range s.p.definitions() {
		s.sh.say("  %s: %s", semel.WorkflowRef{Name: d.Name, Version: d.Version}, strings.Join(startedOn(d, states, s.listener), "; "))
	}
	if len(s.earlier) > 0 {
		var refs []string
		for _, d := range s.earlier {
			refs = append(refs, d.Ref().String())
		}
		s.sh.say("runs that began with %s go on with that", strings.Join(slices.Compact(refs), ", "))
	}
	for _, text := range s.lost {
		s.sh.say("warning: %s", text)
	}
	if s.listener == nil && slices.ContainsFunc(s.p.definitions(), func(d *workflowfile.Definition) bool { return d.Triggers.HTTP != nil }) {
		s.sh.say("warning: there are HTTP triggers, and nothing listens: add --listen 127.0.0.1:8090")
	}
	for _, tell := range []func(context.Context) error{s.tellNewer, s.tellStranded, s.tellHeld} {
		if err := tell(ctx); err != nil {
			return err
		}
	}
	return s.sh.newsOfStart(s)
}

// tellChanged says which workflows are registered with another text under the
// same version, before this worker registers its own.
func (sh *shell) tellChanged(ctx context.Context, runs semel.Runs, p *project) error {
	all, err := runs.Workflows(ctx)
	if err != nil {
		return err
	}
	for _, w := range all {
		for _, d := range p.definitions() {
			if d.Name == w.Name && d.Version == w.Version && d.Digest != w.Definition {
				sh.say("warning: %s was registered with another text: runs that began with it are held, and a worker that still has it holds those that begin with this one; give the changed text a new version", w)
			}
		}
	}
	return nil
}

// tellNewer says where another worker has a newer version.
func (s *serving) tellNewer(ctx context.Context) error {
	known, err := s.runs.Workflows(ctx)
	if err != nil {
		return err
	}
	newest := map[string]int{}
	for _, d := range s.p.definitions() {
		newest[d.Name] = max(newest[d.Name], d.Version)
	}
	for _, w := range known {
		if version, have := newest[w.Name]; have && version < w.Version {
			s.sh.say("warning: %s is registered, which this directory does not have: schedules and events start that, and this worker executes runs of %s@%d only", w, w.Name, version)
		}
	}
	return nil
}

// tellHeld says that runs need a person.
func (s *serving) tellHeld(ctx context.Context) error {
	n, err := countRuns(ctx, s.runs, semel.RunFilter{State: semel.RunHeld})
	if err == nil && n > 0 {
		s.sh.say("%s held, waiting for a person. See: %s", countWord(n), s.sh.command("run list --state held"))
	}
	return err
}

func (s *serving) tellStranded(ctx context.Context) error {
	counts, err := stranded(ctx, s.runs, append(executable(s.p.definitions(), s.p.config), s.earlier...))
	if err != nil {
		return err
	}
	for _, ref := range slices.SortedFunc(maps.Keys(counts), func(a, b semel.WorkflowRef) int { return strings.Compare(a.String(), b.String()) }) {
		s.sh.say("warning: %s of %s: not executed here, for this directory does not have it. See: %s",
			counted(counts[ref], "run"), ref, s.sh.command("run list --workflow "+quoteForShell(ref.Name)))
	}
	return nil
}

// startedOn says what starts runs of a workflow, and when next.
func startedOn(d *workflowfile.Definition, states []semel.ScheduleState, listener net.Listener) (words []string) {
	if sch := d.Triggers.Schedule; sch != nil {
		words = append(words, "schedule "+sch.Cron+" "+sch.Zone+", "+nextOf(d.Name, sch, states))
	}
	if e := d.Triggers.Event; e != nil {
		words = append(words, "event "+e.Name)
	}
	if d.Triggers.HTTP != nil && listener != nil {
		words = append(words, fmt.Sprintf("POST http://%s/workflows/%s/runs", listener.Addr(), d.Name))
	}
	if len(words) == 0 {
		words = []string{"semel run start " + d.Name}
	}
	return words
}

// nextOf is when a schedule starts a run next, as the database has it.
func nextOf(name string, sch *semel.Schedule, states []semel.ScheduleState) string {
	i := slices.IndexFunc(states, func(s semel.ScheduleState) bool { return s.Workflow == name && s.Name == sch.Name })
	if i < 0 {
		return "not registered: a newer version is"
	}
	if states[i].Paused {
		return "paused by " + orNone(states[i].PausedBy)
	}
	spec, err := schedule.Parse(sch.Cron, sch.Zone)
	if err != nil {
		return err.Error()
	}
	t, _ := spec.Next(states[i].Seen)
	return "next " + t.Local
}
