package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

const doHelp = `Do something once: send an HTTP request (--post) or run a program (after --).

The first run claims the operation (--scope and --key), acts and records what
came back. A later run with the same key

  completed    shows the recorded answer again and sends nothing          exit 0
  failed       tries again under the same key (--on-failed return: does not)
  unknown      does the next safe thing now: sends again while the destination
               honours the key, or looks it up; otherwise a person       exit 3
  in progress  waits up to --wait                                         exit 5
  a key that belongs to another request is refused                        exit 4

--protection says what makes a repetition safe. Be honest: with "none" (the
default) Semel never sends a second time while the outcome is unknown.

  none       nothing; a person settles what is unknown
  keyed      the destination honours a key for --window
  lookup     --lookup URL (or --check PROGRAM) tells whether it happened
  absolute   it sets a value, and nobody else writes that value
  commutes   running it again changes nothing

In --lookup, {key}, {destination_key} and {body.FIELD} are replaced. "Not found"
proves something only with --absence-is-proof, --max-processing and
--visible-after.

A program finds SEMEL_KEY, SEMEL_SCOPE, SEMEL_OPERATION, SEMEL_ATTEMPT and
SEMEL_DESTINATION_KEY in its environment; it passes its output through, which is
shown again on a later run. Its exit code 0 is completed, the codes in
--no-effect-exit are "nothing happened", all others are unknown. Authorization
and other credentials given with --header are sent and never stored.`

const doExamples = `  # A charge at a provider that honours keys for a day.
  semel do --scope payments --key invoice-4417-charge --protection keyed --window 24h \
      --post https://api.example.com/v1/charges --body charge.json \
      --header "Authorization: Bearer $TOKEN"

  # A transfer at a bank that ignores keys and can be asked by reference.
  semel do --scope bank --key invoice-4417-transfer --protection lookup \
      --lookup 'https://bank.example.com/v1/transfers/by-reference/{body.reference}' \
      --max-processing 30s --visible-after 2m --absence-is-proof \
      --post https://bank.example.com/v1/transfers --body transfer.json

  # A program that mails a report; exit codes 64 and 69 mean that nothing was sent.
  semel do --key report-2026-03-01 --no-effect-exit 64,69 -- ./send-report.sh 2026-03-01`

// doOptions are the flags of do.
type doOptions struct {
	scope, key   string
	protection   string
	window       time.Duration
	processing   time.Duration
	visibleAfter time.Duration
	timeout      time.Duration
	wait         time.Duration
	onFailed     string

	post, body, keyHeader, lookup, foundIn string
	header                                 []string
	absence                                bool
	profile, connection                    string

	check, stdin string
	noEffectExit []int
}

// defaultTimeout is how long an HTTP answer is awaited.
const defaultTimeout = 10 * time.Second

// httpOnly and programOnly are the flags that make no sense for the other.
var (
	httpOnly    = []string{"body", "header", "key-header", "lookup", "found-in", "profile", "connection"}
	programOnly = []string{"check", "stdin", "no-effect-exit"}
)

func newDo(sh *shell) *cobra.Command {
	var o doOptions
	cmd := &cobra.Command{
		Use:   "do --key K (--post URL | -- PROGRAM ARG...)",
		Short: "Do something once, however often this is run", Long: doHelp, Example: doExamples,
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			given := func(name string) bool { return cmd.Flags().Changed(name) }
			if err := o.target(given, args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			call, err := o.call(sh)
			if err != nil {
				return err
			}
			if o.post != "" {
				return sh.doHTTP(cmd.Context(), &o, given, call)
			}
			return sh.doProgram(cmd.Context(), &o, call, args)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&onceText{to: &o.scope}, "scope", "space in which the key is unique (env SEMEL_SCOPE, default default)")
	f.Var(&onceText{to: &o.key}, "key", "name of this one piece of work, the same on every run")
	f.Var(&onceText{to: &o.protection}, "protection", "none, keyed, lookup, absolute or commutes (default none, or what the profile declares)")
	f.Var(&span{to: &o.window}, "window", "how long the destination honours a key, for example 24h")
	f.Var(&span{to: &o.processing}, "max-processing", "longest time from the last byte sent to the effect")
	f.Var(&span{to: &o.visibleAfter}, "visible-after", "how long a lookup may still miss an effect")
	f.BoolVar(&o.absence, "absence-is-proof", false, "a lookup that finds nothing, late enough, proves that nothing happened")
	f.Var(&span{to: &o.timeout}, "timeout", "how long to wait for the answer (default 10s for HTTP, none for programs)")
	f.Var(&span{to: &o.wait}, "wait", "how long to wait for an attempt that is running elsewhere (default 0s)")
	f.Var(&onceText{to: &o.onFailed}, "on-failed", "rerun or return a failure that is on record (default rerun)")

	f.Var(&onceText{to: &o.post}, "post", "URL to post to")
	f.Var(&onceText{to: &o.body}, "body", "file with the request body, - for stdin")
	f.StringArrayVar(&o.header, "header", nil, "request header \"Name: value\", may be repeated")
	f.Var(&onceText{to: &o.keyHeader}, "key-header", "header that carries the key (default Idempotency-Key with keyed)")
	f.Var(&onceText{to: &o.lookup}, "lookup", "URL that tells whether it happened")
	f.Var(&onceText{to: &o.foundIn}, "found-in", "where the lookup's answer lists what it found, for example data")
	f.Var(&onceText{to: &o.profile}, "profile", "how this destination's answers are read, for example stripe")
	f.Var(&onceText{to: &o.connection}, "connection", "named connection of semel.yaml; --post may then be a path")

	f.Var(&onceText{to: &o.check}, "check", "shell line that tells whether it happened: exit 0 it did, 1 it did not, else no answer")
	f.Var(&onceText{to: &o.stdin}, "stdin", "file that the program reads, - for stdin")
	f.Var(&exitCodes{to: &o.noEffectExit}, "no-effect-exit", "exit codes by which the program says that nothing happened")
	return cmd
}

// target refuses a command line that says not exactly one thing to do.
func (o *doOptions) target(given func(string) bool, args []string, dash int) error {
	switch {
	case o.post == "" && len(args) == 0:
		return usagef("there is nothing to do: give --post URL, or -- and a program")
	case len(args) > 0 && dash != 0:
		return usagef("put -- before the program: semel do ... -- %s", quoteForShell(args[0]))
	case o.post != "" && len(args) > 0:
		return usagef("--post and a program are two things to do: give one of them")
	case o.key == "":
		return usagef("--key is missing: name this piece of work, the same on every run, for example --key invoice-4417-charge")
	}
	wrong, word := httpOnly, "a program"
	if o.post != "" {
		wrong, word = programOnly, "--post"
	}
	for _, name := range wrong {
		if given(name) {
			return usagef("--%s does not go with %s: leave it out", name, word)
		}
	}
	if o.post != "" && given("timeout") && o.timeout == 0 {
		return usagef("--timeout 0s would wait for ever: give a time such as 10s")
	}
	if o.post != "" && !given("timeout") {
		o.timeout = defaultTimeout
	}
	return nil
}

// call is what HTTP and programs have in common.
func (o *doOptions) call(sh *shell) (semel.Call, error) {
	c := semel.Call{Scope: semel.Scope(sh.scope(o.scope)), Key: semel.Key(o.key), Wait: o.wait, Source: person()}
	if err := errors.Join(c.Scope.Validate(), c.Key.Validate()); err != nil {
		return c, err
	}
	protection := semel.Protection(o.protection)
	if protection == "" {
		protection = semel.Unprotected
	}
	if protection == semel.Transactional {
		return c, usagef("--protection transactional belongs to effects in your own database: use none, keyed, lookup, absolute or commutes")
	}
	c.Contract = semel.Contract{
		Protection: protection, Window: o.window, MaxProcessing: o.processing, VisibleAfter: o.visibleAfter,
		AbsenceIsProof: o.absence, Timeout: o.timeout, OnFailed: semel.OnFailed(o.onFailed), LookupURL: o.lookup, FoundIn: o.foundIn,
		Check: o.check, NoEffectExit: o.noEffectExit,
	}
	return c, nil
}

// perform opens what a call needs, does it, and shows what is known then.
func (sh *shell) perform(ctx context.Context, call semel.Call, acting *atomic.Bool) error {
	store, d, err := sh.open(ctx)
	if err != nil {
		return err
	}
	defer sh.shut("the database", store.Close)
	return sh.ask(ctx, store, d, acting, func(ctx context.Context, e *engine.Engine) (semel.Outcome, error) {
		out, err := e.Do(ctx, call)
		if err == nil && out.Status != semel.StatusConflict {
			sh.noteTerms(&out.Operation.Contract, &call.Contract)
		}
		return out, err
	})
}

// ask runs one request on an engine. A signal stops the waiting, unless a
// program is running, which then gets the signal itself.
func (sh *shell) ask(ctx context.Context, store *patientStore, d database, acting *atomic.Bool,
	request func(context.Context, *engine.Engine) (semel.Outcome, error),
) error {
	for _, warning := range store.Warnings() {
		sh.say("warning: the database: %s", warning)
	}
	waiting, interrupted := sh.interruptible(ctx, acting)
	defer interrupted()
	sp, err := openSpool(d)
	if err != nil {
		return err
	}
	defer sh.shut("the spool", sp.Close)
	ds := &destinations{sh: sh, d: d}
	e, err := sh.engine(waiting, store, engine.Options{Spool: sp, Resolve: ds.resolve})
	if err != nil {
		return err
	}
	out, err := request(waiting, e)
	stopping, cancel := context.WithTimeout(ctx, closing)
	defer cancel()
	closeErr := e.Close(stopping)
	ds.close(ctx)
	if err != nil {
		if waiting.Err() != nil {
			return errors.New("interrupted before this call had sent anything; earlier calls may have: run the same command again, under the same key")
		}
		return err
	}
	if closeErr != nil {
		sh.say("the attempt did not end in time, so what it knows is lost: %v", closeErr)
	}
	looking, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	now, err := store.Now(looking)
	if err != nil {
		now = time.Now() // the outcome is known and has to be told
	}
	if waiting.Err() != nil && out.Status == semel.StatusInProgress {
		sh.catchUp(looking, store, &out, now)
	}
	return sh.showOutcome(&out, store.attempt(), now)
}

// catchUp brings an outcome up to date that was told before the attempt ended:
// this process ends now, so nothing goes on.
func (sh *shell) catchUp(ctx context.Context, store *patientStore, out *semel.Outcome, now time.Time) {
	o, err := store.LoadID(ctx, out.Operation.ID)
	if err == nil {
		out.Operation, out.Status = o, semel.Status(o.StateAt(now))
	}
	if n := store.attempt(); n > 0 && n == out.Operation.Attempt && out.Operation.State == semel.InProgress {
		out.Operation.State, out.Status = semel.Unknown, semel.StatusUnknown
		out.Operation.Reason = "this process ended before its attempt did; it may have happened"
		if err != nil {
			out.Operation.Reason = fmt.Sprintf("the database does not tell how the attempt ended, so it may have happened: %v", err)
		}
	}
	if out.Operation.Incident != "" {
		out.Status = semel.StatusIncident
	}
	out.Next = semel.DecideAsked(&out.Operation, out.Operation.Contract, now)
}

// interruptible is a context that ends with the first signal that asks this
// command to stop; the second one ends the process.
func (sh *shell) interruptible(ctx context.Context, acting *atomic.Bool) (waiting context.Context, stop func()) {
	waiting, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE) // a reader that went away must not end us before the outcome is recorded
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-waiting.Done():
				return
			case sig := <-signals:
				if acting.Load() {
					continue
				}
				sh.say("%v: no longer waiting; recording what is known (once more to stop at once)", sig)
				signal.Stop(signals)
				cancel()
			}
		}
	}()
	return waiting, func() {
		cancel()
		<-done
		signal.Stop(signals)
	}
}

// readFile reads a file that a flag names, - for stdin.
func (sh *shell) readFile(flag, name string, limit int64) ([]byte, error) {
	from := sh.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("%s cannot be read: %v", flag, err)
		}
		defer f.Close()
		from = f
	}
	body, err := io.ReadAll(io.LimitReader(from, limit+1))
	switch {
	case err != nil:
		return nil, usagef("%s cannot be read: %v", flag, err)
	case int64(len(body)) > limit:
		return nil, usagef("%s %s has more than %d bytes: send a reference to the data instead", flag, name, limit)
	}
	return body, nil
}
