package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

// Rate makes a share of the requests misbehave without being asked to.
//
// Whether and how a request misbehaves is a pure function of the seed, the
// resource, the reference (the body if it has none) and how many requests for
// that reference came before. It depends on neither time, order nor
// concurrency: two clients that meet the same seed meet the same faults on the
// same references. Raising a share keeps every fault that was drawn before.
type Rate struct {
	// First is the share of references, from 0 to 1, whose first request
	// misbehaves.
	First float64
	// Later is the share of all further requests that misbehave, each drawn for
	// itself. Zero lets every second try go through.
	Later float64
	// Mix weighs the faults against each other. Nil loses answers: drop_after 2,
	// error_after 1, drop_before 1.
	Mix map[Fault]int
}

// losing is the mix of a rate that names none.
var losing = map[Fault]int{DropAfter: 2, ErrorAfter: 1, DropBefore: 1}

func (r Rate) validate() error {
	for name, share := range map[string]float64{"First": r.First, "Later": r.Later} {
		if !(share >= 0 && share <= 1) { // NaN is neither
			return fmt.Errorf("%s is %v: a share lies between 0 and 1", name, share)
		}
	}
	total := 0
	for fault, weight := range r.Mix {
		if !slices.Contains(faults, fault) {
			return fmt.Errorf("unknown fault %q in Mix: use one of %s", fault, names(faults))
		}
		if weight < 0 {
			return fmt.Errorf("weight of %s is %d: it cannot be negative", fault, weight)
		}
		total += weight
	}
	if r.Mix != nil && total == 0 {
		return fmt.Errorf("the weights of Mix add up to 0: give one fault a weight, or leave Mix nil")
	}
	return nil
}

// draw is the fault of the nth request for a subject, from 1.
func (r Rate) draw(seed uint64, resource Resource, subject string, nth int) Fault {
	share := r.First
	if nth > 1 {
		share = r.Later
	}
	sum := digest(seed, "fault", string(resource), subject, strconv.Itoa(nth))
	if float64(binary.BigEndian.Uint64(sum[:8])>>11)/(1<<53) >= share {
		return ""
	}
	mix := r.Mix
	if mix == nil {
		mix = losing
	}
	total := 0
	for _, weight := range mix {
		total += weight
	}
	ticket := int(binary.BigEndian.Uint64(sum[8:16]) % uint64(total))
	for _, fault := range faults {
		if ticket -= mix[fault]; ticket < 0 {
			return fault
		}
	}
	return "" // not reached: the weights add up to total
}

// digest hashes parts so that no two lists of parts meet.
func digest(seed uint64, parts ...string) [sha256.Size]byte {
	buf := binary.BigEndian.AppendUint64(nil, seed)
	for _, part := range parts {
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(part)))
		buf = append(buf, part...)
	}
	return sha256.Sum256(buf)
}
