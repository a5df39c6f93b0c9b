package drill_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
)

// subject is a small workflow that the drill finds nothing wrong with, and
// what it is drilled with.
type subject struct {
	name string
	of   semel.WorkflowDefinition
	with drill.Options
}

// subjects have one way of protection or one kind of step each. What is wrong
// with an engine shows in one of them: see mutants/drill.go.
func subjects() []subject {
	charge, publish, note, pack := action("charge", keyed), action("publish", looked), action("note", bare), action("pack", row)
	try := tried()
	escalate, label := action("escalate", status), action("label", tag)
	child := semel.Workflow[order]{Name: "child", Func: func(ctx semel.Context, o order) error {
		_, err := semel.Do(ctx, note, o)
		return err
	}}
	of := func(name string, steps func(semel.Context, order) error) subject {
		s := subject{name, semel.Workflow[order]{Name: name, Func: steps}.Definition(), drill.Options{
			Input: order{ID: "o1", Items: []string{"a", "b"}}, Pairs: 12,
		}}
		if name == "parent" {
			s.with.Children = []semel.WorkflowDefinition{child.Definition()}
		}
		return s
	}
	straight := func(name string, actions ...semel.Action[order, answer]) subject {
		return of(name, do(actions...).Func)
	}
	return []subject{
		straight("keyed", charge, label),
		straight("lookup", publish, label),
		straight("unprotected", note, action("tell", bare)),
		straight("transactional", pack, label),
		straight("absolute", escalate, label),
		straight("commutes", label, action("mark", tag)),
		of("approval", func(ctx semel.Context, o order) error {
			if err := semel.Approve(ctx, charge, o, semel.Ask{Of: "anybody", Valid: 40 * time.Second}); err != nil {
				return err
			}
			_, err := semel.Do(ctx, charge, o)
			return err
		}),
		of("each", func(ctx semel.Context, o order) error {
			return semel.Each(ctx, "items", o.Items, func(i string) string { return i }, 2, func(ctx semel.Context, i string) error {
				_, err := semel.Do(ctx, note, order{ID: i})
				return err
			})
		}),
		of("event", func(ctx semel.Context, o order) error {
			if _, err := semel.Wait[any](ctx, "picked-up", o.ID, 0); err != nil {
				return err
			}
			_, err := semel.Do(ctx, note, o)
			return err
		}),
		of("parent", func(ctx semel.Context, o order) error {
			_, err := semel.Child(ctx, child, semel.Key(o.ID), o)
			return err
		}),
		of("retry", func(ctx semel.Context, o order) error {
			_, err := semel.Retrying(ctx, try, o, semel.Retry{Attempts: 3, Backoff: time.Minute})
			return err
		}),
		of("random", func(ctx semel.Context, _ order) error {
			id, err := semel.Random(ctx, "number")
			if err != nil {
				return err
			}
			if _, err := semel.Do(ctx, charge, order{ID: fmt.Sprint(id)}); err != nil {
				return err
			}
			_, err = semel.Do(ctx, note, order{ID: fmt.Sprint(id)})
			return err
		}),
	}
}

// tried is an action whose body says how often it was built, which is no part
// of what identifies it.
func tried() semel.Action[order, answer] {
	var tries atomic.Int64
	a := action("try", bare)
	a.Volatile = []string{"built"}
	a.Send.Request = func(o order) (semel.Request, error) {
		body, err := json.Marshal(map[string]any{"order": o.ID, "built": tries.Add(1)})
		return semel.Request{Kind: "call", Body: body, MediaType: "application/json"}, err
	}
	return a
}

// M38: each wrong engine of mutants/drill.go fails one of these.
func TestCorpusSubjects(t *testing.T) {
	unhurried(t)
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			began := time.Now()
			v := drill.Test(t, s.of, s.with)
			t.Logf("%d schedules in %v", v.Schedules, time.Since(began))
		})
	}
}
