package main

import (
	"encoding/json"
	"time"

	"github.com/semel-dev/semel"
)

// runJSON is a run as a program reads it. Its first members are promised to
// scripts.
type runJSON struct {
	Run         string          `json:"run"`
	Workflow    string          `json:"workflow"`
	Version     int             `json:"version"`
	Key         string          `json:"key"`
	State       semel.RunState  `json:"state"`
	Reason      string          `json:"reason"`
	NeedsPerson bool            `json:"needs_person"`
	Result      json.RawMessage `json:"result"`
	Next        runNextJSON     `json:"next"`

	Paused          bool            `json:"paused"`
	CancelRequested bool            `json:"cancel_requested"`
	Overdue         bool            `json:"overdue"` // due for a while, and no worker took it
	Worker          string          `json:"worker,omitempty"`
	LeaseUntil      *time.Time      `json:"lease_until,omitempty"`
	DueAt           *time.Time      `json:"due_at,omitempty"`
	Attempt         int             `json:"attempt"`
	Crashes         int             `json:"crashes"`
	Done            int             `json:"items_done"`
	Total           int             `json:"items_total"`
	Priority        string          `json:"priority"`
	Input           json.RawMessage `json:"input"`
	Trigger         semel.Trigger   `json:"trigger"`
	Parent          string          `json:"parent,omitempty"`
	ParentStep      string          `json:"parent_step,omitempty"`
	Definition      string          `json:"definition,omitempty"`
	CreatedAt       *time.Time      `json:"created_at"`
	UpdatedAt       *time.Time      `json:"updated_at"`
	RetriedAt       *time.Time      `json:"retried_at,omitempty"`
	EndedAt         *time.Time      `json:"ended_at,omitempty"`
}

// runNextJSON is what happens next, and why.
type runNextJSON struct {
	Headline string `json:"headline"`
	InWords  string `json:"in_words"` // the state, in a word or two
}

// describeRun makes the JSON form of a run as of now.
func (sh *shell) describeRun(r *semel.Run, waits []semel.RunWait, now time.Time) runJSON {
	d := runJSON{
		Run: r.ID.String(), Workflow: r.Workflow, Version: r.Version, Key: string(r.Key), State: r.State, Reason: r.Reason,
		NeedsPerson: r.NeedsPerson(), Result: rawOrNull(r.Result),
		Next:   runNextJSON{sh.adviseRun(r, waits, now).headline, runWord(r, now)},
		Paused: r.Paused, CancelRequested: r.Cancel, Overdue: overdue(r, now), DueAt: instant(r.DueAt), Attempt: r.Attempt, Crashes: r.Crashes,
		Done: r.Done, Total: r.Total, Priority: priorityWord(r.Priority), Input: rawOrNull(r.Input), Trigger: r.Trigger, ParentStep: r.ParentStep,
		Definition: r.Definition, CreatedAt: instant(r.CreatedAt), UpdatedAt: instant(r.UpdatedAt), RetriedAt: instant(r.RetriedAt), EndedAt: instant(r.EndedAt),
	}
	if executed(r, now) {
		d.Worker, d.LeaseUntil = r.By, instant(r.LeaseUntil)
	}
	if r.Parent != (semel.ID{}) {
		d.Parent = r.Parent.String()
	}
	return d
}

// rawOrNull is recorded JSON as it is.
func rawOrNull(data []byte) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage("null")
	}
	return data
}

func priorityWord(p semel.Priority) string {
	switch p {
	case semel.High:
		return "high"
	case semel.Low:
		return "low"
	case semel.Normal:
	}
	return "normal"
}
