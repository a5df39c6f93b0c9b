package semel

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Each runs body for every item, at most atOnce at a time, each in a branch of
// its own that key names. The list is recorded before the first branch begins,
// and later resumes use the record. One item that fails, waits or needs a
// person does not stop the others. The error is an *ItemsError when items
// failed; those are tried again when a person retries the run, and the others
// are not repeated.
func Each[T any](ctx Context, name string, items []T, key func(T) string, atOnce int, body func(ctx Context, item T) error) error {
	if key == nil {
		return &InputError{Field: "each " + name, Problem: "has no key function", Hint: "name each item by what it is, for example its invoice number"}
	}
	s := &EachStep{AtOnce: atOnce, Keys: make([]string, len(items)), Items: make([][]byte, len(items))}
	for i, item := range items {
		data, err := json.Marshal(item)
		if err != nil {
			return fmt.Errorf("encode item %d of %s: %w", i+1, name, err)
		}
		s.Keys[i], s.Items[i] = key(item), data
	}
	s.Body = func(ctx Context, data []byte) error {
		var item T
		if err := json.Unmarshal(data, &item); err != nil {
			return &UnreadableError{Path: ctx.Branch(), Err: err}
		}
		return body(ctx, item)
	}
	if err := s.Validate(name); err != nil {
		return err
	}
	_, err := ctx.step(name, s)
	return err
}

// Validate reports what is wrong with the list: an item without a usable key,
// two with one key, or keys that are the position in the list.
func (s *EachStep) Validate(name string) error {
	if s.AtOnce < 0 {
		return &InputError{Field: "each " + name, Problem: fmt.Sprintf("runs %d at once", s.AtOnce), Hint: "give 1 or more"}
	}
	seen := make(map[string]int, len(s.Keys))
	positions := len(s.Keys) > 1
	for i, k := range s.Keys {
		if err := validItem(k); err != nil {
			return &InputError{Field: fmt.Sprintf("key of item %d of %s", i+1, name), Problem: "cannot be used: " + err.Error(), Hint: "name each item by what it is"}
		}
		if first, twice := seen[k]; twice {
			return &InputError{
				Field: "each " + name, Problem: fmt.Sprintf("has two items with the key %q, number %d and number %d", k, first+1, i+1),
				Hint: "two items that are both meant need two keys",
			}
		}
		seen[k] = i
		positions = positions && (k == fmt.Sprint(i) || k == fmt.Sprint(i+1)) && string(s.Items[i]) != k && string(s.Items[i]) != fmt.Sprintf("%q", k)
	}
	if positions {
		return &InputError{Field: "each " + name, Problem: "uses the position in the list as key", Hint: "a list that changes would give one item's record to another: name each item by what it is"}
	}
	return nil
}

// validItem reports what is wrong with the key of an item: as for a step's name,
// but that it may hold "/", as invoice numbers do.
func validItem(key string) error { return ValidateStepName(strings.ReplaceAll(key, "/", "-")) }

// Parallel runs named branches at the same time and waits for all of them. The
// error is an *ItemsError when branches failed.
func Parallel(ctx Context, name string, branches map[string]func(Context) error) error {
	s := &EachStep{AtOnce: len(branches)}
	for _, k := range sortedKeys(branches) {
		if err := ValidateStepName(k); err != nil {
			return err
		}
		data, err := json.Marshal(k)
		if err != nil {
			return err
		}
		s.Keys, s.Items = append(s.Keys, k), append(s.Items, data)
	}
	s.Body = func(ctx Context, data []byte) error {
		var k string
		if err := json.Unmarshal(data, &k); err != nil {
			return &UnreadableError{Path: ctx.Branch(), Err: err}
		}
		return branches[k](ctx)
	}
	_, err := ctx.step(name, s)
	return err
}

// ItemsError says which items of a list failed. Nothing happened for the step
// that failed; steps before it are recorded and stay.
type ItemsError struct {
	Path   string
	Total  int
	Failed []ItemFailure
}

// ItemFailure is one item that failed.
type ItemFailure struct {
	Key       string `json:"key"`
	Reason    string `json:"reason"`
	Exhausted bool   `json:"exhausted,omitzero"`
}

func (e *ItemsError) Error() string {
	first := e.Failed[0]
	s := fmt.Sprintf("%d of %d items of %s failed; %s: %s", len(e.Failed), e.Total, e.Path, first.Key, first.Reason)
	if n := len(e.Failed) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}
