package drill

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Placed is a fault at one call of a port, counted from 1 over all workers of
// an execution; 0 where the fault concerns the execution as a whole.
type Placed struct {
	Fault Fault
	Call  int
}

// Schedule says what breaks in one execution, in order. With the same
// workflow, input and answers it leads to the same story. None is an execution
// that nothing breaks.
type Schedule []Placed

// String is the seed that replays the schedule, for example
// "answer-lost@17,dies-after@23".
func (s Schedule) String() string {
	parts := make([]string, len(s))
	for i, p := range s {
		parts[i] = string(p.Fault)
		if p.Call > 0 {
			parts[i] += "@" + strconv.Itoa(p.Call)
		}
	}
	return strings.Join(parts, ",")
}

// ParseSchedule reads what String wrote.
func ParseSchedule(text string) (Schedule, error) {
	var s Schedule
	for part := range strings.SplitSeq(text, ",") {
		name, place, placed := strings.Cut(part, "@")
		p := Placed{Fault: Fault(name)}
		k, ok := kindOf(p.Fault)
		if !ok {
			return nil, fmt.Errorf("%q is no fault: a seed looks like answer-lost@17 and is printed with its story", name)
		}
		if placed != (k.fits != nil) {
			return nil, fmt.Errorf("%q: this fault is placed at one call as in answer-lost@17, or concerns the whole execution as record-expired does", part)
		}
		if placed {
			n, err := strconv.Atoi(place)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%q: calls are counted from 1, as in answer-lost@17", part)
			}
			p.Call = n
		}
		s = append(s, p)
	}
	return s, nil
}

// at is the fault at a call, or none.
func (s Schedule) at(n int) Fault {
	for _, p := range s {
		if p.Call == n && n > 0 {
			return p.Fault
		}
	}
	return ""
}

// has reports whether one of these faults is part of the schedule.
func (s Schedule) has(faults ...Fault) bool {
	return slices.ContainsFunc(s, func(p Placed) bool { return slices.Contains(faults, p.Fault) })
}
