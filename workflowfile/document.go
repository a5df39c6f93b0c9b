package workflowfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// MaxFile is the largest workflow file, in bytes.
const MaxFile = 1 << 20

// maxDepth bounds the nesting of a file.
const maxDepth = 100

// reader walks YAML nodes and collects what is wrong.
type reader struct {
	file     string
	lines    []string
	checks   Checks
	problems []Problem
	broken   map[*yaml.Node]bool // reported already: later checks pass over them
	language *language
	triggers Triggers
	places   map[string]int // the line of every step id of the file
	files    map[string]string
	whole    bool // the value that is read is the whole file
	// unchecked are the connections that nobody could tell about.
	unchecked map[string]bool
}

// place is where something stands in the file.
type place struct{ line, column int }

func at(n *yaml.Node) place { return place{max(n.Line, 1), max(n.Column, 1)} }

func (r *reader) report(p place, severity Severity, code Code, fix, message string, args ...any) {
	r.problems = append(r.problems, Problem{
		File: r.file, Line: p.line, Column: p.column, Severity: severity, Code: code,
		Message: fmt.Sprintf(message, args...), Fix: fix,
	})
}

func (r *reader) wrong(n *yaml.Node, code Code, fix, message string, args ...any) {
	r.report(at(n), SeverityError, code, fix, message, args...)
}

func (r *reader) warn(n *yaml.Node, code Code, fix, message string, args ...any) {
	r.report(at(n), SeverityWarning, code, fix, message, args...)
}

// document parses data into its root mapping, nil where there is none.
func (r *reader) document(data []byte) *yaml.Node {
	first := place{1, 1}
	switch {
	case len(data) > MaxFile:
		r.report(first, SeverityError, CodeSyntax, "split it into several workflows", "the file has %d bytes, the limit is %d", len(data), MaxFile)
		return nil
	case !utf8.Valid(data):
		r.report(first, SeverityError, CodeSyntax, "save it as UTF-8", "the file is not valid UTF-8")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.syntax(err)
		return nil
	}
	var docs [2]yaml.Node
	for i := range docs {
		if err := loader.Load(&docs[i]); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			r.syntax(err)
			return nil
		}
	}
	if docs[1].Kind != 0 {
		r.wrong(&docs[1], CodeYAML, "keep one workflow to a file, without ---", "a second document begins here")
	}
	root := &docs[0]
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	if root.Kind == 0 || root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		r.report(first, SeverityError, CodeMissing, "begin with name: and version:", "the file holds no workflow")
		return nil
	}
	r.surprises(root, 0)
	return root
}

// syntax reports what keeps the file from being YAML, with the cures for what
// people really write.
func (r *reader) syntax(err error) {
	mark, message := place{1, 1}, err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		mark, message = place{max(e.Mark.Line, 1), max(e.Mark.Column, 1)}, e.Message
	}
	cured := false
	for i, line := range r.lines {
		code, _, _ := strings.Cut(line, " #")
		indent := code[:len(code)-len(strings.TrimLeft(code, " \t"))]
		if strings.Contains(indent, "\t") && i+1 >= mark.line {
			r.report(place{i + 1, 1 + strings.Index(indent, "\t")}, SeverityError, CodeSyntax, "indent with spaces", "the line is indented with a tab")
			cured = true
		}
		if column, ok := unquoted(code); ok {
			r.report(place{i + 1, column}, SeverityError, CodeYAML, `put it in quotes: "${{ ... }}"`, "${{ }} stands unquoted where YAML takes its braces for its own")
			cured = true
		}
	}
	if !cured {
		r.report(mark, SeverityError, CodeSyntax, "mend the YAML here", "it cannot be read: %s", message)
	}
}

// unquoted finds a ${{ outside quotes that YAML misreads: within [ ] or { }, or
// with ": " before its end. Column counts from 1.
func unquoted(line string) (column int, ok bool) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case strings.HasPrefix(line[i:], "${{"):
			inside, _, _ := strings.Cut(line[i:], "}}")
			if depth > 0 || strings.Contains(inside, ": ") {
				return utf8.RuneCountInString(line[:i]) + 1, true
			}
			i += len(inside)
		case (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" [{,:", line[i-1]) >= 0):
			quote = c
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		}
	}
	return 0, false
}

// surprises reports what YAML understands and a reader does not expect, and
// marks it, so that nothing else is said about it.
func (r *reader) surprises(n *yaml.Node, depth int) {
	if depth > maxDepth {
		r.surprise(n, CodeStructure, "flatten it", "it is nested deeper than %d", maxDepth)
		n.Content = nil
		return
	}
	switch {
	case n.Kind == yaml.AliasNode:
		r.surprise(n, CodeYAML, "write the value itself", "it is an alias, which hides what is done")
		return
	case n.Anchor != "":
		r.surprise(n, CodeYAML, "remove &"+n.Anchor+" and write the value where it is used", "it carries an anchor")
	case n.Style&yaml.TaggedStyle != 0 && strings.HasPrefix(n.Tag, "!!"):
		r.surprise(n, CodeYAML, "remove the tag; put text in quotes", "it carries the YAML tag %s", shown(n.Tag))
	case n.Style&yaml.TaggedStyle != 0:
		r.surprise(n, CodeYAML, `put the whole value in quotes, for example "!has(x)"`, "YAML takes %s for a tag, not for part of an expression", shown(n.Tag))
	case n.Kind == yaml.ScalarNode && n.Style == 0 && cut(n.Value) && n.LineComment != "":
		r.surprise(n, CodeYAML, "put the whole value in quotes", "YAML cuts the expression at the comment sign: ${{ has no }}")
	}
	if n.Kind != yaml.MappingNode {
		for _, child := range n.Content {
			r.surprises(child, depth+1)
		}
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			r.surprise(key, CodeYAML, "repeat what is shared", "<< merges what stands elsewhere")
		case key.Kind != yaml.ScalarNode:
			r.surprise(key, CodeStructure, "use plain names", "a member has no plain name")
		case key.Anchor != "" || key.Style&yaml.TaggedStyle != 0:
			r.surprises(key, depth+1)
		case seen[key.Value] > 0:
			r.surprise(key, CodeDuplicate, "keep one of them", "%s is here already, in line %d", shown(key.Value), seen[key.Value])
		default:
			seen[key.Value] = key.Line
		}
		r.surprises(value, depth+1)
	}
}

func (r *reader) surprise(n *yaml.Node, code Code, fix, message string, args ...any) {
	r.broken[n] = true
	r.wrong(n, code, fix, message, args...)
}

// cut reports whether text begins an expression that does not end.
func cut(s string) bool {
	_, rest, ok := strings.Cut(s, "${{")
	return ok && !strings.Contains(rest, "}}")
}

// locate finds where text stands in the value of n: exactly where it is
// written as it is, else where n begins.
func (r *reader) locate(n *yaml.Node, text string) place {
	first, _, _ := strings.Cut(text, "\n")
	for line := n.Line; line >= 1 && line <= len(r.lines); line++ {
		from, whole := 0, r.lines[line-1]
		if line == n.Line {
			from = len(string([]rune(whole)[:min(max(n.Column-1, 0), utf8.RuneCountInString(whole))]))
		}
		if i := strings.Index(whole[from:], first); i >= 0 {
			return place{line, utf8.RuneCountInString(whole[:from+i]) + 1}
		}
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			break
		}
	}
	return at(n)
}
