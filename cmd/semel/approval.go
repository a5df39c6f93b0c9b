package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

const approvalHelp = `An approval is one question to a person about one exact request: its scope, key,
endpoint, headers and body, which its digest binds. What differs by one digit is
not covered, and the run that would send it is held. Looking decides nothing.`

func newApproval(sh *shell) *cobra.Command {
	return group("approval", "Look at requests that wait for approval, and take approvals back", approvalHelp,
		"  semel approval list --state pending\n  semel approval show 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f",
		newApprovalList(sh), newApprovalShow(sh), newApprovalRevoke(sh))
}

// idOfApproval reads the argument of a command about one approval.
func idOfApproval(cmd *cobra.Command, args []string) (semel.ID, error) {
	if len(args) != 1 {
		return semel.ID{}, usagef("%s needs the ID of one approval: see semel approval list", cmd.CommandPath())
	}
	id, err := semel.ParseID(args[0])
	if err != nil {
		return id, usagef("%q is not the ID of an approval: copy it from semel approval list", args[0])
	}
	return id, nil
}

func (sh *shell) noApproval(err error, id semel.ID) error {
	if errors.Is(err, semel.ErrNotFound) || errors.Is(err, errNothingYet) {
		return usagef("there is no approval %s in this database. See: %s", id, sh.command("approval list"))
	}
	return err
}

func newApprovalList(sh *shell) *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "list", Short: "List approvals, newest first, and mark what waits for a decision",
		Long:    "List approvals, newest first. The first column marks with ! what waits for a\ndecision. Listing decides nothing.",
		Example: "  semel approval list\n  semel approval list --state pending --output json",
		Args:    noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			switch semel.ApprovalState(state) {
			case "", semel.ApprovalPending, semel.ApprovalGiven, semel.ApprovalRejected, semel.ApprovalRevoked, semel.ApprovalClosed:
				return sh.listApprovals(cmd.Context(), semel.ApprovalState(state))
			}
			return usagef("--state %q is unknown: use pending, approved, rejected, revoked or closed", state)
		}),
	}
	cmd.Flags().Var(&onceText{to: &state}, "state", "only pending, approved, rejected, revoked or closed")
	return cmd
}

// approvalListJSON is what a program reads of a list of approvals.
type approvalListJSON struct {
	Approvals []approvalJSON `json:"approvals"`
	Pending   int            `json:"pending"`
}

func (sh *shell) listApprovals(ctx context.Context, state semel.ApprovalState) error {
	list := approvalListJSON{Approvals: []approvalJSON{}}
	k, err := sh.lookKeeper(ctx)
	if errors.Is(err, errNothingYet) {
		sh.say("no approvals: the default database does not exist yet")
		if sh.json() {
			return sh.print(list)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer sh.shut("the database", k.Close)
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	n := 0
	for a, err := range k.Approvals(ctx, semel.ID{}, state) {
		if err != nil {
			return err
		}
		mark := " "
		if a.State == semel.ApprovalPending {
			mark = "!"
			list.Pending++
		}
		if sh.json() {
			list.Approvals = append(list.Approvals, describeApproval(&a, now))
			continue
		}
		if n == 0 {
			fmt.Fprintln(table, " \tSTATE\tACTION\tKEY\tOF\tASKED\tAPPROVAL\tSUMMARY")
		}
		n++
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, approvalWord(&a, now), orDash(a.Request.Action), cut(oneLine(string(a.Key)), 50),
			cut(orDash(a.Ask.Of), 30), relative(a.AskedAt, now), a.ID, cut(orDash(a.Ask.Summary), 80))
	}
	if sh.json() {
		return sh.print(list)
	}
	_ = table.Flush() // the writer keeps its error
	switch {
	case out.err != nil:
		return fmt.Errorf("write to stdout: %w", out.err)
	case n == 0:
		sh.say("no such approvals")
	case list.Pending > 0:
		sh.say("%d marked ! wait for a decision: %s", list.Pending, sh.command("approval show APPROVAL"))
	}
	return nil
}

// approvalWord is the state of an approval as of now.
func approvalWord(a *semel.Approval, now time.Time) string {
	if a.State == semel.ApprovalGiven && !a.Until.IsZero() && !now.Before(a.Until) {
		return "expired"
	}
	return string(a.State)
}

// approvalJSON is an approval as a program reads it.
type approvalJSON struct {
	Approval  string              `json:"approval"`
	Run       string              `json:"run"`
	Step      string              `json:"step"`
	State     semel.ApprovalState `json:"state"`
	Valid     bool                `json:"valid"` // it covers the request now
	Digest    string              `json:"digest"`
	Action    string              `json:"action"`
	Scope     string              `json:"scope"`
	Key       string              `json:"key"`
	Request   requestJSON         `json:"request"`
	Of        string              `json:"of,omitempty"`
	Summary   string              `json:"summary,omitempty"`
	AskedAt   *time.Time          `json:"asked_at"`
	ValidFor  string              `json:"valid_for,omitempty"` // once given
	By        string              `json:"by,omitempty"`
	Reason    string              `json:"reason,omitempty"`
	DecidedAt *time.Time          `json:"decided_at,omitempty"`
	Until     *time.Time          `json:"until,omitempty"`
}

func describeApproval(a *semel.Approval, now time.Time) approvalJSON {
	r := &a.Request
	d := approvalJSON{
		Approval: a.ID.String(), Run: a.Run.String(), Step: a.Path, State: a.State, Valid: a.Covers(a.Digest, now), Digest: a.Digest,
		Action: r.Action, Scope: string(a.Scope), Key: string(a.Key), Of: a.Ask.Of, Summary: a.Ask.Summary, AskedAt: instant(a.AskedAt),
		ValidFor: declared(a.Ask.Valid), By: a.By, Reason: a.Reason, DecidedAt: instant(a.DecidedAt), Until: instant(a.Until),
	}
	fingerprint := ""
	if fp, err := r.Fingerprint(); err == nil {
		fingerprint = fp.String()
	}
	d.Request = describeRequest(r, fingerprint)
	return d
}
