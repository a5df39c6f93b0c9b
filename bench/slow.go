package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed slowfsync/slow.c
var slowC []byte

// startSlowServer starts a server whose every fsync takes 1 ms longer, as on a
// network volume.
func startSlowServer(ctx context.Context, dir string) (*server, error) {
	source, library := filepath.Join(dir, "slow.c"), filepath.Join(dir, "slow.so")
	if err := os.WriteFile(source, slowC, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "gcc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile slow.c: %w\n%s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the server runs as another account
		return nil, err
	}
	// The server inherits what this process has in its environment; the workers
	// must not.
	err := errors.Join(os.Setenv("LD_PRELOAD", library), os.Setenv("SLOW_US", "1000"))
	if err != nil {
		return nil, err
	}
	s, err := startServer(ctx, "")
	return s, errors.Join(err, os.Unsetenv("LD_PRELOAD"), os.Unsetenv("SLOW_US"))
}
