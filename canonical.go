package semel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// appendCanonical writes v in canonical form: members sorted, no white space,
// strings as the standard encoder writes them, numbers exact. drop says which
// paths to leave out; nil for none.
func appendCanonical(dst []byte, v value, path string, drop func(string) bool) []byte {
	switch v.kind {
	case scalar:
		return append(dst, v.text...)
	case text:
		return appendString(dst, v.text)
	case array:
		if drop != nil {
			path += "[]"
		}
		dst = append(dst, '[')
		for i, e := range v.list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, e.value, path, drop)
		}
		return append(dst, ']')
	case object:
		dst = append(dst, '{')
		first := true
		for _, m := range v.list {
			var at string
			if drop != nil {
				if at = memberPath(path, m.name); drop(at) {
					continue
				}
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(appendString(dst, m.name), ':')
			dst = appendCanonical(dst, m.value, at, drop)
		}
		return append(dst, '}')
	}
	panic(fmt.Sprintf("canonical form of kind %d", v.kind))
}

// appendString writes s as json.Marshal does, which it asks about all but
// plain characters.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			b, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string always marshals
			}
			return append(dst, b...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// memberPath is the dotted path of a member. A name that would read as a path
// is quoted, so that no two members have one path.
func memberPath(path, name string) string {
	if path == "" {
		return pathName(name)
	}
	return path + "." + pathName(name)
}

func pathName(name string) string {
	if name == "" || strings.ContainsAny(name, `.[]"`) {
		return strconv.Quote(name)
	}
	return name
}

// diff lists the paths at which two JSON values differ.
func diff(a, b value, path string, drop func(string) bool) []string {
	if a.kind != object || b.kind != object {
		if bytes.Equal(appendCanonical(nil, a, path, drop), appendCanonical(nil, b, path, drop)) {
			return nil
		}
		if path == "" {
			return []string{"body"}
		}
		return []string{"body." + path}
	}
	var out []string
	ma, mb := a.list, b.list
	at := func(name string) string { return memberPath(path, name) }
	for i, j := 0, 0; i < len(ma) || j < len(mb); {
		switch {
		case j == len(mb) || i < len(ma) && ma[i].name < mb[j].name:
			if !drop(at(ma[i].name)) {
				out = append(out, "body."+at(ma[i].name))
			}
			i++
		case i == len(ma) || mb[j].name < ma[i].name:
			if !drop(at(mb[j].name)) {
				out = append(out, "body."+at(mb[j].name))
			}
			j++
		default:
			if !drop(at(ma[i].name)) {
				out = append(out, diff(ma[i].value, mb[j].value, at(ma[i].name), drop)...)
			}
			i, j = i+1, j+1
		}
	}
	return out
}
