// Package docs_test holds the documentation to what the program does.
//
// Every ```sh block of README.md, docs/guide and docs/reference is run, in the
// order of its page, in one shell and an empty directory, against a semel built
// now. A ```text block right after it is what the shell printed: it must be the
// same but for identifiers, times and names, and a line "..." stands for any
// lines. A ```sh terminal block keeps running while the page lasts. A comment
// <!-- run ... --> is run, and not shown. Addresses that only the reader has
// are replaced by real ones.
//
// Every ```go block must stand in a Go file of this repository, and every
// ```yaml block must be read without complaint: as a workflow, a profile or a
// semel.yaml.
//
//	go test ./docs -run 'TestPages/guide/1' -update
//
// writes what was printed into the pages.
package docs_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

var update = flag.Bool("update", false, "write what the commands print into the pages")

// TestMain makes this program curl, for machines that have none.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "curl" {
		if err := curl(os.Args[1:]); err != nil {
			os.Exit(7)
		}
		os.Exit(0)
	}
	postgrestest.Main(m)
}

// curl prints what a URL answers. It knows -s, -X, -H and -d, before the URL.
func curl(args []string) error {
	f := flag.NewFlagSet("curl", flag.ContinueOnError)
	f.Bool("s", true, "silent")
	method, body := f.String("X", http.MethodGet, "method"), f.String("d", "", "body")
	header := http.Header{}
	f.Func("H", "header", func(line string) error {
		name, value, _ := strings.Cut(line, ": ")
		header.Set(name, value)
		return nil
	})
	if err := f.Parse(args); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(context.Background(), *method, f.Arg(0), strings.NewReader(*body))
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

// What stands in the pages for what only the reader has.
const (
	writtenAddress  = "127.0.0.1:8089"
	writtenServer   = "127.0.0.1:8090"
	writtenAPI      = "https://api.example.com"
	writtenPostgres = "postgres://semel@db.example.com/semel"
	writtenPerson   = "you@host"
	writtenHost     = "host"
	writtenDir      = "/home/you/practice"
	inClone         = "<!-- in the clone -->"
)

// block is a fenced block, or a comment to be run.
type block struct {
	info  string // "sh", "sh terminal", "text", "go", "yaml", ...
	text  string
	line  int
	after bool // right after the block before it
	at    [2]int
}

var fence = regexp.MustCompile("(?s)(?:^|\n)```([^\n]*)\n(.*?)\n?```(?:\n|$)|\n<!-- run\n(.*?)\n-->\n")

func blocks(page string) []block {
	var all []block
	end := 0
	for _, m := range fence.FindAllStringSubmatchIndex(page, -1) {
		b := block{line: strings.Count(page[:m[0]], "\n") + 2, after: strings.TrimSpace(page[end:m[0]]) == ""}
		if m[2] >= 0 {
			b.info, b.text, b.at = page[m[2]:m[3]], page[m[4]:m[5]], [2]int{m[4], m[5]}
		} else {
			b.info, b.text = "sh hidden", page[m[6]:m[7]]
		}
		all = append(all, b)
		end = m[1] - 1
	}
	return all
}

// pages are the files whose commands are run, relative to this directory.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"../README.md"}
	for _, dir := range []string{"guide", "reference"} {
		found, err := filepath.Glob(dir + "/*.md")
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages in %s: %v", dir, err)
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(p string) bool { return p == "reference/states.md" }) // generated, with a test of its own
}

func TestPages(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../cmd/semel")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(self, filepath.Join(bin, "curl")); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range pages(t) {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "../"), ".md")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := read(t, path)
			all := blocks(text)
			if !slices.ContainsFunc(all, func(b block) bool { return b.info == "sh" }) {
				t.Errorf("%s: no command of this page is run", path)
			}
			p := newPage(t, bin, text)
			defer p.end()
			printed := map[[2]int]string{}
			for i, b := range all {
				var want *block
				if i+1 < len(all) && all[i+1].info == "text" && all[i+1].after {
					want = &all[i+1]
				}
				switch b.info {
				case "sh", "sh hidden":
					got := p.run(b)
					if want == nil {
						continue
					}
					if err := p.compare(want.text, got); err != nil && *update {
						printed[want.at] = p.written(got)
					} else if err != nil {
						t.Errorf("%s:%d: %v", path, want.line, err)
					}
				case "sh terminal":
					p.background(b)
				case "text", "go", "yaml", "json", "mermaid":
				case "yaml failing", "yaml failing alone", "yaml fixed", "go failing", "go fixed": // package check tests them
				default:
					t.Errorf("%s:%d: block %q is neither run nor checked", path, b.line, b.info)
				}
			}
			if len(printed) > 0 {
				rewrite(t, path, all, printed)
			}
		})
	}
}

// rewrite puts into a page what was printed.
func rewrite(t *testing.T, path string, all []block, printed map[[2]int]string) {
	t.Helper()
	text := read(t, path)
	for _, b := range slices.Backward(all) {
		if got, ok := printed[b.at]; ok {
			text = text[:b.at[0]] + strings.TrimSuffix(got, "\n") + "\n" + strings.TrimPrefix(text[b.at[1]:], "\n")
		}
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a page
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// page is one page's shell and what its names stand for here.
type page struct {
	t        *testing.T
	dir      string
	env      []string
	replace  [][2]string // written, real
	ids      map[string]string
	shell    *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	blocks   int
	terminal []*exec.Cmd
	reading  sync.WaitGroup // what terminals print
}

func newPage(t *testing.T, bin, text string) *page {
	t.Helper()
	top := t.TempDir()
	p := &page{t: t, dir: filepath.Join(top, "practice"), ids: map[string]string{}}
	for _, dir := range []string{p.dir, filepath.Join(top, "home"), filepath.Join(top, "tmp")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	address := free(t)
	p.replace = [][2]string{{writtenAddress, address}, {writtenServer, free(t)}, {writtenDir, p.dir}}
	if strings.Contains(text, writtenAPI) {
		p.replace = append(p.replace, [2]string{writtenAPI, "http://" + address})
	}
	if strings.Contains(text, writtenPostgres) {
		server := postgrestest.Start(t, postgrestest.Options{Durable: true}) // a careless one earns warnings
		url, err := server.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.replace = append(p.replace, [2]string{writtenPostgres, url})
	}
	if strings.Contains(text, inClone) {
		clone, err := filepath.Abs("..")
		if err != nil {
			t.Fatal(err)
		}
		p.dir = clone
	}
	p.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(top, "home"), "TMPDIR=" + filepath.Join(top, "tmp"),
		"XDG_STATE_HOME=" + filepath.Join(top, "home", "state"), "GOBIN=" + bin, "GOFLAGS=-mod=readonly", "LC_ALL=C.UTF-8",
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOTOOLCHAIN"} {
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		p.env = append(p.env, name+"="+strings.TrimSpace(string(out)))
	}
	p.shell = p.command("bash", "--noprofile", "--norc")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.shell.Stdout, p.shell.Stderr = w, w
	if p.in, err = p.shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.shell.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	p.out = bufio.NewReader(r)
	return p
}

// command is a process of the page, in a process group of its own.
func (p *page) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.dir, p.env, &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// real is text as it applies here.
func (p *page) real(text string) string {
	for _, r := range p.replace {
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	for written, real := range p.ids {
		text = strings.ReplaceAll(text, written, real)
	}
	return text
}

// run runs a block in the page's shell and returns what it printed. Its last
// command must succeed.
func (p *page) run(b block) string {
	p.t.Helper()
	p.blocks++
	file := filepath.Join(p.t.TempDir(), "block")
	if err := os.WriteFile(file, []byte(p.real(b.text)+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	end := fmt.Sprintf("\x01end of block %d: ", p.blocks)
	fmt.Fprintf(p.in, ". %s </dev/null; printf '%s%%d\\n' $?\n", file, end)
	printed := make(chan string, 1)
	go func() {
		var all strings.Builder
		for {
			line, err := p.out.ReadString('\n')
			all.WriteString(line)
			if err != nil || strings.Contains(line, end) {
				printed <- all.String()
				return
			}
		}
	}()
	select {
	case text := <-printed:
		text, code, _ := strings.Cut(text, end)
		if code != "0\n" {
			p.t.Fatalf("line %d: exit code %q of\n%s\n%s", b.line, strings.TrimSpace(code), b.text, text)
		}
		return text
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("line %d: does not end:\n%s", b.line, b.text)
		return ""
	}
}

// background starts a block and waits for the first line that it prints.
func (p *page) background(b block) {
	p.t.Helper()
	cmd := p.command("bash", "--noprofile", "--norc", "-c", "exec "+p.real(b.text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout // one pipe
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.terminal = append(p.terminal, cmd)
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		p.t.Fatalf("line %d: %v: %s", b.line, err, b.text)
	}
	p.reading.Go(func() { _, _ = io.Copy(io.Discard, lines) })
}

func (p *page) end() {
	p.in.Close()
	if p.t.Failed() { // a block may not have ended
		_ = syscall.Kill(-p.shell.Process.Pid, syscall.SIGKILL)
	}
	if err := p.shell.Wait(); err != nil {
		p.t.Errorf("the page's shell: %v", err)
	}
	_ = syscall.Kill(-p.shell.Process.Pid, syscall.SIGKILL) // what it left running
	for _, cmd := range p.terminal {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	p.reading.Wait()
	for _, cmd := range p.terminal {
		if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			p.t.Errorf("%v: %v", cmd, err)
		}
	}
}

var (
	ids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|(?:ch|tr|msg)_[0-9a-f]{20}|\b[0-9a-f]{12}\b`)
	times    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	clocks   = regexp.MustCompile(`\d\d:\d\d:\d\d`)
	days     = regexp.MustCompile(`\d{4}-\d\d-\d\d`)
	workers  = regexp.MustCompile(`\b` + writtenHost + `/\d+`)
	spaces   = regexp.MustCompile(`  +`)
	sizes    = regexp.MustCompile(`\b\d+ bytes`)
	versions = regexp.MustCompile(`\(go[0-9.]+\)`)
	agos     = regexp.MustCompile(`\b\d+s ago|\bin (\d+[dhms])+\b|\bafter \d+s\b`)
	offsets  = regexp.MustCompile(`\+0[12]:00\b`) // of Berlin, in winter and in summer
	ages     = regexp.MustCompile(`  \d+s  `)
	broken   = regexp.MustCompile(`the request may have arrived: .*`) // how depends on timing
	prints   = regexp.MustCompile(`"fingerprint":"1:[0-9a-f]{64}"`)
)

// written is what was printed here as it stands in a page.
func (p *page) written(text string) string {
	slices.SortStableFunc(p.replace, func(a, b [2]string) int { return len(b[1]) - len(a[1]) })
	for _, r := range p.replace {
		text = strings.ReplaceAll(text, r[1], r[0])
	}
	for written, real := range p.ids {
		text = strings.ReplaceAll(text, real, written)
	}
	who, host := "unknown", "localhost"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	text = strings.ReplaceAll(text, who+"@"+host, writtenPerson)
	text = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`/(\d+)`).ReplaceAllString(text, writtenHost+"/$1")
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// normal is text of a page without what differs from run to run.
func normal(text string) string {
	text = ids.ReplaceAllString(text, "ID")
	text = times.ReplaceAllString(text, "TIME")
	text = clocks.ReplaceAllString(text, "CLOCK")
	text = offsets.ReplaceAllString(text, "+OFFSET")
	text = days.ReplaceAllString(text, "DAY")
	text = workers.ReplaceAllString(text, "WORKER")
	text = sizes.ReplaceAllString(text, "N bytes")
	text = versions.ReplaceAllString(text, "(GO)")
	text = prints.ReplaceAllString(text, "FINGERPRINT")
	text = agos.ReplaceAllString(text, "N ago")
	text = ages.ReplaceAllString(text, "  AGE  ")
	text = broken.ReplaceAllString(text, "the request may have arrived")
	return spaces.ReplaceAllString(text, "  ")
}

// compare holds what was printed against what the page shows, and learns which
// identifier of the page is which here.
func (p *page) compare(want, got string) error {
	wanted, printed := strings.Split(want, "\n"), strings.Split(p.written(got), "\n")
	pairs, ok := match(wanted, printed)
	if !ok {
		return fmt.Errorf("(-page +printed):\n%s\nin full:\n%s", cmp.Diff(normal(want), normal(strings.Join(printed, "\n"))), strings.Join(printed, "\n"))
	}
	for _, pair := range pairs {
		shown, real := ids.FindAllString(pair[0], -1), ids.FindAllString(pair[1], -1)
		for i, id := range shown {
			if known, ok := p.ids[id]; ok && real[i] != id && real[i] != known {
				return fmt.Errorf("%s is %s here, and was %s before:\n%s", id, real[i], known, pair[1])
			}
			if _, ok := p.ids[id]; ok {
				continue
			}
			if _, ok := p.ids[real[i]]; ok { // printed, and already put as the page has it
				return fmt.Errorf("%s was %s before, and is the same here:\n%s", id, real[i], pair[1])
			}
			p.ids[id] = real[i]
		}
	}
	return nil
}

// match pairs the lines of a page with those printed; "..." stands for any
// lines.
func match(want, got []string) (pairs [][2]string, ok bool) {
	for i := range want {
		if strings.TrimSpace(want[i]) == "..." {
			for skip := range len(got) - i + 1 {
				if rest, ok := match(want[i+1:], got[i+skip:]); ok {
					return append(pairs, rest...), true
				}
			}
			return nil, false
		}
		if i >= len(got) || normal(want[i]) != normal(got[i]) {
			return nil, false
		}
		pairs = append(pairs, [2]string{want[i], got[i]})
	}
	return pairs, len(got) == len(want)
}
