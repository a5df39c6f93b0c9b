package semel_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// C05: two keys are never one, whatever their bytes, and never cut.
func TestKeysAreKeptByteByByteOrRefused(t *testing.T) {
	long := strings.Repeat("k", semel.MaxKeyLen)
	good := []string{"Pay-AB", "pay-ab", "k1", "k1 ", " k1", "k1\t", `o'brien"; --`, "a/b?c=d&e", "%2F", "a|b", "é", "e\u0301", "\u200b", long, long[1:] + "l"}
	seen := map[string]string{}
	for _, s := range good {
		if err := semel.Key(s).Validate(); err != nil {
			t.Errorf("key %q: %v", s, err)
		}
		if err := semel.Scope(s).Validate(); err != nil {
			t.Errorf("scope %q: %v", s, err)
		}
		d := semel.DestinationKey("acct-1/charge", semel.Key(s), 0)
		if other, ok := seen[d]; ok {
			t.Errorf("keys %q and %q are one at the destination", s, other)
		}
		seen[d] = s
	}
	for _, s := range []string{"", " ", "\t\n", "\u00a0", "a\x00b", "\x00", "\xff", "a\xed\xa0\x80", long + "k", strings.Repeat("k", 1024), strings.Repeat("k", 4096), strings.Repeat("é", 128)} {
		if err := semel.Key(s).Validate(); err == nil {
			t.Errorf("key %q is taken", s)
		} else if !strings.HasPrefix(err.Error(), "key ") {
			t.Errorf("key %q: %v does not name the key", s, err)
		}
		if err := semel.Scope(s).Validate(); err == nil || !strings.HasPrefix(err.Error(), "scope ") {
			t.Errorf("scope %q: %v", s, err)
		}
	}
}

// Law 5: a lost database does not mean a lost key. These never change.
func TestDestinationKeysAreGolden(t *testing.T) {
	for _, c := range []struct {
		scope      semel.Scope
		key        semel.Key
		generation int
		want       string
	}{
		{"acct-1/charge", "invoice-4417-charge", 0, "85dd3c54-93df-8189-90cf-ccf57f640506"},
		{"acct-1/charge", "invoice-4417-charge", 1, "8e24c123-9258-8a46-84aa-e57b65adef77"},
		{"acct-2/charge", "invoice-4417-charge", 0, "4c5e49ef-5607-8c40-88ef-0e54a776c114"},
		{"x", "é|b", 12, "31eee467-be9d-8d6a-9ae2-b43f60024689"},
	} {
		if got := semel.DestinationKey(c.scope, c.key, c.generation); got != c.want {
			t.Errorf("%s %s %d: got %s, want %s", c.scope, c.key, c.generation, got, c.want)
		}
	}
}

func TestScopesOfActionsAreGolden(t *testing.T) {
	for want, parts := range map[string][3]string{
		"4:acme/6:stripe/6:charge": {"acme", "stripe", "charge"},
		"0:/0:/0:":                 {},
		"3:a/b/0:/1:c":             {"a/b", "", "c"},
		"2:é/1:b/1:c":              {"é", "b", "c"},
	} {
		if got := semel.ActionScope(parts[0], parts[1], parts[2]); string(got) != want {
			t.Errorf("%q: got %q, want %q", parts, got, want)
		}
	}
}

// C05 step 4: no separator makes two identities one.
func TestNoSeparatorJoinsTwoIdentities(t *testing.T) {
	pieces := []string{"", "a", "b", "a|b", "|", "/", ":", "1:", "1:a", "a/1:b", "1:a/1:b", "0:/", "a\n"}
	keys, scopes := map[string]string{}, map[semel.Scope]string{}
	put := func(d, from string) {
		if other, ok := keys[d]; ok {
			t.Errorf("%s and %s are one at the destination", from, other)
		}
		keys[d] = from
	}
	for _, a := range pieces {
		for _, b := range pieces {
			for g := range 3 {
				name, _ := json.Marshal([]any{a, b, g})
				put(semel.DestinationKey(semel.Scope(a), semel.Key(b), g), string(name))
			}
			for _, c := range pieces {
				s := semel.ActionScope(a, b, c)
				name, _ := json.Marshal([]string{a, b, c})
				if other, ok := scopes[s]; ok {
					t.Errorf("%s and %s are one scope %q", name, other, s)
				}
				scopes[s] = string(name)
			}
		}
	}
}

// M6, M25: a synthetic key carries the time it was minted at, a natural key
// none.
func TestMintedKeysCarryTheirTime(t *testing.T) {
	at := time.Date(2026, 11, 29, 8, 0, 0, 123_999_999, time.UTC)
	const want = "01a22651-6c7b-7fff-bf04-05060708090a"
	key := semel.MintKey(at, [10]byte{0xff, 0xff, 0xff, 4, 5, 6, 7, 8, 9, 10})
	if string(key) != want {
		t.Errorf("got %s, want %s", key, want)
	}
	if got, ok := key.MintedAt(); !ok || !got.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("minted at %v %v, want %v", got, ok, at)
	}
	if err := key.Validate(); err != nil {
		t.Error(err)
	}
	if other := semel.MintKey(at, [10]byte{0xff, 0xff, 0xff, 4, 5, 6, 7, 8, 9, 11}); other == key {
		t.Error("two random parts, one key")
	}
	for _, natural := range []semel.Key{
		"", "invoice-4417-charge", "2026-11-29", semel.Key(strings.ToUpper(string(key))), " " + key, key + " ", key[:35],
		semel.Key(strings.Replace(string(key), "-7", "-4", 1)), semel.Key(semel.DestinationKey("s", "k", 0)),
		key[:19] + "0" + key[20:], key[:19] + "f" + key[20:],
	} {
		if got, ok := natural.MintedAt(); ok {
			t.Errorf("%q was minted at %v", natural, got)
		}
	}
}

func TestIDsSortByTimeAndReadBack(t *testing.T) {
	var before semel.ID
	for ms := range 300 {
		id := semel.NewID(t0.Add(time.Duration(ms)*time.Millisecond), [10]byte{byte(-ms)})
		if id.String() <= before.String() {
			t.Fatalf("%s does not sort after %s", id, before)
		}
		got, err := semel.ParseID(strings.ToUpper(id.String()))
		if err != nil || got != id {
			t.Fatalf("%s read back as %s, %v", id, got, err)
		}
		before = id
	}
	for _, s := range []string{
		"", "x", before.String()[1:], before.String() + "0", strings.ReplaceAll(before.String(), "-", ""), strings.Replace(before.String(), "-", "+", 1),
		"g" + before.String()[1:], "{" + before.String()[2:] + "}", strings.Repeat("é", 18),
	} {
		if id, err := semel.ParseID(s); err == nil {
			t.Errorf("%q reads as %s", s, id)
		}
	}
}

func FuzzKey(f *testing.F) {
	f.Add("a|b", "x", "b", "x|a", 0)
	f.Add("1:a", "2:b", "", "", 1)
	f.Add("019ace7a-0000-7000-8000-000000000000", "x", "019ACE7A-0000-7000-8000-000000000000", "x", 0)
	f.Fuzz(func(t *testing.T, k1, s1, k2, s2 string, g int) {
		d1, d2 := semel.DestinationKey(semel.Scope(s1), semel.Key(k1), g), semel.DestinationKey(semel.Scope(s2), semel.Key(k2), g)
		if same := k1 == k2 && s1 == s2; (d1 == d2) != same {
			t.Errorf("%q/%q and %q/%q: %s and %s", s1, k1, s2, k2, d1, d2)
		}
		if id, err := semel.ParseID(d1); err != nil || id[6]>>4 != 8 || id[8]>>6 != 2 {
			t.Errorf("%s is no UUID of version 8", d1)
		}
		if semel.ActionScope(k1, s1, k2) == semel.ActionScope(k1, s2, k2) && s1 != s2 {
			t.Errorf("%q and %q make one scope", s1, s2)
		}
		if at, ok := semel.Key(k1).MintedAt(); ok {
			var random [10]byte
			id, err := semel.ParseID(k1)
			copy(random[:], id[6:])
			if err != nil || semel.MintKey(at, random) != semel.Key(k1) {
				t.Errorf("%q claims to be minted at %v", k1, at)
			}
		}
		if err := semel.Key(k1).Validate(); err == nil && (len(k1) == 0 || len(k1) > semel.MaxKeyLen || strings.ContainsRune(k1, 0)) {
			t.Errorf("%q is taken", k1)
		}
	})
}
