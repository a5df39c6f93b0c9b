package sqldest

import "strings"

// firstWord is the first keyword of a statement, in lower case; empty if it
// begins otherwise.
func firstWord(text string) string {
	text = text[blank(text):]
	end := strings.IndexFunc(text, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') })
	if end < 0 {
		end = len(text)
	}
	return strings.ToLower(text[:end])
}

// single reports whether nothing follows the first semicolon. It reads text as
// SQLite does; PostgreSQL refuses a second statement by itself.
func single(text string) bool {
	for i := 0; i < len(text); {
		if n := blank(text[i:]); n > 0 {
			i += n
			continue
		}
		switch c := text[i]; c {
		case ';':
			rest := text[i+1:]
			return blank(rest) == len(rest)
		case '\'', '"', '`':
			i += quoted(text[i:], c)
		case '[':
			i += quoted(text[i:], ']')
		default:
			i++
		}
	}
	return true
}

// quoted is the length of a quoted text; a doubled end continues it, which
// reads as two of them.
func quoted(text string, end byte) int {
	n := strings.IndexByte(text[1:], end)
	if n < 0 {
		return len(text)
	}
	return n + 2
}

// blank is the length of the white space and comments that text begins with.
func blank(text string) int {
	for i := 0; ; {
		rest := text[i:]
		switch {
		case rest == "":
			return i
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return len(text)
			}
			i += end + 1
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return len(text)
			}
			i += end + 4
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
			i++
		default:
			return i
		}
	}
}
