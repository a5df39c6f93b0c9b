package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheSequenceEnds(t *testing.T) {
	for reply, want := range map[string]string{"0": `completed {"mails":3}`, "1": `completed {"mails":1,"reply":"tell me more"}`} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-day", "100ms", "-reply-on-day", reply}, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("reply on day %s, want %q in\n%s", reply, want, &out)
		}
	}
}
