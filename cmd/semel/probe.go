package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/probe"
)

const probeHelp = `Find out what a destination really does, instead of trusting what it promises.

A probe sends a few requests to a TEST endpoint: one key twice, several times at
once, with another body, after an error, spelled the other way, after --delay; the
same request without a key; and lookups. It reports what was seen, which declared
promise holds, every difference and what it means for recovery, and a profile that
can be used.

What is declared comes from a connection of semel.yaml, an action of one, or a
built-in profile, and from the flags, which mean what they mean for semel do.

Requests really happen. The probe says how many effects they may have at most, and
asks before it sends; --yes is for scripts. Every request that may have an effect
counts against --max-effects, also one whose answer was lost, and what does not fit
is not tested. Requests are labelled: User-Agent semel-probe, keys that begin with
semel-probe-, and a label in the member of the body that --label names. Nothing is
undone.

Exit codes: 0 every declared promise that was tested holds; 1 one does not hold;
3 for one the answers do not tell, or none could be tested; 2 bad input, or nobody said yes; 6 nothing
could be sent.`

const probeExamples = `  # Does the provider keep what its profile says?
  semel probe stripe --base https://test.example.com --post /v1/charges \
      --header "Authorization: Bearer $TEST_TOKEN" --json '{"amount":100,"currency":"eur"}' --label metadata.order

  # An action of semel.yaml, and a key that has to hold for ten seconds at least.
  semel probe payments.charge --json '{"amount":100}' --label reference --delay 10s

  # An endpoint about which nothing is declared; write what was seen.
  semel probe --post https://test.example.com/orders --json '{"amount":100}' --label reference --write orders.yaml`

// probeOptions are the flags of probe.
type probeOptions struct {
	doOptions
	json, base                      string
	changed, refused                string
	label, reference, name, writeTo string
	yes, evidence                   bool
	limits                          probe.Options
}

// declaring are the flags that say what is declared; an action says it itself.
var declaring = []string{
	"post", "header", "base", "protection", "window", "key-header", "lookup", "found-in", "visible-after", "max-processing", "absence-is-proof", "timeout",
}

func newProbe(sh *shell) *cobra.Command {
	var o probeOptions
	cmd := &cobra.Command{
		Use:   "probe [CONNECTION.ACTION | CONNECTION --post PATH | PROFILE --base URL --post PATH | --post URL] --json BODY",
		Short: "Find out what a destination really does", Long: probeHelp, Example: probeExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes one destination, not %q as well", cmd.CommandPath(), args[1])
			}
			return nil
		},
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			given := func(name string) bool { return cmd.Flags().Changed(name) }
			return sh.probe(cmd.Context(), &o, given, strings.Join(args, ""))
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&onceText{to: &o.post}, "post", "URL to post to; a path with a connection or --base")
	f.Var(&onceText{to: &o.base}, "base", "where the destination lives, with a profile")
	f.Var(&onceText{to: &o.json}, "json", "body of a request that the destination accepts, or the input of the action")
	f.Var(&onceText{to: &o.body}, "body", "file with that body, - for stdin")
	f.StringArrayVar(&o.header, "header", nil, "header \"Name: value\"; may be repeated; credentials are never shown")
	f.Var(&onceText{to: &o.label}, "label", "member of the body that takes the label, for example reference")
	f.Var(&onceText{to: &o.changed}, "changed-json", "another body, to send under a used key (default the same with another label)")
	f.Var(&onceText{to: &o.refused}, "refused-json", "a body that the destination refuses (default an object with the label only)")
	f.Var(&onceText{to: &o.reference}, "reference", "where an answer names its effect (default of the profile, or id)")

	f.IntVar(&o.limits.MaxEffects, "max-effects", probe.DefaultMaxEffects, "most requests that may have an effect")
	f.Var(&span{to: &o.limits.Delay}, "delay", "use the first key again so long after its first use (default not at all)")
	f.Var(&span{to: &o.limits.LookFor}, "look-for", "how long to look for a new effect (default 10s)")
	f.BoolVar(&o.yes, "yes", false, "send without asking: it is a test endpoint, and the effects may happen")
	f.BoolVar(&o.evidence, "evidence", false, "show every request and answer")
	f.Var(&onceText{to: &o.writeTo}, "write", "file for the profile, which must not exist yet (default print it)")
	f.Var(&onceText{to: &o.name}, "name", "name of the profile (default probed)")

	f.Var(&onceText{to: &o.protection}, "protection", "declared protection: none, keyed or lookup (default what the profile declares)")
	f.Var(&span{to: &o.window}, "window", "declared time for which a key is honoured, for example 24h")
	f.Var(&onceText{to: &o.keyHeader}, "key-header", "header that carries the key (default Idempotency-Key)")
	f.Var(&onceText{to: &o.lookup}, "lookup", "URL that tells whether it happened")
	f.Var(&onceText{to: &o.foundIn}, "found-in", "where the lookup's answer lists what it found, for example data")
	f.Var(&span{to: &o.visibleAfter}, "visible-after", "declared time for which a lookup may still miss an effect")
	f.Var(&span{to: &o.processing}, "max-processing", "declared longest time from the last byte sent to the effect")
	f.BoolVar(&o.absence, "absence-is-proof", false, "it is declared that a lookup which finds nothing proves that nothing happened")
	f.Var(&span{to: &o.timeout}, "timeout", "how long to wait for each answer (default 10s)")
	return cmd
}

func (sh *shell) probe(ctx context.Context, o *probeOptions, given func(string) bool, name string) error {
	if given("max-effects") && o.limits.MaxEffects < 1 {
		return usagef("--max-effects %d leaves nothing to send: allow at least 1", o.limits.MaxEffects)
	}
	if err := o.check(given); err != nil {
		return err
	}
	target, config, err := sh.probeTarget(ctx, o, given, name)
	if err != nil {
		return err
	}
	defer sh.shut("the destination", func() error {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
		if config != nil {
			return config.Close(ending)
		}
		return target.Destination.Close(ending)
	})
	sh.noteQuery("--post", target.Request.URL)
	sh.noteQuery("--lookup", o.lookup)
	target.Label, target.Reference = o.label, o.reference
	target.Changed, target.Refused = optional(o.changed), optional(o.refused)
	o.limits.Name = o.name
	p, err := probe.New(target, o.limits)
	if err != nil {
		return err
	}
	if err := sh.agree(p.Plan(), o.yes); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := p.Run(ctx)
	if ctx.Err() != nil {
		sh.say("interrupted: what was not asked is not tested")
	}
	if err != nil {
		return err
	}
	if err := sh.showProbe(&report, o); err != nil || ctx.Err() == nil {
		return err
	}
	return &outcomeError{exitUnknown}
}

func optional(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// check refuses a command line that cannot be meant, before anything is opened.
func (o *probeOptions) check(given func(string) bool) error {
	switch {
	case o.json != "" && o.body != "":
		return usagef("--json and --body are two bodies: give one of them")
	case given("timeout") && o.timeout == 0:
		return usagef("--timeout 0s would wait for ever: give a time such as 10s")
	case given("look-for") && o.limits.LookFor == 0:
		return usagef("--look-for 0s would not look: give a time such as 10s")
	}
	for flag, text := range map[string]string{"json": o.json, "changed-json": o.changed, "refused-json": o.refused} {
		if text != "" && !json.Valid([]byte(text)) {
			return usagef("--%s is not JSON: write it as '{\"amount\": 100}'", flag)
		}
	}
	if !given("timeout") {
		o.timeout = defaultTimeout
	}
	if o.writeTo == "" {
		return nil
	}
	if _, err := os.Lstat(o.writeTo); !errors.Is(err, fs.ErrNotExist) {
		return usagef("--write %s: the file is there already; name another, or remove it", o.writeTo)
	}
	if info, err := os.Stat(filepath.Dir(o.writeTo)); err != nil || !info.IsDir() {
		return usagef("--write %s: there is no such directory", o.writeTo)
	}
	return nil
}

// probeTarget finds what is probed. The configuration, if there is one, owns the
// destination.
func (sh *shell) probeTarget(ctx context.Context, o *probeOptions, given func(string) bool, name string) (t probe.Target, config *connection.Config, err error) {
	body := []byte(o.json)
	if o.body != "" {
		if body, err = sh.readFile("--body", o.body, semel.MaxBody); err != nil {
			return t, nil, err
		}
	}
	if name != "" {
		if config, err = sh.probeConfig(); err != nil {
			return t, nil, err
		}
	}
	of, action, isAction := strings.Cut(name, ".")
	switch {
	case config != nil && slices.Contains(config.Names(), of):
		t.Secrets, err = secretsOf(ctx, config, of)
		if err != nil {
			return t, nil, err
		}
		if isAction {
			return t, config, o.action(config, &t, of, action, given, body)
		}
		if t.Destination, err = config.HTTP(of); err != nil {
			return t, nil, err
		}
	case isAction:
		return t, nil, usagef("there is no connection %q in a semel.yaml: name its file with --config", of)
	default:
		if config != nil {
			_ = config.Close(ctx) // nothing of it is open
			config = nil
		}
		profile, err := builtInOr(name)
		if err != nil {
			return t, nil, err
		}
		if o.base == "" && strings.HasPrefix(o.post, "/") {
			return t, nil, usagef("--base is missing: --post %s is a path, so say where the destination lives, for example --base https://test.example.com", o.post)
		}
		if t.Destination, err = httpdest.New(httpdest.Options{Base: o.base, Profile: profile}); err != nil {
			return t, nil, err
		}
	}
	if config != nil && o.base != "" {
		return t, nil, usagef("--base belongs to a profile: connection %s has its own", of)
	}
	return t, config, o.endpoint(&t, given, body)
}

// builtInOr is the profile of that name, or the one that knows nothing.
func builtInOr(name string) (*httpdest.Profile, error) {
	if name == "" {
		return httpdest.BuiltIn("generic")
	}
	p, err := httpdest.BuiltIn(name)
	if err != nil {
		return nil, usagef("%q is neither a connection of a semel.yaml (name its file with --config) nor a built-in profile", name)
	}
	return p, nil
}

// endpoint completes a target that the flags lead to.
func (o *probeOptions) endpoint(t *probe.Target, given func(string) bool, body []byte) error {
	if o.post == "" {
		return usagef("there is nowhere to post to: give --post URL, a path with a connection or --base, or name an action as CONNECTION.ACTION")
	}
	var err error
	if strings.HasPrefix(o.lookup, "/") {
		if o.lookup, err = t.Destination.URL(o.lookup); err != nil {
			return err
		}
	}
	if t.Contract, err = o.promise(t.Destination, given); err != nil {
		return err
	}
	if err := t.Contract.Validate(); err != nil {
		return err
	}
	t.Request, t.Withheld, err = t.Destination.NewRequest("POST", o.post, o.header, body)
	return err
}

// action completes a target that is an action of a connection.
func (o *probeOptions) action(config *connection.Config, t *probe.Target, of, action string, given func(string) bool, body []byte) error {
	for _, flag := range declaring {
		if given(flag) {
			return usagef("--%s does not go with an action, which semel.yaml declares: leave it out, or probe connection %s with --post", flag, of)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var with map[string]any
	if err := dec.Decode(&with); err != nil {
		return usagef("--json is no input for an action: give an object such as '{\"amount\": 100}'")
	}
	call, err := config.Call(of, action, with)
	if input, ok := errors.AsType[*semel.InputError](err); ok && input.Field == "with" {
		return usagef("--json %s: %s", input.Problem, input.Hint)
	} else if err != nil {
		return err
	}
	if call.Request.Kind != httpdest.Kind || call.Request.Method == "GET" {
		return usagef("%s.%s has no effect over HTTP, so there is nothing to probe", of, action)
	}
	t.Request, t.Contract = call.Request, call.Contract
	t.Destination, err = config.HTTP(of)
	return err
}

// probeConfig reads the file with named connections: the one that is named, the
// one here or above, or the one beside the database; nil where there is none.
func (sh *shell) probeConfig() (*connection.Config, error) {
	path := sh.configBeside(".")
	if path == "" {
		d, err := sh.database()
		if err != nil {
			return nil, nil //nolint:nilerr // without a database there is nothing beside it
		}
		if path, _ = sh.configPath(d); path == "" {
			return nil, nil
		}
		if _, err := os.Stat(path); err != nil {
			return nil, nil //nolint:nilerr // nor is there a file
		}
	}
	return connection.Load(path)
}

// secretsOf are the values that a report must not show.
func secretsOf(ctx context.Context, config *connection.Config, name string) (values []string, err error) {
	for _, ref := range config.Secrets(name) {
		value, err := ref.Resolve(ctx)
		if err != nil {
			return nil, fmt.Errorf("nothing was sent: connection %q: %w", name, err)
		}
		values = append(values, value)
	}
	return values, nil
}
