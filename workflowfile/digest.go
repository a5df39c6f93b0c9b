package workflowfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// node is the content of a YAML value, without how it is written.
type node struct {
	scalar string // as JSON; empty for a list or a mapping
	list   []*node
	fields []nodeField // sorted by name; not nil for a mapping
}

type nodeField struct {
	name string
	node *node
}

// content is what a run depends on.
func (r *reader) content(m members) *node {
	whole := &node{fields: []nodeField{}}
	for name, n := range m {
		switch name {
		case "owner", "description", "on":
			continue
		}
		c := newNode(n)
		if name == "steps" || name == "on_failure" {
			c.unaccepted()
		}
		if name == "inputs" {
			for _, input := range c.fields {
				input.node.fields = slices.DeleteFunc(input.node.fields, func(f nodeField) bool { return f.name == "description" })
			}
		}
		whole.fields = append(whole.fields, nodeField{name, c})
	}
	if len(r.files) > 0 {
		files := &node{fields: []nodeField{}}
		for name, text := range r.files {
			files.fields = append(files.fields, nodeField{name, &node{scalar: quoted(text)}})
		}
		files.sort()
		whole.fields = append(whole.fields, nodeField{"files", files})
	}
	whole.sort()
	return whole
}

func newNode(n *yaml.Node) *node {
	switch n.Kind {
	case yaml.MappingNode:
		c := &node{fields: []nodeField{}}
		for i := 0; i+1 < len(n.Content); i += 2 {
			c.fields = append(c.fields, nodeField{n.Content[i].Value, newNode(n.Content[i+1])})
		}
		c.sort()
		return c
	case yaml.SequenceNode:
		c := &node{list: []*node{}}
		for _, element := range n.Content {
			c.list = append(c.list, newNode(element))
		}
		return c
	default:
	}
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!null":
		return &node{scalar: n.Value}
	}
	return &node{scalar: quoted(n.Value)}
}

func (c *node) sort() {
	slices.SortStableFunc(c.fields, func(a, b nodeField) int { return strings.Compare(a.name, b.name) })
}

// get returns a member, nil if there is none.
func (c *node) get(name string) *node {
	if c == nil {
		return nil
	}
	for _, f := range c.fields {
		if f.name == name {
			return f.node
		}
	}
	return nil
}

func (c *node) digest() string {
	sum := sha256.Sum256([]byte("semel-workflow-1\n" + c.String()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// String is the canonical form.
func (c *node) String() string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	c.write(&b)
	return b.String()
}

func (c *node) write(b *strings.Builder) {
	switch {
	case c.fields != nil:
		b.WriteByte('{')
		for i, f := range c.fields {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quoted(f.name) + ":")
			f.node.write(b)
		}
		b.WriteByte('}')
	case c.list != nil:
		b.WriteByte('[')
		for i, element := range c.list {
			if i > 0 {
				b.WriteByte(',')
			}
			element.write(b)
		}
		b.WriteByte(']')
	default:
		b.WriteString(c.scalar)
	}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(b)
}
