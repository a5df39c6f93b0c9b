package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/semel-dev/semel"
)

const approveHelp = `Approve one exact request, so that its run may send it, once. Nobody approves
what they have not seen: on a terminal the request is shown, and y is asked for;
elsewhere --digest is needed, the beginning of the digest that semel approval
show prints, at least 8 characters.

The first decision counts. The exit code is 0 if yours did, or if you gave it
before, and 4 if somebody decided before you, the request is another one than you
saw, or nobody waits any more.`

func newApprove(sh *shell) *cobra.Command {
	d := semel.Decision{State: semel.ApprovalGiven}
	var digest string
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Approve one exact request", Long: approveHelp,
		Example: "  semel approve 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f --digest 5f0c9a1be2d4 --reason \"checked with the client\"",
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			id, err := idOfApproval(cmd, args)
			switch {
			case err != nil:
				return err
			case strings.TrimSpace(d.By) == "":
				return usagef("--by is empty: say who decides")
			case digest != "" && len(digest) < 8:
				return usagef("--digest %q is too short to tell requests apart: give at least 8 characters of it", digest)
			case digest == "" && !sh.canAsk():
				return usagef("--digest is missing: look at the request first, it names the digest: %s", sh.command("approval show "+id.String()))
			}
			return sh.decide(cmd.Context(), id, d, digest)
		}),
	}
	cmd.Flags().Var(&onceText{to: &digest}, "digest", "beginning of the digest of the request that you saw")
	decisionFlags(cmd, &d.By, &d.Reason)
	return cmd
}

func newReject(sh *shell) *cobra.Command {
	return sh.refusal("reject", semel.ApprovalRejected, "Say no to one request: it is not sent, and its step fails", `Say no to one request: it is not sent, and the step of its run that asks fails as
rejected, with your reason.

The exit code is 0 if this was the decision, or if you gave it before, and 4 if
somebody decided before you.`)
}

func newApprovalRevoke(sh *shell) *cobra.Command {
	return sh.refusal("revoke", semel.ApprovalRevoked, "Take back an approval: nothing more is sent under it", `Take back an approval. Nothing more is sent under it: an outcome that is unknown
is looked up, or a person settles it. What was sent before stays.

The exit code is 0 if it is revoked, or if you revoked it before, and 4 if it was
not given, or somebody revoked it before you.`)
}

// refusal is a decision against a request; it needs a reason, and no digest:
// whatever the request is, it is not sent.
func (sh *shell) refusal(use string, state semel.ApprovalState, short, long string) *cobra.Command {
	d := semel.Decision{State: state}
	cmd := &cobra.Command{
		Use: use + " ID --reason TEXT", Short: short, Long: long,
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			id, err := idOfApproval(cmd, args)
			if err != nil {
				return err
			}
			if err := validDecision(d.By, d.Reason); err != nil {
				return err
			}
			return sh.decide(cmd.Context(), id, d, "")
		}),
	}
	cmd.Example = "  semel reject 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f --reason \"wrong amount\""
	if state == semel.ApprovalRevoked {
		cmd.Example = "  semel approval revoke 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f --reason \"the article was changed\""
	}
	decisionFlags(cmd, &d.By, &d.Reason)
	return cmd
}

// canAsk reports whether a person can be shown something and answer.
func (sh *shell) canAsk() bool {
	in, ok := sh.in.(*os.File)
	return ok && sh.terminal && !sh.json() && term.IsTerminal(int(in.Fd()))
}

func (sh *shell) decide(ctx context.Context, id semel.ID, d semel.Decision, digest string) error {
	k, err := sh.lookKeeper(ctx)
	if err != nil {
		return sh.noApproval(err, id)
	}
	defer sh.shut("the database", k.Close)
	a, err := k.Approval(ctx, id)
	if err != nil {
		return sh.noApproval(err, id)
	}
	if digest != "" && !strings.HasPrefix(a.Digest, strings.ToLower(digest)) {
		return &refusedError{exitRefused, fmt.Sprintf("Refused: the request has the digest %s, not %s: this is another request than you saw. Nothing was decided. See: %s",
			cut12(a.Digest), digest, sh.command("approval show "+id.String()))}
	}
	if d.State == semel.ApprovalGiven && digest == "" && a.State == semel.ApprovalPending {
		if err := sh.confirm(ctx, k, &a); err != nil {
			return err
		}
	}
	d.Digest = a.Digest
	decided, err := k.Decide(ctx, id, d)
	if refused, ok := errors.AsType[*semel.ApprovalStateError](err); ok {
		if refused.Approval.State != d.State || refused.Approval.By != d.By {
			return &refusedError{exitRefused, sh.beaten(refused)}
		}
		decided = refused.Approval
	} else if err != nil {
		return sh.noApproval(err, id)
	}
	return sh.showDecision(ctx, k, &decided)
}

// beaten says who decided before, or why nothing can be decided.
func (sh *shell) beaten(e *semel.ApprovalStateError) string {
	a := &e.Approval
	text := "Refused: " + e.Problem
	if a.Reason != "" && a.State != semel.ApprovalPending {
		text += " (" + a.Reason + ")"
	}
	return text + ". Your decision changed nothing. See: " + sh.command("approval show "+a.ID.String())
}

// confirm shows the request and asks for y.
func (sh *shell) confirm(ctx context.Context, k *keeper, a *semel.Approval) error {
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	sh.tellApproval(sh.out, a, now)
	fmt.Fprint(sh.out, "\nApprove exactly this? Type y: ")
	line, _ := bufio.NewReader(sh.in).ReadString('\n') // no answer is no
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return &refusedError{exitRefused, "not approved: nothing was decided, and the run keeps waiting"}
	}
	return nil
}

func (sh *shell) showDecision(ctx context.Context, k *keeper, a *semel.Approval) error {
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	if sh.json() {
		return sh.print(describeApproval(a, now))
	}
	if err := sh.write(fmt.Appendf(nil, "approval  %s\nstate     %s\nrun       %s\n", a.ID, approvalWord(a, now), a.Run)); err != nil {
		return err
	}
	sh.say("%s", approvalHeadline(a, now))
	return nil
}
