package workflowfile

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/semel-dev/semel"
)

// uses performs an action, after its approval where it needs one.
func (l list) uses(ctx semel.Context, s *Step) (map[string]any, error) {
	if s.Approve != nil {
		if _, err := l.approve(ctx, "approve-"+s.ID, s, s.Approve.Ask); err != nil {
			return nil, err
		}
	}
	call, err := l.call(ctx, s)
	if err != nil {
		return nil, err
	}
	step := &semel.DoStep{Call: call, Exempt: !s.asked && s.Approve == nil}
	if s.Uses.Retry != nil {
		step.Retry = *s.Uses.Retry
	}
	var v any
	taken := false
	step.Read = func(r *semel.Result) (err error) {
		taken = true
		if v, err = answer(r); err != nil {
			return fmt.Errorf("%s:%d: %w", l.d.File, s.Line, err)
		}
		return nil
	}
	rec, err := semel.Take(ctx, l.prefix+s.ID, step)
	if err != nil {
		return nil, err
	}
	if !taken {
		if err := step.Read(rec.Answer()); err != nil {
			return nil, &semel.UnreadableError{Path: rec.Path, Err: err}
		}
	}
	out := result(v)
	switch v := v.(type) {
	case map[string]any:
		if rows, ok := v["rows"].([]any); ok {
			out["rows"] = rows
		}
	case []any:
		out["rows"] = v
	}
	return out, nil
}

// approve waits for a person's decision about the exact request of a step.
func (l list) approve(ctx semel.Context, name string, of *Step, ask semel.Ask) (map[string]any, error) {
	call, err := l.call(ctx, of)
	if err != nil {
		return nil, err
	}
	rec, err := semel.Take(ctx, l.prefix+name, &semel.ApprovalStep{Call: call, Ask: ask})
	switch {
	case err != nil:
		return nil, err
	case rec.Outcome == semel.StepTimedOut:
		return nil, fmt.Errorf("approval of step %s: %w", of.ID, semel.ErrTimedOut)
	case rec.Outcome == semel.StepRejected:
		return nil, fmt.Errorf("step %s: %w: %s", of.ID, semel.ErrRejected, rec.Failure)
	}
	var a semel.Approval
	if err := json.Unmarshal(rec.Result, &a); err != nil {
		return nil, &semel.UnreadableError{Path: rec.Path, Err: err}
	}
	return result(map[string]any{"by": a.By, "reason": a.Reason}), nil
}

// call is the exact request of a step. It is the same whenever it is made in
// the run.
func (l list) call(ctx semel.Context, s *Step) (semel.Call, error) {
	u, with := s.Uses, map[string]any{}
	if u.With != nil {
		v, err := u.With.Eval(ctx, l.vars)
		if err != nil {
			return semel.Call{}, err
		}
		with = v.(map[string]any) // it was read as a mapping
	}
	call, err := l.actions.Call(u.Connection, u.Action, with)
	if err != nil {
		return call, err
	}
	if u.Read {
		call.Contract.Protection = semel.Commutes
	}
	u.extend(&call.Contract, l.d.Owner)
	if u.Effect != nil && u.Effect.Key != nil {
		key, err := u.Effect.Key.Key(ctx, l.vars)
		call.Key = semel.Key(key)
		return call, err
	}
	path := l.prefix + s.ID
	if branch := ctx.Branch(); branch != "" {
		path = branch + "/" + path
	}
	run := ctx.Run()
	call.Key = semel.StepKey(&run, path)
	return call, nil
}

// extend adds to a contract what the file says.
func (u *Uses) extend(c *semel.Contract, owner string) {
	if c.Owner == "" {
		c.Owner = owner
	}
	if c.Protection == "" {
		c.Protection = semel.Unprotected
	}
	if u.Timeout > 0 {
		c.Timeout = u.Timeout
	}
	if u.Effect == nil {
		return
	}
	if u.Effect.Kind != "" {
		c.Effect = u.Effect.Kind
	}
	if u.Effect.OnFailed != "" {
		c.OnFailed = u.Effect.OnFailed
	}
	if u.Effect.OnUnknown == Ask {
		c.Protection, c.AbsenceIsProof = semel.Unprotected, false
		c.LookupURL, c.FoundIn, c.CanLookUp, c.Check = "", "", false, ""
	}
}

// answer is what a destination said, as expressions see it: a JSON value, a
// text, or null for nothing.
func answer(r *semel.Result) (any, error) {
	switch {
	case r.Truncated():
		return nil, fmt.Errorf("the answer of %d bytes was kept only in part", r.Size)
	case r == nil || len(r.Body) == 0:
		return nil, nil
	}
	v, err := decode(r.Body)
	if err == nil {
		return v, nil
	}
	if isJSON(r.MediaType) || !utf8.Valid(r.Body) {
		return nil, err
	}
	return string(r.Body), nil
}

func isJSON(mediaType string) bool {
	t, _, err := mime.ParseMediaType(mediaType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}
