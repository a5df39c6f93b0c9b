package workflowfile

import (
	"math/big"
	"strconv"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// exactly makes a planned expression compute with decimals: it turns constants
// with a point into decimals, and replaces the operators on numbers.
func exactly(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch i := i.(type) {
	case interpreter.InterpretableConst:
		if d, ok := i.Value().(types.Double); ok {
			return interpreter.NewConstValue(i.ID(), decimal{strconv.FormatFloat(float64(d), 'f', -1, 64)}), nil
		}
	case interpreter.InterpretableCall:
		switch i.Function() {
		case operators.Equals, operators.NotEquals, operators.In,
			operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
			operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
			return binary{i}, nil
		case operators.Negate, overloads.TypeConvertInt, overloads.TypeConvertDouble, overloads.TypeConvertString:
			return unary{i}, nil
		}
	}
	return i, nil
}

// binary is an operator that knows decimals.
type binary struct {
	interpreter.InterpretableCall
}

func (b binary) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, b.Exec)
}

func (b binary) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := b.Args()
	x := args[0].Exec(frame)
	if types.IsUnknownOrError(x) {
		return x
	}
	y := args[1].Exec(frame)
	if types.IsUnknownOrError(y) {
		return y
	}
	result := operate(b.Function(), x, y)
	if costs := frame.CostTracker(); costs != nil {
		costs.EvalBinary(frame, b.ID(), b, x, y, result)
	}
	return result
}

// unary is a negation or conversion that knows decimals.
type unary struct {
	interpreter.InterpretableCall
}

func (u unary) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, u.Exec)
}

func (u unary) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	x := u.Args()[0].Exec(frame)
	if types.IsUnknownOrError(x) {
		return x
	}
	result := convert(u.Function(), x)
	if costs := frame.CostTracker(); costs != nil {
		costs.EvalUnary(frame, u.ID(), u, x, result)
	}
	return result
}

func convert(function string, x ref.Val) ref.Val {
	switch function {
	case overloads.TypeConvertInt:
		return x.ConvertToType(types.IntType)
	case overloads.TypeConvertDouble:
		return x.ConvertToType(types.DoubleType)
	case overloads.TypeConvertString:
		return x.ConvertToType(types.StringType)
	}
	if d, ok := x.(decimal); ok {
		r, err := exact(d)
		if err != nil {
			return types.WrapErr(err)
		}
		return fromExact(r.Neg(r))
	}
	if n, ok := x.(traits.Negater); ok {
		return n.Negate()
	}
	return types.MaybeNoSuchOverloadErr(x)
}

// operate applies an operator to two values.
func operate(function string, x, y ref.Val) ref.Val {
	switch function {
	case operators.Equals:
		return equal(x, y)
	case operators.NotEquals:
		return types.Bool(equal(x, y) != types.True)
	case operators.In:
		return contains(y, x)
	}
	_, ok1 := x.(decimal)
	_, ok2 := y.(decimal)
	if ok1 || ok2 {
		if a, b, ok := doubles(x, y); ok {
			return plain(function, a, b)
		}
		a, err := exact(x)
		if err != nil {
			return types.WrapErr(err)
		}
		b, err := exact(y)
		if err != nil {
			return types.WrapErr(err)
		}
		if a != nil && b != nil {
			return compute(function, a, b)
		}
		return types.MaybeNoSuchOverloadErr(y)
	}
	return plain(function, x, y)
}

// equal compares what lists and mappings hold as operate does, also where one
// has an int and the other a decimal.
func equal(x, y ref.Val) ref.Val {
	switch x := x.(type) {
	case traits.Mapper:
		y, ok := y.(traits.Mapper)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			other, found := y.Find(key)
			if !found || equal(x.Get(key), other) != types.True {
				return types.False
			}
		}
		return types.True
	case traits.Lister:
		y, ok := y.(traits.Lister)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		b := y.Iterator()
		for a := x.Iterator(); a.HasNext() == types.True; {
			if equal(a.Next(), b.Next()) != types.True {
				return types.False
			}
		}
		return types.True
	}
	if _, ok := y.(decimal); ok {
		return numberEqual(x, y)
	}
	return types.Equal(x, y)
}

func contains(in, x ref.Val) ref.Val {
	list, ok := in.(traits.Lister)
	if !ok {
		if c, ok := in.(traits.Container); ok {
			return c.Contains(x)
		}
		return types.MaybeNoSuchOverloadErr(in)
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		if equal(x, it.Next()) == types.True {
			return types.True
		}
	}
	return types.False
}

// compute works on exact numbers.
func compute(function string, a, b *big.Rat) ref.Val {
	switch function {
	case operators.Add:
		return fromExact(a.Add(a, b))
	case operators.Subtract:
		return fromExact(a.Sub(a, b))
	case operators.Multiply:
		return fromExact(a.Mul(a, b))
	case operators.Divide:
		if b.Sign() == 0 {
			return types.NewErr("division by zero")
		}
		return fromExact(a.Quo(a, b))
	}
	return ordered(function, types.Int(a.Cmp(b)))
}

// plain is what CEL does without decimals.
func plain(function string, x, y ref.Val) ref.Val {
	switch function {
	case operators.Add:
		if x, ok := x.(traits.Adder); ok {
			return x.Add(y)
		}
	case operators.Subtract:
		if x, ok := x.(traits.Subtractor); ok {
			return x.Subtract(y)
		}
	case operators.Multiply:
		if x, ok := x.(traits.Multiplier); ok {
			return x.Multiply(y)
		}
	case operators.Divide:
		if x, ok := x.(traits.Divider); ok {
			return x.Divide(y)
		}
	default:
		if x, ok := x.(traits.Comparer); ok {
			return ordered(function, x.Compare(y))
		}
	}
	return types.MaybeNoSuchOverloadErr(x)
}

// ordered reads the outcome of a comparison, -1, 0 or 1.
func ordered(function string, outcome ref.Val) ref.Val {
	c, ok := outcome.(types.Int)
	if !ok {
		return outcome
	}
	switch function {
	case operators.Less:
		return types.Bool(c < 0)
	case operators.LessEquals:
		return types.Bool(c <= 0)
	case operators.Greater:
		return types.Bool(c > 0)
	}
	return types.Bool(c >= 0)
}
