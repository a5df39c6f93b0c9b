package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/semel-dev/semel"
)

// readBody reads the JSON body of a call; nil for none.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, semel.MaxInput))
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, &problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: fmt.Sprintf("the body has more than %d bytes: pass a reference to the data", semel.MaxInput)}
	}
	if err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Code: "body", Detail: "the body did not arrive in whole; nothing was done"}
	}
	if len(body) == 0 {
		return nil, nil
	}
	if t := r.Header.Get("Content-Type"); t != "" && !isJSON(t) {
		return nil, &problem{Status: http.StatusUnsupportedMediaType, Code: "media_type", Detail: "the body is " + t + ": send application/json"}
	}
	if !json.Valid(body) {
		return nil, &problem{Status: http.StatusBadRequest, Code: "body", Detail: "the body is no JSON"}
	}
	return body, nil
}

func isJSON(mediaType string) bool {
	t, _, err := mime.ParseMediaType(mediaType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}
