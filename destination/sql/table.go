package sqldest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/semel-dev/semel"
)

// table collects the rows that a statement returned, as JSON.
type table struct {
	columns  []string // quoted
	maxRows  int
	count    int
	affected int64
	rows     bytes.Buffer
}

// head takes the names of the columns.
func (t *table) head(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("two columns are called %q: name one of them with as", name)
		}
		quoted, err := encodeJSON(name)
		if err != nil {
			return err
		}
		t.columns = append(t.columns, string(quoted))
	}
	return nil
}

// add takes one row; value writes its i-th column.
func (t *table) add(value func(dst *bytes.Buffer, i int) error) error {
	if t.count == t.maxRows {
		return fmt.Errorf("the statement returns more than %d rows: add a limit to it, or raise max_rows (Options.MaxRows)", t.maxRows)
	}
	if t.count > 0 {
		t.rows.WriteByte(',')
	}
	t.count++
	for i, name := range t.columns {
		t.rows.WriteByte("{,"[min(i, 1)])
		t.rows.WriteString(name)
		t.rows.WriteByte(':')
		if err := value(&t.rows, i); err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		if t.rows.Len() > semel.MaxResult {
			return errTooLarge
		}
	}
	t.rows.WriteByte('}')
	return nil
}

var errTooLarge = fmt.Errorf("the statement returns more than the %d KiB that are kept: select fewer columns or page it", semel.MaxResult>>10)

// answer is the whole result of a statement.
func (t *table) answer(verb Verb) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	switch verb {
	case VerbClaim:
		fmt.Fprintf(&b, `"won":%t,"affected":%d,`, t.affected == 1, t.affected)
	case VerbExec:
		fmt.Fprintf(&b, `"affected":%d,`, t.affected)
	case VerbQuery:
	}
	b.WriteString(`"rows":[`)
	b.Write(t.rows.Bytes())
	b.WriteString("]}")
	if b.Len() > semel.MaxResult {
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}

func writeText(dst *bytes.Buffer, s string) error {
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8: select hex() of it")
	}
	quoted, err := encodeJSON(s)
	dst.Write(quoted)
	return err
}

// writeJSON writes a JSON document as it is, without its white space.
func writeJSON(dst *bytes.Buffer, raw []byte) error {
	if !json.Valid(raw) {
		return writeText(dst, string(raw))
	}
	return json.Compact(dst, raw)
}

// writeNumber writes a number as the database spells it; what JSON has no
// number for, such as NaN, becomes text.
func writeNumber(dst *bytes.Buffer, s string) error {
	if !json.Valid([]byte(s)) {
		return writeText(dst, s)
	}
	dst.WriteString(s)
	return nil
}

func writeFloat(dst *bytes.Buffer, f float64) error {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return writeText(dst, strconv.FormatFloat(f, 'g', -1, 64))
	}
	raw, err := json.Marshal(f)
	dst.Write(raw)
	return err
}

func writeBytes(dst *bytes.Buffer, b []byte) error {
	raw, err := json.Marshal(b) // base64
	dst.Write(raw)
	return err
}

func writeTime(dst *bytes.Buffer, t time.Time) error {
	return writeText(dst, t.Format(time.RFC3339Nano))
}
