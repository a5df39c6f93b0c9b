package spool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// maxFile is the largest file that is read: evidence holds at most
// semel.MaxResult bytes of answer, a third more in JSON, and some words.
const maxFile = 4 * semel.MaxResult

// aside ends the name of a file that a person should look at.
const aside = ".set-aside"

// stage is the ending of a file's name.
type stage string

const (
	writing stage = ".writing"
	kept    stage = ".evidence"
	foreign stage = "" // not ours
)

// file is one name in the directory. The number orders them: it is the time of
// the put in nanoseconds, raised above every number that was there.
type file struct {
	number  int64
	random  string
	stage   stage
	foreign string // its whole name
	size    int64
	written time.Time
}

func (f file) name(s stage) string {
	if s == foreign {
		return f.foreign
	}
	return fmt.Sprintf("%020d-%s%s", f.number, f.random, s)
}

func parseName(name string) file {
	for _, s := range []stage{kept, writing} {
		stem, ok := strings.CutSuffix(name, string(s))
		digits, random, cut := strings.Cut(stem, "-")
		number, err := strconv.ParseInt(digits, 10, 64)
		if f := (file{number: number, random: random, stage: s}); ok && cut && err == nil && f.name(s) == name {
			return f
		}
	}
	return file{foreign: name}
}

// list reads the directory, oldest first, without what was set aside, hidden
// files and directories.
func (s *Spool) list() ([]file, error) {
	d, err := s.dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	files := make([]file, 0, len(entries))
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasSuffix(name, aside) || strings.HasPrefix(name, ".") || entry.IsDir() {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // handed on meanwhile
		}
		if err != nil {
			return nil, err
		}
		f := parseName(name)
		if !info.Mode().IsRegular() {
			f = file{foreign: name} // a link or a pipe is never read
		}
		f.size, f.written = info.Size(), info.ModTime()
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.name(a.stage), b.name(b.stage)))
	})
	return files, nil
}

// A file is one line with the version and the digest, then the evidence in
// JSON. The digest tells a whole file from a torn one.
const version = "semel-spool-1"

type newerError struct{ version string }

func (e *newerError) Error() string {
	return fmt.Sprintf("written by a newer semel (%q, this one knows %s): upgrade this one", e.version, version)
}

func encode(e semel.Evidence) ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	content := append([]byte(version+" "+hex.EncodeToString(sum[:])+"\n"), b...)
	content = append(content, '\n')
	if len(content) > maxFile {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(content), maxFile)
	}
	return content, nil
}

func decode(content []byte) (semel.Evidence, error) {
	head, b, _ := bytes.Cut(content, []byte("\n"))
	v, digest, _ := strings.Cut(string(head), " ")
	b = bytes.TrimSuffix(b, []byte("\n"))
	sum := sha256.Sum256(b)
	switch {
	case digest != hex.EncodeToString(sum[:]):
		return semel.Evidence{}, errors.New("is torn: its digest does not match")
	case v != version:
		return semel.Evidence{}, &newerError{version: v}
	}
	var e semel.Evidence
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return semel.Evidence{}, &newerError{version: v + ": " + err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return semel.Evidence{}, errors.New("holds more than one piece of evidence")
	}
	return e, nil
}
