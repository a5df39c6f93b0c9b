package semel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/semel-dev/semel"

// layers says which of our packages a package may import. All arrows point at
// the root ("."); "*" is every package. A row also covers the packages below
// it, and these may import each other; the longest row wins.
var layers = map[string][]string{
	".":                           {},
	"engine":                      {".", "schedule"},
	"store/sqlite":                {"."},
	"store/postgres":              {"."},
	"store/postgres/postgrestest": {},
	"store/storetest":             {"."},
	"destination/command":         {"."},
	"destination/destinationtest": {"."},
	"destination/file":            {"."},
	"destination/http":            {"."},
	"destination/smtp":            {"."},
	"destination/sql":             {"."},
	"receive":                     {"."},
	"api":                         {"."},
	"schedule":                    {"."},
	"spool":                       {"."},
	"workflowfile":                {"."},
	"connection":                  {".", "destination", "workflowfile"},
	"check":                       {".", "workflowfile"},
	"probe":                       {".", "destination/http"},
	"drill":                       {".", "engine", "store/sqlite", "workflowfile"},
	"semeltest":                   {".", "engine", "store/sqlite", "workflowfile"},
	"console":                     {"api"},
	"server":                      {".", "engine", "api", "console"},
	"sandbox":                     {},
	"demo":                        {"*"},
	"cmd":                         {"*"},
	"bench":                       {"*"},
	"cases":                       {"*"},
	"mutants":                     {},
	"examples":                    {"*"},
	"soak":                        {"*"},
	"docs":                        {"*"},
}

// guarded says who, besides tests, may import a package at all. For the named
// importers it is also a permission.
var guarded = map[string][]string{
	"store/postgres/postgrestest": {"bench", "drill", "semeltest"},
	"store/storetest":             {"bench", "drill", "semeltest"},
	"destination/destinationtest": {"bench", "drill", "semeltest"},
	"semeltest":                   {"bench", "examples"},
	"sandbox":                     {"demo", "cmd", "examples"},
	"demo":                        {"cmd"},
	"cmd":                         {},
	"bench":                       {},
	"cases":                       {},
	"mutants":                     {},
	"examples":                    {},
	"soak":                        {},
	"docs":                        {},
}

// standardOnly are packages that import neither ours nor anyone else's.
var standardOnly = []string{"sandbox"}

// values are the packages of the standard library that the root may import:
// they compute, and hold no clock, goroutine, socket, file or log.
var values = []string{
	"bytes", "cmp", "context", "crypto/hmac", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex",
	"encoding/json", "errors", "fmt", "iter", "maps", "math", "math/big", "net/url", "slices", "sort", "strconv",
	"strings", "time", "unicode", "unicode/utf16", "unicode/utf8",
	"io", // for io.EOF, see rootUses
}

// rootUses are names the root must not use from packages it may import. With
// "only" first, the rest are the only names it may use.
var rootUses = map[string][]string{
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause", "AfterFunc"},
	"io":      {"only", "EOF"},
	"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Local", "LoadLocation"},
}

var vagueNames = []string{"base", "common", "helper", "helpers", "misc", "shared", "types", "util", "utils"}

const longestFile = 500 // lines

func TestPackagesKeepTheirLayers(t *testing.T) {
	for _, violation := range violations(t, os.DirFS(".")) {
		t.Error(violation)
	}
}

func TestViolationsAreFound(t *testing.T) {
	tests := map[string]struct {
		file, text string
		want       string
	}{
		"upward arrow":         {"store/sqlite/a.go", `package sqlite; import _ "` + module + `/engine"`, "store/sqlite may not import engine"},
		"sideways arrow":       {"destination/http/a.go", `package http; import _ "` + module + `/destination/file"`, "destination/http may not import destination/file"},
		"arrow from below":     {"engine/clock/a.go", `package clock; import _ "` + module + `/api"`, "engine/clock may not import api"},
		"arrow out of root":    {"a.go", `package semel; import _ "` + module + `/engine"`, ". may not import engine"},
		"test support":         {"cmd/semel/a.go", `package main; import _ "` + module + `/store/storetest"`, "cmd/semel may not import store/storetest"},
		"sandbox in a library": {"engine/a.go", `package engine; import _ "` + module + `/sandbox"`, "engine may not import sandbox"},
		"command as library":   {"demo/a.go", `package demo; import _ "` + module + `/cmd/semel"`, "demo may not import cmd/semel"},
		"command in a test":    {"demo/a_test.go", `package demo; import _ "` + module + `/cmd/semel"`, "demo may not import cmd/semel"},
		"sandbox with parts":   {"sandbox/a.go", `package sandbox; import _ "github.com/google/uuid"`, "sandbox may import the standard library only, not github.com/google/uuid"},
		"root with parts":      {"a.go", `package semel; import _ "github.com/google/uuid"`, "the root may import value packages only, not github.com/google/uuid"},
		"root with files":      {"a.go", `package semel; import _ "os"`, "the root may import value packages only, not os"},
		"root with locks":      {"a.go", `package semel; import _ "sync/atomic"`, "the root may import value packages only, not sync/atomic"},
		"root with chance":     {"a.go", `package semel; import _ "math/rand/v2"`, "the root may import value packages only, not math/rand/v2"},
		"root with a clock":    {"a.go", `package semel; import "time"; var T = time.Now()`, "the root may not use time.Now"},
		"root with a reader":   {"a.go", `package semel; import "io"; var R io.Reader`, "the root may not use io.Reader"},
		"root with goroutine":  {"a.go", `package semel; func f() { go f() }`, "the root may not start a goroutine"},
		"unlisted package":     {"queue/a.go", `package queue`, "queue is in no row of the import table"},
		"init":                 {"engine/a.go", `package engine; func init() {}`, "func init: wire it in main instead"},
		"vague package":        {"engine/util/a.go", `package util`, "util says nothing: find the noun"},
		"vague directory":      {"engine/misc/a.go", `package retry`, "misc says nothing: find the noun"},
		"testing in a library": {"engine/a.go", `package engine; import _ "testing"`, "engine may not import testing"},
		"long file":            {"engine/a.go", "package engine\n" + strings.Repeat("\n", longestFile), "501 lines, want at most 500"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := violations(t, fstest.MapFS{test.file: {Data: []byte(test.text)}})
			if diff := cmp.Diff([]string{test.file + ": " + test.want}, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllowedShapesPass(t *testing.T) {
	long := strings.Repeat("\n", longestFile)
	tree := fstest.MapFS{
		"a.go":                       {Data: []byte(`package semel; import ("encoding/json"; "io"; "time"); var D json.Decoder; var E = io.EOF; var T time.Time`)},
		"a_test.go":                  {Data: []byte(`package semel_test; import (_ "os"; _ "` + module + `/engine"; _ "` + module + `/sandbox")` + long)},
		"connection/a.go":            {Data: []byte(`package connection; import _ "` + module + `/destination/http"`)},
		"server/b/a.go":              {Data: []byte(`package b; import (_ "` + module + `/server/c"; _ "` + module + `/api")`)},
		"console/page_templ.go":      {Data: []byte("package console" + long)},
		"api/client.gen.go":          {Data: []byte("package api" + long)},
		"bench/a.go":                 {Data: []byte(`package main; import _ "` + module + `/store/postgres/postgrestest"`)},
		"demo/a.go":                  {Data: []byte(`package demo; import _ "` + module + `/sandbox"`)},
		"contrib/river/go.mod":       {Data: []byte("module elsewhere")},
		"contrib/river/util/util.go": {Data: []byte("package util")},
		"check/testdata/a.go":        {Data: []byte("not Go")},
	}
	for _, violation := range violations(t, tree) {
		t.Error(violation)
	}
}

// TestLibcIsTheOneOfSQLite: SQLite is translated from C against one version of
// its C library; with any other it is untested.
func TestLibcIsTheOneOfSQLite(t *testing.T) {
	sqlite := listModule(t, "modernc.org/sqlite")
	var mod struct {
		Require []struct{ Path, Version string }
	}
	output(t, &mod, "go", "mod", "edit", "-json", sqlite.GoMod)
	want := ""
	for _, r := range mod.Require {
		if r.Path == "modernc.org/libc" {
			want = r.Version
		}
	}
	if got := listModule(t, "modernc.org/libc").Version; got != want {
		t.Errorf("modernc.org/libc is %s, but modernc.org/sqlite %s asks for %s: find what raises it with `go mod graph`",
			got, sqlite.Version, want)
	}
}

// violations returns what in the tree breaks the rules above, in file order.
func violations(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if foreign(tree, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f := sourceFile{dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), lines: bytes.Count(text, []byte("\n")), File: parsed}
		f.generated = strings.HasSuffix(name, "_templ.go") || strings.HasSuffix(name, ".gen.go")
		for _, violation := range f.violations() {
			found = append(found, name+": "+violation)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// foreign reports whether a directory holds no packages of this module.
func foreign(tree fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if base == "testdata" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(tree, path.Join(dir, "go.mod"))
	return err == nil
}

type sourceFile struct {
	*ast.File
	dir             string // of the package, from the root
	test, generated bool
	lines           int
}

func (f sourceFile) violations() []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }

	if row(f.dir) == "" {
		report("%s is in no row of the import table", f.dir)
		return found
	}
	for _, name := range slices.Compact([]string{f.Name.Name, path.Base(f.dir)}) {
		if slices.Contains(vagueNames, name) {
			report("%s says nothing: find the noun", name)
		}
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			report("%v", err)
			continue
		}
		if violation := f.importViolation(imported); violation != "" {
			report("%s", violation)
		}
	}
	if f.test || f.generated {
		return found
	}
	if f.lines > longestFile {
		report("%d lines, want at most %d", f.lines, longestFile)
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				report("func init: wire it in main instead")
			}
		case *ast.GoStmt:
			if f.dir == "." {
				report("the root may not start a goroutine")
			}
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && f.dir == "." && !rootMayUse(pkg.Name, n.Sel.Name) {
				report("the root may not use %s.%s", pkg.Name, n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// importViolation returns what is wrong with one import, or "".
func (f sourceFile) importViolation(imported string) string {
	ours, ok := trimModule(imported)
	first, _, _ := strings.Cut(imported, "/")
	standard := !strings.Contains(first, ".")
	switch {
	case ok && !f.mayImport(ours):
		return fmt.Sprintf("%s may not import %s", f.dir, ours)
	case ok || f.test:
		return ""
	case f.dir == "." && !slices.Contains(values, imported):
		return fmt.Sprintf("the root may import value packages only, not %s", imported)
	case !standard && covers(standardOnly, f.dir):
		return fmt.Sprintf("%s may import the standard library only, not %s", f.dir, imported)
	case covers([]string{"testing"}, imported) && !forTests(f.dir):
		return fmt.Sprintf("%s may not import %s", f.dir, imported)
	default:
		return ""
	}
}

func (f sourceFile) mayImport(ours string) bool {
	from, to := row(f.dir), row(ours)
	switch {
	case to == "":
		return false
	case f.test:
		return to != "cmd" || from == "cmd"
	case from == to:
		return true
	}
	if importers, ok := guarded[to]; ok {
		return slices.Contains(importers, from)
	}
	allowed := layers[from]
	return slices.Contains(allowed, "*") || slices.Contains(allowed, to) || to != "." && covers(allowed, to)
}

// row returns the longest row of the import table that covers a package; ""
// if none does.
func row(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := layers[dir]; ok {
			return dir
		}
		if path.Dir(dir) == "." {
			return ""
		}
	}
	return "."
}

// forTests reports whether a package exists to be used by tests.
func forTests(dir string) bool {
	return slices.Contains([]string{"store/postgres/postgrestest", "store/storetest", "destination/destinationtest", "semeltest", "bench"}, row(dir))
}

// covers reports whether name is one of the packages or below one.
func covers(packages []string, name string) bool {
	return slices.ContainsFunc(packages, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}

func rootMayUse(pkg, name string) bool {
	names, ok := rootUses[pkg]
	if !ok {
		return true
	}
	if names[0] == "only" {
		return slices.Contains(names[1:], name)
	}
	return !slices.Contains(names, name)
}

// trimModule turns an import path of this module into a directory.
func trimModule(imported string) (dir string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

type listedModule struct{ Version, GoMod string }

func listModule(t *testing.T, name string) listedModule {
	t.Helper()
	var m listedModule
	output(t, &m, "go", "list", "-m", "-json", name)
	return m
}

// output runs a command and decodes the JSON it prints.
func output(t *testing.T, v any, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	if err := json.Unmarshal(out, v); err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
}
