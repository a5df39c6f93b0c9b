package httpdest

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
)

// Confidence says how far a field of a profile can be relied on.
type Confidence string

// The confidences, best first. A field that is uncertain takes the unsafe
// reading: no window, no completion and no failure follow from it.
const (
	Tested     Confidence = "tested"     // run and seen
	Documented Confidence = "documented" // the provider's own text was read
	Quoted     Confidence = "quoted"     // the provider's text, through somebody else
	Assumed    Confidence = "assumed"    // what most do; nobody promised it
	Uncertain  Confidence = "uncertain"
)

// Fact is where a field of a profile comes from.
type Fact struct {
	Source     string     `yaml:"source"`
	Checked    string     `yaml:"checked"` // a date
	Confidence Confidence `yaml:"confidence"`
}

// Meaning is what an answer says about the effect.
type Meaning string

// The meanings.
const (
	MeansCompleted Meaning = "completed" // it happened
	MeansExists    Meaning = "exists"    // it had happened already, and the answer names it
	MeansAccepted  Meaning = "accepted"  // it may still happen or fail
	MeansRefused   Meaning = "refused"   // this request had no effect
	MeansRetained  Meaning = "retained"  // no effect under this key, and the same answer for ever
	MeansRunning   Meaning = "running"   // another request with this key is running
	MeansMismatch  Meaning = "mismatch"  // the key was seen with another request
	MeansPartial   Meaning = "partial"   // some of it happened
	MeansUnknown   Meaning = "unknown"   // it does not tell
)

var meanings = []Meaning{
	MeansCompleted, MeansExists, MeansAccepted, MeansRefused, MeansRetained, MeansRunning,
	MeansMismatch, MeansPartial, MeansUnknown,
}

// Profile is what is known about a destination: versioned data, each field
// with its source. It is read-only.
type Profile struct {
	Name    string `yaml:"name"`
	Version int    `yaml:"version"`
	Title   string `yaml:"title"`
	// Key says how the destination takes a key; without a header it takes none.
	Key struct {
		Header string `yaml:"header"`
		Quoted bool   `yaml:"quoted"`
		Max    int    `yaml:"max_length"`
		Fact   `yaml:",inline"`
	} `yaml:"key"`
	// Window is how long a key is honoured.
	Window struct {
		Is   Duration `yaml:"is"`
		Fact `yaml:",inline"`
	} `yaml:"window"`
	// ReplayMarker is the header that marks an answer from memory.
	ReplayMarker struct {
		Header string `yaml:"header"`
		Is     string `yaml:"is"`
		Fact   `yaml:",inline"`
	} `yaml:"replay_marker"`
	// Reference is where an answer names the effect.
	Reference struct {
		At   string `yaml:"at"`
		Fact `yaml:",inline"`
	} `yaml:"reference"`
	// Compare names members that a request and the object found for it share:
	// one that differs says that the object is another's.
	Compare struct {
		Fields []string `yaml:"fields"`
		Fact   `yaml:",inline"`
	} `yaml:"compare"`
	// Answers are read in order, the first that matches decides; an answer that
	// none matches is unknown.
	Answers []Answer `yaml:"answers"`
}

// Answer is one rule of a profile.
type Answer struct {
	// Status lists HTTP statuses; empty stands for every one.
	Status []int `yaml:"status"`
	// Where lists, by dotted path, the values that the JSON answer must have.
	Where map[string][]string `yaml:"where"`
	Means Meaning             `yaml:"means"`
	// Reference overrides the profile's, for MeansExists.
	Reference string `yaml:"reference"`
	Fact      `yaml:",inline"`
}

// Duration is a time.Duration with its unit in YAML.
type Duration time.Duration

// UnmarshalYAML reads a duration such as 24h.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration: write it with its unit, for example 24h", n.Value)
	}
	*d = Duration(v)
	return nil
}

//go:embed profiles/*.yaml
var embedded embed.FS

var profileName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// ParseProfile reads a profile strictly: unknown fields, missing sources and
// meaningless rules are errors.
func ParseProfile(data []byte) (*Profile, error) {
	var p Profile
	if err := yaml.Load(data, &p, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	if err := p.validate(); err != nil {
		return nil, fmt.Errorf("profile %q: %w", p.Name, err)
	}
	return &p, nil
}

func (p *Profile) validate() error {
	if !profileName.MatchString(p.Name) || p.Version < 1 {
		return fmt.Errorf("name %q and version %d: use a lower-case name and a version from 1", p.Name, p.Version)
	}
	facts := map[string]Fact{"reference": p.Reference.Fact, "compare": p.Compare.Fact}
	if p.Key.Header != "" {
		facts["key"] = p.Key.Fact
		if !validHeaderName(p.Key.Header) {
			return fmt.Errorf("key.header %q is not a header name", p.Key.Header)
		}
	}
	if p.Window.Is != 0 {
		facts["window"] = p.Window.Fact
	}
	if p.ReplayMarker.Header != "" {
		facts["replay_marker"] = p.ReplayMarker.Fact
	}
	if p.Reference.At == "" {
		delete(facts, "reference")
	}
	if len(p.Compare.Fields) == 0 {
		delete(facts, "compare")
	}
	for i, a := range p.Answers {
		field := "answers[" + strconv.Itoa(i) + "]"
		facts[field] = a.Fact
		if !slices.Contains(meanings, a.Means) {
			return fmt.Errorf("%s: means %q: use one of %v", field, a.Means, meanings)
		}
		if len(a.Status) == 0 && len(a.Where) == 0 {
			return fmt.Errorf("%s matches every answer: give it a status or a where", field)
		}
		for _, s := range a.Status {
			if s < 100 || s > 599 {
				return fmt.Errorf("%s: %d is not an HTTP status", field, s)
			}
		}
	}
	for field, f := range facts {
		if f.Source == "" {
			return fmt.Errorf("%s: names no source", field)
		}
		if _, err := time.Parse(time.DateOnly, f.Checked); err != nil {
			return fmt.Errorf("%s: checked %q is not a date", field, f.Checked)
		}
		if !slices.Contains([]Confidence{Tested, Documented, Quoted, Assumed, Uncertain}, f.Confidence) {
			return fmt.Errorf("%s: confidence %q: use tested, documented, quoted, assumed or uncertain", field, f.Confidence)
		}
	}
	return nil
}

// ID is the name and version by which contracts pin a profile.
func (p *Profile) ID() string { return p.Name + "@" + strconv.Itoa(p.Version) }

// Contract is what the profile lets an action promise: a key and its window
// where both are known, nothing otherwise.
func (p *Profile) Contract() semel.Contract {
	c := semel.Contract{Protection: semel.Unprotected, Profile: p.ID()}
	if p.Key.Header == "" || p.Key.Confidence == Uncertain {
		return c
	}
	c.KeyHeader, c.KeyQuoted = http.CanonicalHeaderKey(p.Key.Header), p.Key.Quoted
	if p.Window.Is > 0 && p.Window.Confidence != Uncertain {
		c.Protection, c.Window = semel.Keyed, time.Duration(p.Window.Is)
	}
	return c
}

// Profiles lists the built-in profiles, every version of each.
func Profiles() []*Profile {
	files, _ := fs.Glob(embedded, "profiles/*.yaml") // the pattern is well-formed
	var all []*Profile
	for _, f := range files {
		data, _ := embedded.ReadFile(f) // it was just listed
		p, err := ParseProfile(data)
		if err != nil || p.ID()+".yaml" != path.Base(f) {
			panic(fmt.Sprintf("%s: %v", f, err)) // a test reads them all
		}
		all = append(all, p)
	}
	return all
}

// BuiltIn returns a built-in profile by its name, or by name and version as in
// "stripe@1". A name alone is its newest version.
func BuiltIn(name string) (*Profile, error) {
	var found *Profile
	var names []string
	for _, p := range Profiles() {
		names = append(names, p.ID())
		if p.ID() == name || p.Name == name && (found == nil || found.Version < p.Version) {
			found = p
		}
	}
	if found == nil {
		return nil, &semel.InputError{
			Field: "profile", Problem: fmt.Sprintf("%q is unknown", name),
			Hint: "use one of " + strings.Join(names, ", "),
		}
	}
	return found, nil
}

// Read is what an answer means by the profile, where it is at hand from
// beginning to end.
func (p *Profile) Read(status int, body []byte) Meaning { return p.match(status, body, true).meaning() }

// match returns the rule for an answer, or nil.
func (p *Profile) match(status int, body []byte, whole bool) *Answer {
	var v any
	parsed := false
	if whole {
		v, parsed = parse(body)
	}
	for i := range p.Answers {
		rule := &p.Answers[i]
		if len(rule.Status) > 0 && !slices.Contains(rule.Status, status) {
			continue
		}
		if len(rule.Where) == 0 {
			return rule
		}
		if !whole && status >= 300 {
			return nil // the rule cannot be checked, and a later one might be too kind
		}
		if parsed && rule.holds(v) {
			return rule
		}
	}
	return nil
}

func (a *Answer) holds(v any) bool {
	for path, values := range a.Where {
		got, ok := scalarAt(v, path)
		if !ok || !slices.Contains(values, got) {
			return false
		}
	}
	return true
}

// meaning is what the rule says, uncertain ones read the unsafe way.
func (a *Answer) meaning() Meaning {
	switch {
	case a == nil:
		return MeansUnknown
	case a.Confidence != Uncertain:
		return a.Means
	}
	switch a.Means {
	case MeansCompleted, MeansExists, MeansRefused, MeansRetained:
		return MeansUnknown
	case MeansAccepted, MeansRunning, MeansMismatch, MeansPartial, MeansUnknown:
	}
	return a.Means
}
