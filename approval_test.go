package semel_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

func TestApprovalTakesOneDecision(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := func(s semel.ApprovalState) semel.Approval {
		return semel.Approval{State: s, Digest: "d", By: "ann", DecidedAt: now, Ask: semel.Ask{Valid: time.Hour}}
	}
	for _, test := range []struct {
		was, d semel.ApprovalState
		digest string
		says   string // empty: it takes it
	}{
		{semel.ApprovalPending, semel.ApprovalGiven, "d", ""},
		{semel.ApprovalPending, semel.ApprovalRejected, "d", ""},
		{semel.ApprovalPending, semel.ApprovalClosed, "d", ""},
		{semel.ApprovalGiven, semel.ApprovalRevoked, "d", ""},
		{semel.ApprovalPending, semel.ApprovalGiven, "e", "another request"},
		{semel.ApprovalPending, semel.ApprovalRevoked, "d", "nothing was given"},
		{semel.ApprovalPending, semel.ApprovalPending, "d", "no decision"},
		{semel.ApprovalGiven, semel.ApprovalGiven, "d", "only be revoked"},
		{semel.ApprovalGiven, semel.ApprovalClosed, "d", "only be revoked"},
		{semel.ApprovalRejected, semel.ApprovalGiven, "d", "was rejected by ann"},
		{semel.ApprovalRevoked, semel.ApprovalGiven, "d", "was revoked by ann"},
		{semel.ApprovalClosed, semel.ApprovalGiven, "d", "closed"},
	} {
		got, err := in(test.was).Decide(semel.Decision{State: test.d, By: "bob", Digest: test.digest}, now.Add(time.Minute))
		refused, ok := errors.AsType[*semel.ApprovalStateError](err)
		switch {
		case test.says == "" && (err != nil || got.State != test.d || got.By != "bob"):
			t.Errorf("%s, then %s: got %+v, error %v", test.was, test.d, got, err)
		case test.says != "" && (!ok || !strings.Contains(refused.Problem, test.says) || got.State != test.was):
			t.Errorf("%s, then %s: got %+v, error %v, want %q", test.was, test.d, got, err, test.says)
		}
	}
	given, err := in(semel.ApprovalPending).Decide(semel.Decision{State: semel.ApprovalGiven, Digest: "d"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if !given.Covers("d", now.Add(time.Hour-1)) || given.Covers("d", now.Add(time.Hour)) || given.Covers("e", now) {
		t.Error("an approval covers its own request, until it ends")
	}
}
