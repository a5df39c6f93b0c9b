package workflowfile

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxDigits bounds the digits of a number that is computed with. A longer one
// can only be handed on.
const maxDigits = 400

// decimal is a number as it is written, where CEL's int cannot hold it: with a
// point, an exponent, or too large. Handed on, it keeps its digits.
type decimal struct{ text string }

var decimalType = types.NewObjectType("decimal")

func (d decimal) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a decimal is no %v", t)
}

func (d decimal) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.StringType:
		return types.String(d.text)
	case types.DoubleType:
		f, err := strconv.ParseFloat(d.text, 64)
		if err != nil {
			return types.NewErr("%s is too large for double()", shown(d.text))
		}
		return types.Double(f)
	case types.IntType:
		r, err := exact(d)
		if err != nil {
			return types.WrapErr(err)
		}
		i := new(big.Int).Quo(r.Num(), r.Denom())
		if !i.IsInt64() {
			return types.NewErr("%s is too large for int()", shown(d.text))
		}
		return types.Int(i.Int64())
	case types.TypeType:
		return decimalType
	}
	return types.NewErr("a decimal cannot become %s", to.TypeName())
}

func (d decimal) Equal(other ref.Val) ref.Val { return numberEqual(d, other) }
func (d decimal) Type() ref.Type              { return decimalType }
func (d decimal) Value() any                  { return json.Number(d.text) }

// adapter turns outside values into CEL's, keeping numbers exact.
type adapter struct{ types.Adapter }

func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case json.Number:
		return number(string(v))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return types.NewErr("%v is not a JSON number", v)
		}
		return number(strconv.FormatFloat(v, 'f', -1, 64))
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	case []map[string]any:
		return types.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(v)
}

func number(s string) ref.Val {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return types.Int(i)
	}
	if !json.Valid([]byte(s)) {
		return types.NewErr("%s is not a number", shown(s))
	}
	return decimal{s}
}

// exact returns the value of an int, uint or decimal, nil for anything else.
func exact(v ref.Val) (*big.Rat, error) {
	switch v := v.(type) {
	case types.Int:
		return new(big.Rat).SetInt64(int64(v)), nil
	case types.Uint:
		return new(big.Rat).SetUint64(uint64(v)), nil
	case decimal:
		mantissa, exponent, _ := strings.Cut(strings.ToLower(v.text), "e")
		e, err := strconv.Atoi(orZero(exponent))
		if err != nil || e > maxDigits || e < -maxDigits || len(mantissa) > maxDigits {
			return nil, fmt.Errorf("%s is too large or too fine to compute with", shown(v.text))
		}
		r, ok := new(big.Rat).SetString(v.text)
		if !ok {
			return nil, fmt.Errorf("%s is not a number", shown(v.text))
		}
		return r, nil
	}
	return nil, nil
}

// fromExact returns the number as it is written: an int where it fits.
func fromExact(r *big.Rat) ref.Val {
	digits, finite := r.FloatPrec()
	switch {
	case !finite:
		return types.NewErr("the result has no exact decimal; round with double(), or leave the division to the destination")
	case digits > maxDigits || r.Num().BitLen() > 4*maxDigits:
		return types.NewErr("the result has more than %d digits", maxDigits)
	}
	return number(r.FloatString(digits))
}

// numberEqual compares exactly where both are numbers; anything else differs
// from a decimal. It never fails: a list takes an element that fails for equal.
func numberEqual(a, b ref.Val) ref.Val {
	if x, y, ok := doubles(a, b); ok {
		return types.Bool(x == y)
	}
	x, ok1 := spelling(a)
	y, ok2 := spelling(b)
	return types.Bool(ok1 && ok2 && x == y)
}

// spelling writes equal numbers alike, without computing with them: digits
// and exponent. An exponent beyond reason stays as it is.
func spelling(v ref.Val) (string, bool) {
	var text string
	switch v := v.(type) {
	case types.Int:
		text = strconv.FormatInt(int64(v), 10)
	case types.Uint:
		text = strconv.FormatUint(uint64(v), 10)
	case decimal:
		text = strings.ToLower(v.text)
	default:
		return "", false
	}
	mantissa, exponent, _ := strings.Cut(text, "e")
	e, err := strconv.ParseInt(orZero(exponent), 10, 32)
	if err != nil {
		return text, true
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	e += int64(len(digits)-len(trimmed)) - int64(len(fraction))
	if trimmed == "" {
		return "0", true
	}
	return fmt.Sprintf("%t %s %d", negative, trimmed, e), true
}

func orZero(exponent string) string {
	if exponent == "" {
		return "0"
	}
	return exponent
}

// doubles returns both as floating point where one of them is and the other is
// a decimal.
func doubles(a, b ref.Val) (x, y types.Double, ok bool) {
	x, ok1 := a.(types.Double)
	y, ok2 := b.(types.Double)
	if ok1 == ok2 {
		return 0, 0, false
	}
	if d, ok := a.(decimal); ok {
		x, ok1 = d.ConvertToType(types.DoubleType).(types.Double)
	}
	if d, ok := b.(decimal); ok {
		y, ok2 = d.ConvertToType(types.DoubleType).(types.Double)
	}
	return x, y, ok1 && ok2
}
