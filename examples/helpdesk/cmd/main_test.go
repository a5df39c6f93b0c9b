package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTwoSweepsEscalateOnce(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-lose", "0"}, &out); err != nil {
		t.Fatal(err)
	}
	if want := `T-1 is "escalated" and T-2 is "escalated" after 2 changes; 2 mails went out`; !strings.Contains(out.String(), want) {
		t.Errorf("want %q in\n%s", want, &out)
	}
}
