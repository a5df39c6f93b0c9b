package httpdest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// idleFor is how long a connection waits for its next attempt.
const idleFor = 3 * time.Second

// maxHeader bounds the header of an answer.
const maxHeader = 1 << 20

// link is a connection that is ready to carry one attempt after another.
type link struct {
	route  string
	wire   *wire
	client *http.ClientConn
}

// close closes the link so that nothing more can leave.
func (l *link) close() {
	l.wire.abort()
	_ = l.client.Close() // its goroutines end
}

// dialer opens links: straight, through a forward proxy, or through a tunnel.
type dialer struct {
	net   net.Dialer
	proxy func(*http.Request) (*url.URL, error)
	roots *x509.CertPool
}

func newDialer(proxy func(*http.Request) (*url.URL, error), roots *x509.CertPool) dialer {
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return dialer{proxy: proxy, roots: roots}
}

// lookups is the client for reading, which changes nothing and may be repeated.
func (d *dialer) lookups() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: d.proxy, DialContext: d.net.DialContext, TLSClientConfig: d.tls("", nil), ForceAttemptHTTP2: true,
			DisableCompression: true, MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: idleFor, TLSHandshakeTimeout: 10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (d *dialer) tls(host string, protocols []string) *tls.Config {
	return &tls.Config{ServerName: host, RootCAs: d.roots, NextProtos: protocols, MinVersion: tls.VersionTLS12}
}

// via is the proxy for a target, nil for none.
func (d *dialer) via(target *url.URL) (*url.URL, error) {
	proxy, err := d.proxy(&http.Request{Method: http.MethodPost, URL: target, Header: http.Header{}, Host: target.Host})
	if err != nil {
		return nil, fmt.Errorf("find the proxy: %w", err)
	}
	if proxy != nil && proxy.Scheme != "http" && proxy.Scheme != "https" {
		return nil, fmt.Errorf("a %s proxy cannot be used: use an http or https proxy", plain(proxy.Scheme))
	}
	return proxy, nil
}

// dial opens a link to target. No byte of a request leaves.
func (d *dialer) dial(ctx context.Context, target, proxy *url.URL, route string) (*link, error) {
	raw, err := d.tcp(ctx, target, proxy)
	if err != nil {
		return nil, err
	}
	ready := false
	defer func() {
		if !ready {
			_ = raw.Close()
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // ends what does not look at ctx
	defer stop()
	plain, h2 := raw, false
	if proxy != nil && proxy.Scheme == "https" {
		if plain, _, err = d.secure(ctx, plain, proxy.Hostname(), []string{"http/1.1"}); err != nil {
			return nil, fmt.Errorf("proxy %s: %w", proxy.Host, err)
		}
	}
	if target.Scheme == "https" {
		if proxy != nil {
			if err := tunnel(plain, target, proxy); err != nil {
				return nil, fmt.Errorf("proxy %s: %w", proxy.Host, err)
			}
		}
		if plain, h2, err = d.secure(ctx, plain, target.Hostname(), []string{"h2", "http/1.1"}); err != nil {
			return nil, err
		}
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	l := &link{route: route, wire: newWire(plain, raw, h2)}
	if l.client, err = l.wire.client(ctx, target, proxy, h2); err != nil {
		return nil, err
	}
	ready = true
	return l, nil
}

func (d *dialer) tcp(ctx context.Context, target, proxy *url.URL) (net.Conn, error) {
	if proxy == nil {
		return d.net.DialContext(ctx, "tcp", net.JoinHostPort(target.Hostname(), portOf(target)))
	}
	raw, err := d.net.DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), portOf(proxy)))
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", proxy.Host, err)
	}
	return raw, nil
}

// secure puts TLS over conn; the certificate is always verified.
func (d *dialer) secure(ctx context.Context, conn net.Conn, host string, protocols []string) (net.Conn, bool, error) {
	secured := tls.Client(conn, d.tls(host, protocols))
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, false, fmt.Errorf("TLS with %s: %w", host, err)
	}
	return secured, secured.ConnectionState().NegotiatedProtocol == "h2", nil
}

// tunnel asks the proxy for a connection to target.
func tunnel(conn net.Conn, target, proxy *url.URL) error {
	address := net.JoinHostPort(target.Hostname(), portOf(target))
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	// One byte at a time, so that nothing behind the answer is swallowed.
	resp, err := http.ReadResponse(bufio.NewReaderSize(&io.LimitedReader{R: byteReader{conn}, N: maxHeader}, 16), req)
	if err != nil {
		return fmt.Errorf("read its answer to CONNECT: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %d to CONNECT", resp.StatusCode)
	}
	return nil
}

type byteReader struct{ io.Reader }

func (r byteReader) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// client speaks HTTP over the wire. A ClientConn has this one connection and
// never sends anything twice.
func (w *wire) client(ctx context.Context, target, proxy *url.URL, h2 bool) (*http.ClientConn, error) {
	used := false
	hand := func(context.Context, string, string) (net.Conn, error) {
		if used {
			return nil, errors.New("this connection is open already")
		}
		used = true
		return w, nil
	}
	t := &http.Transport{DialContext: hand, DialTLSContext: hand, DisableCompression: true, MaxResponseHeaderBytes: maxHeader, Protocols: new(http.Protocols)}
	// The wire is above TLS already, so HTTP/2 speaks over it as if in the clear.
	t.Protocols.SetHTTP1(!h2)
	t.Protocols.SetUnencryptedHTTP2(h2)
	if target.Scheme == "http" && proxy != nil {
		t.Proxy = func(*http.Request) (*url.URL, error) { return proxy, nil } // absolute request targets
	}
	return t.NewClientConn(ctx, target.Scheme, net.JoinHostPort(target.Hostname(), portOf(target)))
}
