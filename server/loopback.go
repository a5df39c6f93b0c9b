package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/semel-dev/semel"
)

// Listen opens a loopback address such as 127.0.0.1:8090; port 0 takes a free
// one. Any other address is refused with *semel.InputError: whoever reaches it
// could start runs.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &semel.InputError{Field: "listen", Problem: fmt.Sprintf("%q is no address", address), Hint: "write it as 127.0.0.1:8090"}
	}
	if !isLoopback(host) {
		return nil, &semel.InputError{
			Field: "listen", Problem: fmt.Sprintf("%q can be reached from elsewhere, and there is no sign-in", address),
			Hint: "use 127.0.0.1:8090 or [::1]:8090",
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &semel.InputError{Field: "listen", Problem: "cannot be opened: " + err.Error(), Hint: "use another port; port 0 takes a free one"}
	}
	return listener, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// onlyLoopback refuses requests to another host: a name that a stranger lets
// lead to this address makes his page a page of this site.
func onlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !isLoopback(strings.Trim(host, "[]")) {
			write(w, problem{Status: http.StatusMisdirectedRequest, Code: "host", Detail: "this server answers as localhost, 127.0.0.1 and ::1 only; nothing was started"})
			return
		}
		next.ServeHTTP(w, r)
	})
}
