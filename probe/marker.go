package probe

import (
	"net/http"
	"slices"
	"strings"
)

// knownMarkers are the headers by which destinations mark a replay.
var knownMarkers = []string{
	"Idempotent-Replayed", "Idempotency-Replayed", "Idempotency-Replay", "X-Idempotent-Replayed", "X-Idempotency-Replayed", "X-Idempotency-Replay",
}

// mark notes whether an answer says that it comes from memory: by the declared
// marker, by one that was learnt, or by one that others use.
func (r *run) mark(e *Exchange) {
	declared := r.target.Destination.Profile().ReplayMarker
	bears := func(name, is string) bool {
		return name != "" && slices.ContainsFunc(e.header[http.CanonicalHeaderKey(name)], func(v string) bool { return strings.EqualFold(v, is) })
	}
	switch {
	case bears(declared.Header, declared.Is):
		e.Marked = declared.Header + ": " + declared.Is
		return
	case r.marker != nil && bears(r.marker.Header, r.marker.Is):
		e.Marked, e.learnt = r.marker.Header+": "+r.marker.Is, true
		return
	}
	for _, name := range knownMarkers {
		for _, v := range e.header[name] {
			if v != "" && !slices.Contains([]string{"false", "0", "no", "miss"}, strings.ToLower(v)) {
				e.Marked = name + ": " + v
				return
			}
		}
	}
}

// learn takes the one header that only the second of two answers about one
// effect bears for the marker of a replay.
func (r *run) learn(first, second *Exchange) {
	if second.Marked != "" || first.Reference == "" || first.Reference != second.Reference || second.tells() != made {
		return
	}
	var only []Marker
	for name, values := range second.header {
		if _, both := first.header[name]; both || len(values) != 1 || len(values[0]) > 40 || changing(name) {
			continue
		}
		only = append(only, Marker{name, values[0]})
	}
	if len(only) == 1 {
		r.marker = &only[0]
		r.mark(second)
	}
}

// changing reports whether a header differs from answer to answer anyway.
func changing(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"date", "age", "length", "limit", "retry", "request-id", "trace", "cookie", "etag", "server", "connection", "encoding", "cache-control", "expires", "vary"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// markerOf is the marker that an answer bears, nil for none.
func markerOf(e *Exchange) *Marker {
	name, is, ok := strings.Cut(e.Marked, ": ")
	if !ok {
		return nil
	}
	return &Marker{name, is}
}
