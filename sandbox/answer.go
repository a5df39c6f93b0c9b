package sandbox

import (
	"io"
	"net/http"
	"strconv"
)

// answer is what goes back to the client. Status 0 is no answer at all: the
// connection is closed.
type answer struct {
	Status   int    `json:"status"`
	Body     string `json:"body"`
	replayed bool
}

type errorDetail struct {
	Type    string `json:"type"`
	Code    string `json:"code,omitempty"`
	Param   string `json:"param,omitempty"`
	Message string `json:"message"`
}

func failure(status int, detail errorDetail) answer {
	return answer{Status: status, Body: string(encode(map[string]errorDetail{"error": detail}))}
}

func invalid(param, message string) *answer {
	a := failure(http.StatusBadRequest, errorDetail{
		Type: "invalid_request_error", Code: "parameter_invalid", Param: param, Message: param + ": " + message,
	})
	return &a
}

func unrecorded(err error) answer {
	return failure(http.StatusInternalServerError, errorDetail{
		Type: "api_error", Code: "ledger_unavailable", Message: "nothing was done, the ledger cannot be written: " + err.Error(),
	})
}

// write sends the answer, or closes the connection.
func (a answer) write(w http.ResponseWriter) {
	if a.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	if a.replayed {
		header.Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body) // the client has gone: its loss is what this package is about
}
