package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/workflowfile"
)

// lookEvery is how often dev looks whether a file was saved.
const lookEvery = 500 * time.Millisecond

// workbench executes the files of a directory as they are now: a change that
// can be used gets a new worker, and the one before brings its runs to a step.
type workbench struct {
	sh  *shell
	dir string
	w   *witness
	e   *engine.Engine

	stamp string // of all files when they were read last
	shown string // what was said about them
	group sync.WaitGroup
	stop  context.CancelFunc // of the current worker; nil for none

	mu     sync.Mutex
	config *connection.Config
	text   string               // of its file
	old    []*connection.Config // runs may still use them
	good   map[string]workflowText
	worker *engine.Worker
}

// work reads files when they change, until ctx ends.
func (b *workbench) work(ctx context.Context) {
	b.renew(ctx)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			if b.read() {
				b.renew(ctx)
			}
		case <-ctx.Done():
		}
	}
	if b.stop != nil {
		b.stop()
	}
	b.group.Wait()
}

// read reads the files if one was saved, and reports whether that changes what
// is executed. What has errors stays as it was.
func (b *workbench) read() bool {
	stamp := stampOf(b.dir, b.sh.configBeside(b.dir))
	if stamp == b.stamp {
		return false
	}
	b.stamp = stamp
	p, err := b.sh.readProject(b.dir)
	if err != nil {
		b.show(unreadable(err) + "\n")
		return false
	}
	if p.config == nil {
		b.show(problemLines(p.problems) + "semel: " + p.from + " has errors: everything stays as it was\n")
		return false
	}
	var text []byte
	if p.from != "" {
		text, _ = os.ReadFile(p.from) // it was read just now; another text is seen with the next look
	}
	good, kept := b.usable(p)
	changes := b.changes(good, string(text))
	b.show(problemLines(p.all()) + kept)
	if len(changes) == 0 {
		return false
	}
	b.sh.say("%s", strings.Join(changes, "; "))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.config != nil {
		b.old = append(b.old, b.config)
	}
	b.config, b.text, b.good = p.config, string(text), good
	return true
}

// usable are the files without errors, and those with errors as they were
// before; kept says so.
func (b *workbench) usable(p *project) (good map[string]workflowText, kept string) {
	good = map[string]workflowText{}
	for _, f := range p.files {
		before, known := b.good[f.path]
		switch {
		case f.definition != nil:
			good[f.path] = f
		case known:
			good[f.path] = before
			kept += fmt.Sprintf("semel: %s has errors: %s@%d stays as it was\n", f.path, before.definition.Name, before.definition.Version)
		default:
			kept += fmt.Sprintf("semel: %s has errors: nothing of it runs\n", f.path)
		}
	}
	return good, kept
}

// changes says what is new, in words.
func (b *workbench) changes(good map[string]workflowText, text string) (changes []string) {
	if b.config == nil && len(good) == 0 {
		return []string{"no workflow yet: save one as " + filepath.Join(b.dir, "NAME.yaml")}
	}
	if b.config != nil && text != b.text {
		changes = append(changes, "the connections were read again")
	}
	for _, path := range slices.Sorted(maps.Keys(good)) {
		is := good[path].definition.Workflow(nil)
		before, known := b.good[path]
		if !known {
			changes = append(changes, fmt.Sprintf("%s of %s", is.Ref(), path))
			continue
		}
		was := before.definition.Workflow(nil)
		switch {
		case was.Ref() != is.Ref():
			changes = append(changes, fmt.Sprintf("%s is %s now", was.Ref(), is.Ref()))
		case was.Digest != is.Digest:
			changes = append(changes, fmt.Sprintf("%s changed under the same version: new runs begin with it, and those that had begun are held", is.Ref()))
		case string(was.Text) != string(is.Text):
			changes = append(changes, is.Ref().String()+" was read again, and does the same")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b.good)) {
		if _, there := good[path]; !there {
			changes = append(changes, path+" is gone: runs of its workflow wait")
		}
	}
	return changes
}

// show says what is wrong, unless it was said already.
func (b *workbench) show(text string) {
	if text != b.shown && text != "" {
		fmt.Fprint(b.sh.err, text)
	}
	b.shown = text
}

// renew puts a worker with the files as they are in the place of the last one.
func (b *workbench) renew(ctx context.Context) {
	files := b.definitions()
	b.mu.Lock()
	config := b.config
	b.mu.Unlock()
	if config == nil {
		return
	}
	old, lost, err := earlier(ctx, b.w.Runs, files, checksWith(config), config)
	for _, text := range lost {
		b.sh.say("warning: %s", text)
	}
	var worker *engine.Worker
	if err == nil {
		worker, err = engine.NewWorker(ctx, b.e, engine.WorkerOptions{Workflows: executable(files, config), Earlier: old, Drain: closing})
	}
	if err != nil {
		if ctx.Err() == nil {
			b.sh.say("the change could not be taken over: %v", err)
		}
		return
	}
	if b.stop != nil {
		b.stop()
	}
	own, stop := context.WithCancel(ctx)
	b.stop = stop
	b.mu.Lock()
	b.worker = worker
	b.mu.Unlock()
	b.group.Go(func() {
		if err := worker.Run(own); !errors.Is(err, context.Canceled) {
			b.sh.say("%v", err)
		}
	})
}

// Start starts a run with the current worker.
func (b *workbench) Start(ctx context.Context, n semel.NewRun) (semel.Run, bool, error) {
	b.mu.Lock()
	worker := b.worker
	b.mu.Unlock()
	if worker == nil {
		return b.e.Start(ctx, n)
	}
	return worker.Start(ctx, n)
}

// resolve finds how a stored operation is sent, by the connections as they are.
func (b *workbench) resolve(o *semel.Operation) (semel.Destination, semel.Contract, error) {
	b.mu.Lock()
	config := b.config
	b.mu.Unlock()
	if config == nil {
		return nil, semel.Contract{}, errors.New(configName + " has errors")
	}
	return config.Resolve(o)
}

// definitions are the files as they are.
func (b *workbench) definitions() (all []*workflowfile.Definition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(b.good)) {
		all = append(all, b.good[path].definition)
	}
	return all
}

// tenant is that of the connections at the start.
func (b *workbench) tenant() string {
	if b.config == nil {
		return ""
	}
	return b.config.Tenant
}

func (b *workbench) close(ctx context.Context) {
	if b.config != nil {
		b.old = append(b.old, b.config)
	}
	for _, c := range b.old {
		b.sh.closeConfig(ctx, c)
	}
}

// stampOf tells whether anything in a directory was saved: names, sizes and
// times of its files and of the one with connections. What begins with a dot, and
// what is too large to be named by a workflow, does not count.
func stampOf(dir, config string) string {
	var b strings.Builder
	add := func(path string, info fs.FileInfo) {
		fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read now is seen when it can
		case path != dir && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.Size() <= workflowfile.MaxFile {
			add(path, info)
		}
		return nil
	})
	if info, err := os.Stat(config); err == nil {
		add(config, info)
	}
	return b.String()
}
