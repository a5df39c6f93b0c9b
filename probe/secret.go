package probe

import (
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

const hidden = "(hidden)"

// hide replaces every secret in text from outside, however it is spelled: plain,
// quoted, escaped, or encoded. A text that was taken out of another is hidden
// again, since taking out may decode it.
func (p *Probe) hide(text string) string {
	if p.secret == nil || text == "" {
		return text
	}
	return p.secret.ReplaceAllLiteralString(text, hidden)
}

// hideIn hides secrets in all that an observation says.
func (p *Probe) hideIn(o *Observation) {
	o.Words = p.hide(o.Words)
	if o.Conflict != nil {
		c := *o.Conflict
		c.Code = p.hide(c.Code)
		o.Conflict = &c
	}
	if o.Marker != nil {
		o.Marker = &Marker{p.hide(o.Marker.Header), p.hide(o.Marker.Is)}
	}
	for i := range o.Exchanges {
		p.hideInExchange(&o.Exchanges[i])
	}
}

func (p *Probe) hideInExchange(e *Exchange) {
	for _, text := range []*string{&e.URL, &e.Body, &e.Answer, &e.Reference, &e.Marked, &e.Says, &e.whole} {
		*text = p.hide(*text)
	}
}

// spellings matches every spelling of what must not be shown; nil where there is
// nothing.
func (t *Target) spellings() *regexp.Regexp {
	given := slices.Clone(t.Secrets)
	for _, value := range t.Withheld {
		given = append(given, value)
	}
	var all []string
	for _, value := range given {
		parts := []string{value}
		if _, credential, ok := strings.Cut(value, " "); ok { // Bearer TOKEN
			parts = append(parts, credential)
			if plain, err := base64.StdEncoding.DecodeString(credential); err == nil {
				_, password, _ := strings.Cut(string(plain), ":")
				parts = append(parts, string(plain), password)
			}
		}
		for _, s := range parts {
			if s != "" {
				all = append(all, encodings(s)...)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var patterns []string
	for _, s := range slices.Compact(all) {
		patterns = append(patterns, escapes(s))
	}
	return regexp.MustCompile(`(?i:` + strings.Join(patterns, "|") + `)`)
}

// encodings are a secret as it is, and in the alphabets that carry bytes as
// text; in base64 also as a part of something longer.
func encodings(s string) []string {
	all := []string{s, hex.EncodeToString([]byte(s))}
	if len(s) >= 4 {
		all = append(all, base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(s)))
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, alphabet.EncodeToString([]byte(s)))
		for before := range 3 {
			// Only what no neighbouring byte has a part in.
			text := alphabet.EncodeToString(append(make([]byte, before), s...))
			if from, to := (before*8+5)/6, (before+len(s))*8/6; to-from >= 8 {
				all = append(all, text[from:to])
			}
		}
	}
	return all
}

// escapes is a pattern for text of which any letter may be escaped in any way
// that is usual, also twice.
func escapes(s string) string {
	var b strings.Builder
	for _, r := range s {
		plain := regexp.QuoteMeta(string(r))
		ways := []string{`\\*` + plain, fmt.Sprintf(`&#0*%d;`, r), fmt.Sprintf(`&#x0*%x;`, r), fmt.Sprintf(`\\+u\{0*%x\}`, r)}
		var code, percent, bytes strings.Builder
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&code, `\\+u%04x`, unit)
		}
		for _, one := range []byte(string(r)) {
			fmt.Fprintf(&percent, `[%%=](?:25)*%02x`, one)
			fmt.Fprintf(&bytes, `\\+x%02x`, one)
		}
		ways = append(ways, code.String(), percent.String(), bytes.String())
		if r < 0x80 {
			ways = append(ways, fmt.Sprintf(`\\+0*%o`, r))
		}
		if entity := html.EscapeString(string(r)); entity != string(r) {
			ways = append(ways, regexp.QuoteMeta(entity))
		}
		if way, ok := map[rune]string{'\n': `\\+n`, '\t': `\\+t`, '\r': `\\+r`, ' ': `\+`, '"': `&quot;`, '\'': `&apos;`}[r]; ok {
			ways = append(ways, way)
		}
		b.WriteString(`(?:` + strings.Join(ways, "|") + `)`)
	}
	return b.String()
}
