package probe

// Question is one thing that a probe asks of a destination.
type Question string

// The questions, in the order in which they are asked: what matters most for
// recovery comes first.
const (
	Absence     Question = "absence"      // what does a lookup say of what does not exist?
	SameKey     Question = "same_key"     // one key twice: one effect or two?
	Visibility  Question = "visibility"   // when does a lookup find a new effect?
	OtherKey    Question = "other_key"    // does an effect under another key have another name?
	AtOnce      Question = "at_once"      // one key several times at once: how many effects?
	ChangedBody Question = "changed_body" // what becomes of another body under a used key?
	AfterError  Question = "after_error"  // does a key keep an error?
	Spelling    Question = "spelling"     // are the bare and the quoted key one key?
	WithoutKey  Question = "without_key"  // the same request twice without a key: how many effects?
	AfterDelay  Question = "after_delay"  // does a key still hold later?
)

// Questions lists them in order.
func Questions() []Question {
	return []Question{Absence, SameKey, Visibility, OtherKey, AtOnce, ChangedBody, AfterError, Spelling, WithoutKey, AfterDelay}
}

// together is how many requests AtOnce sends.
const together = 3

// cost is how many requests that may have an effect a question needs.
func (q Question) cost() int {
	switch q {
	case SameKey, AfterError, WithoutKey:
		return 2
	case AtOnce:
		return together
	case OtherKey, Spelling, ChangedBody, AfterDelay:
		return 1
	case Absence, Visibility:
	}
	return 0
}

// Finding is what was seen.
type Finding string

// The findings.
const (
	OneEffect      Finding = "one_effect"      // all requests had one effect together
	SeveralEffects Finding = "several_effects" // more than one, or one more
	Refused        Finding = "refused"         // the request was refused
	Replayed       Finding = "replayed"        // the old answer came back, to another request
	Kept           Finding = "kept"            // the key keeps the error
	Free           Finding = "free"            // the key was free after the error
	Absent         Finding = "absent"          // the lookup said that there is nothing
	Found          Finding = "found"           // the lookup found something
	NotFound       Finding = "not_found"       // the lookup did not find it in time
	Unknown        Finding = "unknown"         // the answers do not tell
	NotTested      Finding = "not_tested"
)

// Findings lists them.
func Findings() []Finding {
	return []Finding{OneEffect, SeveralEffects, Refused, Replayed, Kept, Free, Absent, Found, NotFound, Unknown, NotTested}
}
