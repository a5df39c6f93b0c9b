package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// onceText is a flag that may be given once: of two keys, neither is meant
// more than the other.
type onceText struct {
	to    *string
	given bool
}

func (f *onceText) String() string {
	if f.to == nil {
		return ""
	}
	return *f.to
}
func (f *onceText) Type() string { return "string" }
func (f *onceText) Set(s string) error {
	if f.given {
		return errors.New("it is given twice: leave out one")
	}
	if s == "" {
		return errors.New("it is empty: give a value, or leave it out")
	}
	*f.to, f.given = s, true
	return nil
}

// span is a flag with a duration; it also reads days.
type span struct{ to *time.Duration }

func (f *span) String() string { return "" }
func (f *span) Type() string   { return "duration" }
func (f *span) Set(s string) error {
	text := s
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return errDuration
		}
		text = fmt.Sprintf("%dh", n*24)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errDuration
	}
	if d < 0 {
		return errors.New("it is negative: give a time such as 10s")
	}
	*f.to = d
	return nil
}

// zeroable is a span whose zero is meant, for an option that reads a negative
// time as none and zero as its default.
type zeroable struct{ span }

func (f *zeroable) Set(s string) error {
	if err := f.span.Set(s); err != nil {
		return err
	}
	if *f.to == 0 {
		*f.to = -1
	}
	return nil
}

var errDuration = errors.New("it is no duration: write it with its unit, such as 500ms, 10s, 5m, 24h or 7d")

// share is a flag with a part of all, from 0 to 1.
type share struct{ to *float64 }

func (f *share) String() string { return "" }
func (f *share) Type() string   { return "share" }
func (f *share) Set(s string) error {
	part, err := strconv.ParseFloat(s, 64)
	if err != nil || !(part >= 0 && part <= 1) { // NaN is neither
		return errors.New("it is no share: write a number from 0 to 1, such as 0.3")
	}
	*f.to = part
	return nil
}

// exitCodes is a flag with a list of exit codes.
type exitCodes struct{ to *[]int }

func (f *exitCodes) String() string { return "" }
func (f *exitCodes) Type() string   { return "N,..." }
func (f *exitCodes) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > 255 {
			return fmt.Errorf("%q is no exit code that can mean that nothing happened: give numbers from 1 to 255, such as 64,69; 0 always means that it happened", part)
		}
		if !slices.Contains(*f.to, n) {
			*f.to = append(*f.to, n)
		}
	}
	return nil
}
