package check

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
)

// Where the documentation of a code is.
const (
	home     = "https://github.com/semel-dev/semel"
	helpPage = home + "/blob/main/docs/reference/findings.md#"
)

// The members of SARIF 2.1.0 that a code host shows. Names are those of the
// standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string    `json:"id"`
		Short   sarifText `json:"shortDescription"`
		Full    sarifText `json:"fullDescription"`
		Help    sarifText `json:"help"`
		HelpURI string    `json:"helpUri"`
		Default struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitzero"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitzero"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitzero"`
		Logical  []sarifLogical `json:"logicalLocations,omitzero"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI    string `json:"uri"`
			BaseID string `json:"uriBaseId"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine   int `json:"startLine"`
			StartColumn int `json:"startColumn"`
		} `json:"region"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
)

// SARIF is the findings as a log in SARIF 2.1.0, which code hosts show in pull
// requests. Files become relative to root, the directory of the repository;
// those of findings are paths from the same place as root. Accepted findings
// are suppressed results with their reason. A finding keeps its fingerprint
// when its line moves.
func SARIF(findings []Finding, root string) ([]byte, error) {
	rules := Rules()
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "semel check", InformationURI: home}
	for _, r := range rules {
		rule := sarifRule{
			ID: string(r.Code), Short: sarifText{Text: r.Title}, Full: sarifText{Text: r.Help}, HelpURI: helpPage + string(r.Code),
			Help: sarifText{Text: r.Help + " " + r.Fix, Markdown: r.Help + "\n\n**" + r.Fix + "**"},
		}
		rule.Default.Level = string(r.Severity) // the words are those of SARIF
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
	}
	seen := map[string]int{}
	for _, f := range findings {
		index := slices.IndexFunc(rules, func(r Rule) bool { return r.Code == f.Code })
		if index < 0 {
			return nil, fmt.Errorf("code %q of a finding is unknown", f.Code)
		}
		location, err := f.location(root)
		if err != nil {
			return nil, err
		}
		result := sarifResult{
			RuleID: string(f.Code), RuleIndex: index, Level: string(f.Severity), Message: sarifText{Text: f.sentence()},
			Locations: []sarifLocation{location},
		}
		if f.Accepted != "" {
			result.Suppressions = []sarifSuppression{{Kind: "inSource", Status: "accepted", Justification: f.Accepted}}
		}
		print := f.fingerprint(location)
		seen[print]++
		result.Fingerprints = map[string]string{"semelCheck/v1": fmt.Sprintf("%s:%d", print, seen[print])}
		run.Results = append(run.Results, result)
	}
	log := sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
	return json.MarshalIndent(log, "", "  ")
}

// sentence is the message with its fix.
func (f Finding) sentence() string {
	if f.Fix == "" {
		return f.Message + "."
	}
	return f.Message + ". To mend it: " + f.Fix + "."
}

func (f Finding) location(root string) (l sarifLocation, err error) {
	if f.Workflow != "" {
		name := f.Workflow
		if f.Step != "" {
			name += "/" + f.Step
		}
		l.Logical = []sarifLogical{{name}}
	}
	if f.File == "" {
		return l, nil
	}
	base, err := filepath.Abs(root)
	if err != nil {
		return l, err
	}
	file, err := filepath.Abs(f.File)
	if err != nil {
		return l, err
	}
	if file, err = filepath.Rel(base, file); err != nil {
		return l, err
	}
	l.Physical = &sarifPhysical{}
	l.Physical.Artifact.URI = (&url.URL{Path: filepath.ToSlash(file)}).String()
	l.Physical.Artifact.BaseID = "%SRCROOT%"
	l.Physical.Region.StartLine, l.Physical.Region.StartColumn = max(f.Line, 1), max(f.Column, 1)
	return l, nil
}

// fingerprint is the same for the same finding in a file whose lines moved.
func (f Finding) fingerprint(l sarifLocation) string {
	file := ""
	if l.Physical != nil {
		file = l.Physical.Artifact.URI
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", f.Code, file, f.Workflow, f.Step, f.Message))
	return hex.EncodeToString(sum[:8])
}
