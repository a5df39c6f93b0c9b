package probe

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const hidden = "(hidden)"

// hide replaces every secret in text from outside, also where it is quoted,
// escaped or encoded.
func (p *Probe) hide(text string) string {
	for _, s := range p.secrets() {
		text = strings.ReplaceAll(text, s, hidden)
	}
	return text
}

// secrets are all spellings of what must not be shown, the longest first.
func (p *Probe) secrets() []string {
	given := slices.Clone(p.target.Secrets)
	for _, value := range p.target.Withheld {
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
			quoted, err := json.Marshal(s)
			if err != nil || s == "" {
				continue
			}
			all = append(all, s, strings.Trim(string(quoted), `"`), url.QueryEscape(s), url.PathEscape(s),
				base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s)))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(all)
}
