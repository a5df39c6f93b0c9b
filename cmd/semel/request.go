package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
)

// requestJSON is a request as a program reads it.
type requestJSON struct {
	Fingerprint string            `json:"fingerprint"`
	Connection  string            `json:"connection,omitempty"`
	Kind        string            `json:"kind"`
	Method      string            `json:"method,omitempty"`
	URL         string            `json:"url,omitempty"`
	Header      map[string]string `json:"header,omitempty"`
	NeverStored []string          `json:"never_stored,omitempty"`
	MediaType   string            `json:"media_type,omitempty"`
	Args        []string          `json:"args,omitempty"`
	Body        json.RawMessage   `json:"body,omitempty"`
	Encoding    string            `json:"body_encoding,omitempty"`
}

func describeRequest(r *semel.Request, fingerprint string) requestJSON {
	d := requestJSON{
		Fingerprint: fingerprint, Connection: r.Connection, Kind: r.Kind, Method: r.Method, URL: r.URL,
		Header: r.Header, NeverStored: r.Withheld, MediaType: r.MediaType, Args: r.Args,
	}
	d.Body, d.Encoding = embed(r.Body, r.Kind == commandKind)
	return d
}

// asked writes the request of an operation as it was stored.
func asked(w io.Writer, o *semel.Operation) {
	requestTarget(w, &o.Request)
	requestHeader(w, &o.Request)
	if o.Expired {
		fmt.Fprintln(w, "  (the body has expired)")
		return
	}
	showBody(w, o.Request.Body, int64(len(o.Request.Body)))
}

// exactRequest writes a request to the last digit and byte.
func exactRequest(w io.Writer, r *semel.Request) {
	requestTarget(w, r)
	if r.Connection != "" {
		fmt.Fprintf(w, "  over connection %s\n", oneLine(r.Connection))
	}
	requestHeader(w, r)
	if len(r.Body) > 0 {
		fmt.Fprintln(w)
		indented(w, "  ", visible(readable(r.Body)))
	}
}

// requestTarget writes what is sent to where: a program, or a method and a URL, of
// which a database has only the URL.
func requestTarget(w io.Writer, r *semel.Request) {
	if len(r.Args) > 0 {
		words := make([]string, len(r.Args))
		for i, a := range r.Args {
			words[i] = quoteForShell(a)
		}
		fmt.Fprintf(w, "  %s\n", oneLine(strings.Join(words, " ")))
	} else if target := strings.TrimSpace(r.Method + " " + r.URL); target != "" {
		fmt.Fprintf(w, "  %s\n", oneLine(target))
	}
}

func requestHeader(w io.Writer, r *semel.Request) {
	if r.MediaType != "" && r.Method != "" {
		fmt.Fprintf(w, "  Content-Type: %s\n", oneLine(r.MediaType))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(w, "  %s: %s\n", oneLine(name), oneLine(r.Header[name]))
	}
	for _, name := range r.Withheld {
		fmt.Fprintf(w, "  %s: (given, never stored)\n", oneLine(name))
	}
}

// readable is JSON with a line for each member, other text as it is.
func readable(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, body, "", "  ") != nil {
		return string(body)
	}
	return b.String()
}
