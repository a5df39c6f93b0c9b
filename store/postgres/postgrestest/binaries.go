package postgrestest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ErrNotInstalled says that no server can be started on this machine.
var ErrNotInstalled = errors.New("PostgreSQL's server binaries (initdb, postgres) are not installed: `make test` installs them")

// Where packages put server binaries that are not on the PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/usr/local/opt/postgresql*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
}

// findBinaries returns the directory of initdb and postgres: the wanted one,
// the one on the PATH, or the newest that a package installed.
func findBinaries(wanted string) (string, error) {
	if wanted != "" {
		if !holdsBinaries(wanted) {
			return "", fmt.Errorf("no initdb and postgres in %s", wanted)
		}
		return wanted, nil
	}
	var dirs []string
	for _, place := range places {
		found, err := filepath.Glob(place)
		if err != nil {
			return "", err
		}
		dirs = append(dirs, found...)
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	if initdb, err := exec.LookPath("initdb"); err == nil {
		// The PATH often has a link to one of the two only.
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			dirs = slices.Insert(dirs, 0, filepath.Dir(initdb))
		}
	}
	for _, dir := range dirs {
		if holdsBinaries(dir) {
			return dir, nil
		}
	}
	return "", ErrNotInstalled
}

func holdsBinaries(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

var digits = regexp.MustCompile(`\d+`)

// version reads the number in a path such as /usr/lib/postgresql/15/bin; 0 if
// there is none.
func version(dir string) int {
	n, err := strconv.Atoi(digits.FindString(dir))
	if err != nil {
		return 0
	}
	return n
}
