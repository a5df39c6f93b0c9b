package httpdest_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/destinationtest"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// The contract suite, over every route.
func TestContract(t *testing.T) {
	for _, route := range routes {
		t.Run(route, func(t *testing.T) {
			destinationtest.Test(t, func(t *testing.T) destinationtest.World { return contractWorld(t, route) })
		})
	}
}

func contractWorld(t *testing.T, route string) destinationtest.World {
	w := newWorld(t, route)
	d := w.destination(httpdest.Options{})
	var mu sync.Mutex
	effects := map[string]int{}
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	count := func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		return effects[name]
	}
	w.answers(func(rw http.ResponseWriter, r *http.Request, kill func()) {
		name := r.Header.Get("Name")
		if r.Method == http.MethodGet {
			if count(name) == 0 {
				rw.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = rw.Write([]byte(`{"id":"x"}`))
			return
		}
		m := destinationtest.Manner(r.Header.Get("Manner"))
		if m == destinationtest.Refuses {
			rw.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		mu.Lock()
		effects[name]++
		mu.Unlock()
		switch m {
		case destinationtest.LosesAnswer:
			kill()
			return
		case destinationtest.Hangs:
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return
		case destinationtest.Slow:
			time.Sleep(300 * time.Millisecond)
		case destinationtest.Succeeds, destinationtest.Refuses, destinationtest.Unreachable:
		}
		rw.WriteHeader(http.StatusCreated)
		_, _ = rw.Write([]byte(`{"id":"x"}`))
	})
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	return destinationtest.World{
		Destination: d, Effects: count,
		Request: func(name string, m destinationtest.Manner) (semel.Request, semel.Contract, bool) {
			target := w.URL + "/v1/things"
			if m == destinationtest.Unreachable {
				if route == "proxy" {
					return semel.Request{}, semel.Contract{}, false // the proxy takes the bytes: that is unknown
				}
				target = strings.Replace(target, w.Listener.Addr().String(), nobody.Addr().String(), 1)
			}
			b, _ := json.Marshal(name)
			return semel.Request{
					Kind: httpdest.Kind, Method: "POST", URL: target, Body: b, MediaType: "application/json",
					Header: map[string]string{"Name": name, "Manner": string(m)},
				},
				semel.Contract{Protection: semel.Unprotected, LookupURL: w.URL + "/v1/things/{key}"}, true
		},
		Close: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			return d.Close(ctx)
		},
	}
}
