package main

import (
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// noteStdin says that a program does not get what is piped into semel.
func (sh *shell) noteStdin() {
	if f, ok := sh.in.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := f.Stat(); err == nil && (info.Mode()&fs.ModeNamedPipe != 0 || info.Mode().IsRegular() && info.Size() > 0) {
			sh.say("note: standard input is not passed on to the program; to pass it on, as a part of this operation's identity, use --stdin - (or --stdin FILE)")
		}
	}
}

var _ interface{ Stat() (fs.FileInfo, error) } = (*os.File)(nil)

// noteKeys says that a key which the caller sends by hand, or one of Semel's
// that the destination was not said to honour, makes nothing safe.
func (sh *shell) noteKeys(o *doOptions, c *semel.Contract) {
	for _, line := range o.header {
		name, _, _ := strings.Cut(line, ":")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if !isKeyHeader(name) {
			continue
		}
		sh.say("note: %s is sent as written. It changes no protection (%s): Semel does not rely on it, and does not resend because of it. "+
			"If this destination honours keys, say --protection keyed --window D instead", name, c.Protection)
	}
	if o.keyHeader != "" && c.Protection != semel.Keyed {
		sh.say("note: %s is sent with a stable key. It changes no protection (%s): Semel does not rely on it, and does not resend because of it. "+
			"If this destination honours keys, say --protection keyed --window D", c.KeyHeader, c.Protection)
	}
}

// isKeyHeader reports whether some known destination reads a key there.
func isKeyHeader(name string) bool {
	if name == "Idempotency-Key" || name == "X-Idempotency-Key" {
		return true
	}
	return slices.ContainsFunc(httpdest.Profiles(), func(p *httpdest.Profile) bool {
		return p.Key.Header != "" && http.CanonicalHeaderKey(p.Key.Header) == name
	})
}

// noteQuery says that a URL is stored and shown with its query, where a name in
// it reads like that of a credential. It never repeats the value.
func (sh *shell) noteQuery(flag, target string) {
	if names := credentialsIn(target); len(names) > 0 {
		sh.say("note: the URL of %s is stored and shown with its query, in which %s looks like a credential. "+
			"A header such as Authorization, or the secret of a connection, is sent and never stored", flag, strings.Join(names, ", "))
	}
}

// credentialsIn names the parameters of a URL that seem to hold a credential; a
// placeholder holds none.
func credentialsIn(target string) (names []string) {
	u, err := url.Parse(target)
	if err != nil {
		return nil
	}
	secret := func(v string) bool { return v != "" && !(strings.HasPrefix(v, "{") && strings.HasSuffix(v, "}")) }
	for name, values := range u.Query() {
		if isCredential(name) && slices.ContainsFunc(values, secret) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// withoutCredentials is a URL as a message may repeat it.
func withoutCredentials(target string) string {
	if len(credentialsIn(target)) == 0 {
		return target
	}
	path, _, _ := strings.Cut(target, "?")
	return path + "?..."
}

var credentialWords = []string{"token", "secret", "key", "password", "auth", "signature"}

// isCredential reports whether the name of a query parameter says that its
// value is a credential.
func isCredential(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return semel.IsCredential(name) || slices.ContainsFunc(words, func(w string) bool { return slices.Contains(credentialWords, w) })
}

// noteTerms names the terms of a repeated call that its operation does not
// have: it keeps those of its first claim.
func (sh *shell) noteTerms(kept, asked *semel.Contract) {
	var differ []string
	term := func(name, has, wants string) {
		if has != wants {
			differ = append(differ, name+" "+orNone(has)+" (asked for "+orNone(wants)+")")
		}
	}
	term("protection", string(kept.Protection), string(asked.Protection))
	term("window", declared(kept.Window), declared(asked.Window))
	term("key header", kept.KeyHeader, asked.KeyHeader)
	term("profile", kept.Profile, asked.Profile)
	if kept.LookupURL != asked.LookupURL {
		differ = append(differ, "lookup "+orNone(withoutCredentials(kept.LookupURL))+" (asked for "+orNone(withoutCredentials(asked.LookupURL))+")")
	}
	term("found-in", kept.FoundIn, asked.FoundIn)
	term("check", kept.Check, asked.Check)
	term("no-effect-exit", codeList(kept.NoEffectExit), codeList(asked.NoEffectExit))
	term("max-processing", declared(kept.MaxProcessing), declared(asked.MaxProcessing))
	term("visible-after", declared(kept.VisibleAfter), declared(asked.VisibleAfter))
	term("absence-is-proof", strconv.FormatBool(kept.AbsenceIsProof), strconv.FormatBool(asked.AbsenceIsProof))
	if asked.Timeout != defaultTimeout { // said by somebody
		term("timeout", declared(kept.Timeout), declared(asked.Timeout))
	}
	if len(differ) > 0 {
		sh.say("note: this operation keeps the terms of its first claim: %s", strings.Join(differ, ", "))
	}
}

func orNone(term string) string {
	if term == "" {
		return "none"
	}
	return oneLine(term)
}

func codeList(codes []int) string {
	words := make([]string, len(codes))
	for i, code := range slices.Sorted(slices.Values(codes)) {
		words[i] = strconv.Itoa(code)
	}
	return strings.Join(words, ",")
}
