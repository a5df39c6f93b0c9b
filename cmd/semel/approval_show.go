package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

func newApprovalShow(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show the exact request that an approval is about",
		Long: `Show the exact request that an approval is about: method, URL, headers and body,
action, scope and key, with numbers as they are sent. Looking decides nothing.

Its digest binds a decision to what is shown here: semel approve wants the
beginning of it.`,
		Example: "  semel approval show 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f",
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			id, err := idOfApproval(cmd, args)
			if err != nil {
				return err
			}
			k, err := sh.lookKeeper(cmd.Context())
			if err != nil {
				return sh.noApproval(err, id)
			}
			defer sh.shut("the database", k.Close)
			a, err := k.Approval(cmd.Context(), id)
			if err != nil {
				return sh.noApproval(err, id)
			}
			now, err := k.Now(cmd.Context())
			if err != nil {
				return err
			}
			if sh.json() {
				return sh.print(describeApproval(&a, now))
			}
			out := &tolerant{to: sh.out}
			sh.tellApproval(out, &a, now)
			fmt.Fprintln(out, "\nWhat you can do")
			for _, line := range sh.approvalCommands(&a) {
				fmt.Fprintf(out, "  %s\n", line)
			}
			if out.err != nil {
				return fmt.Errorf("write to stdout: %w", out.err)
			}
			return nil
		}),
	}
}

// shortDigest is how much of a digest a person types.
const shortDigest = 12

// tellApproval writes what a person must see before a decision.
func (sh *shell) tellApproval(w io.Writer, a *semel.Approval, now time.Time) {
	fmt.Fprintln(w, visible(approvalHeadline(a, now)))
	if a.Ask.Summary != "" {
		fmt.Fprintln(w, visible(a.Ask.Summary))
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	row("approval", "%s", a.ID)
	row("digest", "%s", cut12(a.Digest))
	row("action", "%s", orNone(a.Request.Action))
	row("scope", "%s", a.Scope)
	row("key", "%s", a.Key)
	row("run", "%s, step %s", a.Run, a.Path)
	if a.Ask.Of != "" {
		row("asked of", "%s", a.Ask.Of)
	}
	row("asked", "%s (%s)", moment(a.AskedAt), relative(a.AskedAt, now))
	row("holds", "%s", validity(a))
	_ = table.Flush() // the writer keeps its error
	fmt.Fprintln(w, "\nThe exact request")
	exactRequest(w, &a.Request)
}

func cut12(digest string) string { return digest[:min(len(digest), shortDigest)] }

// approvalHeadline says where an approval stands, and what that means.
func approvalHeadline(a *semel.Approval, now time.Time) string {
	decided := fmt.Sprintf(" by %s at %s%s", a.By, moment(a.DecidedAt), colon(a.Reason))
	switch a.State {
	case semel.ApprovalPending:
		return "Pending: nothing is sent until a person approves. Approving lets the run send the request below, once, and nothing else."
	case semel.ApprovalGiven:
		if approvalWord(a, now) == "expired" {
			return fmt.Sprintf("Expired at %s: it was approved%s. Nothing more is sent under it.", moment(a.Until), decided)
		}
		return "Approved" + decided + "."
	case semel.ApprovalRejected:
		return "Rejected" + decided + ". Nothing is sent."
	case semel.ApprovalRevoked:
		return "Revoked" + decided + ". Nothing more is sent under it; what was sent before stays."
	case semel.ApprovalClosed:
		return "Closed: nobody waits for a decision any more."
	}
	return string(a.State)
}

// validity says how long an approval holds.
func validity(a *semel.Approval) string {
	switch {
	case !a.Until.IsZero():
		return "until " + moment(a.Until)
	case a.Ask.Valid > 0:
		return "for " + duration(a.Ask.Valid) + " once it is given"
	}
	return "without end, once it is given"
}

// approvalCommands are the decisions that an approval takes.
func (sh *shell) approvalCommands(a *semel.Approval) []string {
	id := a.ID.String()
	switch a.State {
	case semel.ApprovalPending:
		return []string{
			"approve exactly this:            " + sh.command("approve "+id+" --digest "+cut12(a.Digest)),
			"say no, and the step fails:      " + sh.command("reject "+id+" --reason TEXT"),
		}
	case semel.ApprovalGiven:
		return []string{"take it back:                    " + sh.command("approval revoke "+id+" --reason TEXT")}
	case semel.ApprovalRejected, semel.ApprovalRevoked, semel.ApprovalClosed:
	}
	return []string{"look at its run:                 " + sh.command("run show "+a.Run.String())}
}
