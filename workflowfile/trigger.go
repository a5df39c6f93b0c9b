package workflowfile

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
)

// on reads the triggers.
func (r *reader) on(n *yaml.Node) Triggers {
	var t Triggers
	m, ok := r.shape(n, "on")
	if !ok {
		return t
	}
	if n := m["schedule"]; n != nil {
		t.Schedule = r.schedule(n)
	}
	if n := m["event"]; n != nil {
		t.Event = &EventTrigger{}
		if m, ok := r.shape(n, "event"); ok {
			if m["name"] == nil {
				r.wrong(n, CodeMissing, "add name: of the event", "event has no name")
			} else {
				t.Event.Name = r.eventName(m["name"])
			}
		}
	}
	if n := m["http"]; n != nil {
		t.HTTP = &HTTPTrigger{}
		r.shape(n, "http")
	}
	return t
}

func (r *reader) schedule(n *yaml.Node) *semel.Schedule {
	s := &semel.Schedule{Zone: "UTC", Missed: "once"}
	m, ok := r.shape(n, "schedule")
	if !ok {
		return s
	}
	if n := m["missed"]; n != nil {
		s.Missed = r.oneOf(n, "missed", "skip", "once", "all")
	}
	if n := m["zone"]; n != nil {
		s.Zone = r.zone(n)
	}
	c := m["cron"]
	if c == nil {
		r.wrong(n, CodeMissing, `add cron: "0 2 * * *"`, "schedule has no cron")
		return s
	}
	if s.Cron, ok = r.text(c, "cron"); !ok {
		return s
	}
	if r.checks.Cron == nil {
		r.warn(c, CodeNotChecked, "", "cron was not checked")
	} else if err := r.checks.Cron(s.Cron); err != nil {
		r.wrong(c, CodeValue, "write minute, hour, day, month and weekday", "cron %s cannot be read: %v", shown(s.Cron), err)
	}
	return s
}

func (r *reader) zone(n *yaml.Node) string {
	zone, ok := r.text(n, "zone")
	if !ok {
		return ""
	}
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		r.wrong(n, CodeValue, "use a name such as Europe/Berlin or UTC", "zone %s is unknown", shown(zone))
	}
	return zone
}
