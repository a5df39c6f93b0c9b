package postgrestest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the server of this test process. A process variable, because go
// test gives tests of one process no other place to share something in.
var shared struct {
	mu     sync.Mutex
	server *Server
	err    error
}

// Shared returns the server that all tests of this process use, and starts it
// for the first who asks. Nobody may stop or reconfigure it. It fails the test
// where no server can be started.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = Run(context.Background(), Options{MaxConnections: 200})
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Main runs the tests of a package and then closes the shared server, if one
// was started. It is meant to be all of a TestMain.
func Main(m *testing.M) {
	m.Run() // keeps its exit code for the caller of TestMain
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return
	}
	if err := shared.server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// Start runs a server for one test and closes it when the test ends. It fails
// the test where no server can be started.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	server, err := Run(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("PostgreSQL's log:\n%s", server.Log())
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}
