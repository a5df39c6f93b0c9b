package workflowfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// attach puts texts in the place of the files that with names: a statement for
// a database, a template for any other connection.
func (r *reader) attach(n, with *yaml.Node, u *Uses, s *scope) {
	if _, ok := builtIn(u.Connection); ok {
		if !u.unknown {
			r.statement(n, with, u)
		}
		return
	}
	template := get(with, "template")
	if template == nil || u.With == nil {
		return
	}
	if text, ok := r.attached(template, "template"); ok {
		u.With.replace("template", "template", r.render(template.Value, text, s))
	}
}

// statement reads with.file of a step that works on a database. A statement
// is never computed: what differs is for its arguments.
func (r *reader) statement(n, with *yaml.Node, u *Uses) {
	file, inline := get(with, "file"), get(with, "statement")
	switch {
	case file == nil && inline == nil:
		r.wrong(n, CodeMissing, "add file: name.sql below with:", "%s.%s has no statement", u.Connection, u.Action)
	case file != nil && inline != nil:
		r.wrong(inline, CodeStructure, "keep one of them", "with has both file and statement")
	case inline != nil && strings.Contains(inline.Value, "${{"):
		r.wrong(inline, CodeValue, "name what differs in args, and write $1 or ? for it", "statement is computed, so a value could become part of the command")
	case inline != nil:
		r.prose(inline, "statement")
	case u.With != nil:
		if text, ok := r.attached(file, "file"); ok {
			if strings.TrimSpace(text) == "" {
				r.wrong(file, CodeValue, "write a statement into it", "file %s is empty", shown(file.Value))
			}
			u.With.replace("file", "statement", &Value{Line: 1, Column: 1, file: r.beside(file.Value), literal: text})
		}
	}
}

// attached reads the file that n names.
func (r *reader) attached(n *yaml.Node, what string) (text string, ok bool) {
	name, ok := r.text(n, what)
	switch {
	case !ok:
		return "", false
	case strings.Contains(name, "${{"):
		r.wrong(n, CodeValue, "write its name, and choose between steps with if", "%s is computed, but files are read before anything runs", what)
		return "", false
	case !fs.ValidPath(name) || name == ".":
		r.wrong(n, CodeValue, "write a name such as due.sql or sql/due.sql", "%s %s is not a path below the directory of the workflow file", what, shown(name))
		return "", false
	case r.checks.File == nil:
		r.warn(n, CodeNotChecked, "check the workflow in its directory", "file %s was not read", shown(name))
		return "", false
	}
	data, err := r.checks.File(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.wrong(n, CodeReference, "add it beside the workflow file, or mend the name", "there is no file %s", shown(name))
		return "", false
	case err != nil:
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		r.wrong(n, CodeReference, "make it a file below the directory of the workflow file", "file %s cannot be read: %v", shown(name), err)
		return "", false
	case len(data) > MaxFile:
		r.wrong(n, CodeValue, "split it", "file %s has more than %d bytes", shown(name), MaxFile)
		return "", false
	case !utf8.Valid(data):
		r.wrong(n, CodeValue, "save it as UTF-8", "file %s is not valid UTF-8", shown(name))
		return "", false
	}
	text = normal(data)
	r.files[name] = text
	return text, true
}

// render compiles the text of a template.
func (r *reader) render(name, text string, s *scope) *Value {
	inner := *r
	inner.file, inner.lines, inner.problems, inner.whole = r.beside(name), strings.Split(text, "\n"), nil, true
	v := &Value{Line: 1, Column: 1, file: inner.file, literal: text}
	if strings.Contains(text, "${{") {
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: text, Line: 1, Column: 1}
		v.literal = nil
		v = inner.template(n, v, use{what: "template", scope: s, wants: "a text, a number or a truth value", types: partTypes})
	}
	r.problems = append(r.problems, inner.problems...)
	if v != nil && v.expr != nil {
		v.parts, v.expr = []part{{expr: v.expr}}, nil // it becomes text
	}
	return v
}

// beside is how messages name a file that a step names.
func (r *reader) beside(name string) string { return filepath.Join(filepath.Dir(r.file), name) }

// from is where the text at an offset of n begins: n itself where n is a value
// of a YAML file.
func (r *reader) from(n *yaml.Node, offset int) *yaml.Node {
	if !r.whole {
		return n
	}
	before := n.Value[:offset]
	begins := *n
	begins.Line = 1 + strings.Count(before, "\n")
	begins.Column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return &begins
}

// replace gives a member of a mapping another name and value.
func (v *Value) replace(name, other string, value *Value) {
	for i := range v.fields {
		if v.fields[i].name == name && value != nil {
			v.fields[i] = valueField{other, value}
		}
	}
}

// normal is a text without what editors of some systems add.
func normal(data []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
}

// bundleMark begins the text of a definition whose steps name files. JSON
// follows it, and then the files one after the other: the workflow is the
// first of them.
const bundleMark = "# semel files "

type bundled struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// bundle is the whole definition as one text.
func (d *Definition) bundle() []byte {
	if len(d.files) == 0 && !bytes.HasPrefix(d.Text, []byte(bundleMark)) {
		return d.Text
	}
	list := []bundled{{filepath.Base(d.File), len(d.Text)}}
	texts := bytes.Clone(d.Text)
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		list = append(list, bundled{name, len(d.files[name])})
		texts = append(texts, d.files[name]...)
	}
	header, err := json.Marshal(list)
	if err != nil {
		panic(err) // names and numbers always marshal
	}
	return slices.Concat([]byte(bundleMark), header, []byte("\n"), texts)
}

// unbundle takes a bundle apart.
func unbundle(text []byte) (workflow []byte, files map[string][]byte) {
	files = map[string][]byte{}
	header, rest, ok := bytes.Cut(text, []byte("\n"))
	header, marked := bytes.CutPrefix(header, []byte(bundleMark))
	var list []bundled
	if !ok || !marked || json.Unmarshal(header, &list) != nil {
		return text, files
	}
	for i, f := range list {
		if f.Bytes < 0 || f.Bytes > len(rest) {
			return text, files
		}
		if i == 0 {
			workflow = rest[:f.Bytes]
		} else {
			files[f.Name] = rest[:f.Bytes]
		}
		rest = rest[f.Bytes:]
	}
	return workflow, files
}
