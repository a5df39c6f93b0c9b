package semel_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

// exactlyEqual compares two JSON texts as values, with exact numbers: another
// way to say what the canonical form must say.
func exactlyEqual(t *testing.T, a, b string) bool {
	t.Helper()
	return equalValues(decoded(t, a), decoded(t, b))
}

func decoded(t *testing.T, s string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return v
}

func equalValues(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && equalNumbers(string(a), string(b))
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalValues(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equalValues(v, w) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

// equalNumbers brings both to integer mantissas with decimal exponents, and
// the mantissas to the lower of the two exponents.
func equalNumbers(a, b string) bool {
	ma, ea := split(a)
	mb, eb := split(b)
	if ma.Sign() == 0 || mb.Sign() == 0 {
		return ma.Sign() == mb.Sign()
	}
	d := new(big.Int).Sub(ea, eb)
	if d.CmpAbs(big.NewInt(100_000)) > 0 {
		return false // no mantissa of a fuzzed input is so long
	}
	ten := func(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }
	if n := d.Int64(); n >= 0 {
		ma.Mul(ma, ten(n))
	} else {
		mb.Mul(mb, ten(-n))
	}
	return ma.Cmp(mb) == 0
}

func split(s string) (mantissa, exponent *big.Int) {
	m, e, _ := strings.Cut(strings.ToLower(s), "e")
	whole, frac, _ := strings.Cut(m, ".")
	mantissa, _ = new(big.Int).SetString(whole+frac, 10)
	exponent = new(big.Int)
	if e != "" {
		exponent.SetString(strings.TrimPrefix(e, "+"), 10)
	}
	return mantissa, exponent.Sub(exponent, big.NewInt(int64(len(frac))))
}
