package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestAnEditorDecides(t *testing.T) {
	for answer, want := range map[string]string{"y\n": "the platform has 1 article", "n\n": "it was not approved"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-lose", "0"}, strings.NewReader(answer), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("answered %q, want %q in\n%s", answer, want, &out)
		}
	}
}

func TestASecondStartPublishesNothing(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	for range 2 {
		out.Reset()
		if err := run(t.Context(), []string{"-lose", "0", "-dir", dir}, strings.NewReader("y\n"), &out); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "completed {\"id\":\"art_1\",\"slug\":\"retry\"}\n"; got != want {
		t.Errorf("the second time it says %q, want %q", got, want)
	}
}
