package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

// watchEvery is how often a watched run is looked at.
const watchEvery = 300 * time.Millisecond

func newRunWatch(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "watch ID | WORKFLOW KEY", Short: "Follow a run until it has ended",
		Long: `Follow a run until it has ended: on a terminal semel run show is drawn again
whenever something changed, elsewhere there is a line for each change, and with
--output json an object. Ctrl-C ends the watching, and nothing else.

The exit code is 0 when the run completed, and 1 when it failed or was cancelled.`,
		Example: "  semel run watch billing 2026-03-01",
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			name, err := nameRun(cmd, args)
			if err != nil {
				return err
			}
			k, err := sh.lookKeeper(cmd.Context())
			if err != nil {
				return sh.noRun(err, name)
			}
			defer sh.shut("the database", k.Close)
			r, err := name.find(cmd.Context(), sh, k)
			if err != nil {
				return err
			}
			return sh.watch(cmd.Context(), k, r)
		}),
	}
}

func (sh *shell) watch(ctx context.Context, k *keeper, r semel.Run) error {
	var shown string
	for {
		story, err := k.story(ctx, r)
		if err != nil {
			return err
		}
		screen := sh.screen(story)
		state := string(screen)
		if !sh.terminal { // the end of a lease, for example, is no news
			state = fmt.Sprint(r.UpdatedAt, runWord(&r, story.now), r.Done, r.Total, len(story.waits))
		}
		if state != shown {
			shown = state
			if err := sh.write(screen); err != nil {
				return err
			}
		}
		if r.State.Ended() {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchEvery):
		}
		if r, err = k.LoadRun(ctx, r.ID); err != nil {
			return err
		}
	}
	if code := codeOfRun(&r); code != exitCompleted {
		return &outcomeError{code}
	}
	return nil
}

// screen is what a watcher sees of a run.
func (sh *shell) screen(s *runStory) []byte {
	r := &s.run
	var b bytes.Buffer
	switch {
	case sh.json():
		b.Write(encode(sh.describeRun(r, s.waits, s.now)))
		b.WriteByte('\n')
	case sh.terminal:
		b.WriteString("\x1b[H\x1b[2J")
		sh.tellRun(&b, s, false)
	default:
		line := moment(r.UpdatedAt) + "  " + runWord(r, s.now)
		if p := progress(r); p != "" {
			line += "  " + p
		}
		if why := runWhy(r, s.now); why != "" {
			line += "  " + why
		}
		fmt.Fprintln(&b, oneLine(line))
	}
	return b.Bytes()
}
