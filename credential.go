package semel

import (
	"slices"
	"strings"
)

// credentialWords are words that make a header a credential, and credentialKeys
// those that do so before "key".
var (
	credentialWords = []string{
		"auth", "authentication", "authorization", "bearer", "jwt", "token", "secret", "password", "passwd", "passphrase",
		"credential", "credentials", "cookie", "session", "signature", "apikey", "accesskey",
	}
	credentialKeys = []string{"api", "access", "private", "subscription", "auth", "master", "account", "shared"}
)

// IsCredential reports whether a header's name says that its value is a
// credential, such as Authorization or X-Vault-Token. Such a value is sent and
// never stored, shown or compared.
func IsCredential(header string) bool {
	words := strings.FieldsFunc(strings.ToLower(header), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	for i, w := range words {
		if slices.Contains(credentialWords, w) || w == "key" && i > 0 && slices.Contains(credentialKeys, words[i-1]) {
			return true
		}
	}
	return false
}
