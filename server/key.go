package server

import (
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// readKey returns the Idempotency-Key of a request. The bare and the quoted
// spelling are one key.
func readKey(h http.Header) (string, *problem) {
	values := h.Values("Idempotency-Key")
	switch {
	case len(values) == 0:
		return "", &problem{
			Status: http.StatusBadRequest, Code: "key_missing",
			Detail: "the header Idempotency-Key is missing: it names the intention, so that asking twice is one run; send the same key with every repetition, and another for another intention",
		}
	case len(values) > 1:
		return "", badKey("is given twice")
	}
	key := values[0]
	if strings.HasPrefix(key, `"`) {
		item, err := httpsfv.UnmarshalItem(values)
		text, ok := item.Value.(string)
		if err != nil || !ok {
			return "", badKey("begins with a quote and is no quoted string")
		}
		key = text
	}
	if key == "" {
		return "", badKey("is empty")
	}
	return key, nil
}

func badKey(what string) *problem {
	return &problem{Status: http.StatusBadRequest, Code: "key_invalid", Detail: "the header Idempotency-Key " + what + ": send one key, bare or in quotes"}
}
