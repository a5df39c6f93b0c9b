package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTheShopOpensAndCloses(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	said := &visitor{t: t, leave: stop}
	if err := run(ctx, []string{"-listen", ""}, said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.page, "One notebook") {
		t.Errorf("the shop shows\n%s", said.page)
	}
}

// visitor opens the shop as soon as it is told where, and then closes it.
type visitor struct {
	t     *testing.T
	leave context.CancelFunc
	page  string
}

func (v *visitor) Write(said []byte) (int, error) {
	defer v.leave()
	rest, _ := strings.CutPrefix(string(said), "the shop is at ")
	base, _, _ := strings.Cut(rest, ",")
	resp, err := http.Get(base)
	if err != nil {
		v.t.Error(err)
		return len(said), nil
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	v.page = string(page)
	return len(said), err
}
