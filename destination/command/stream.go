package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

const (
	chunkSize = 32 << 10
	maxTail   = 2 << 10
)

// stream is one output of a program: its beginning and its end are kept, all of
// it is measured and passed on. It holds a bounded amount of memory.
type stream struct {
	pipe *os.File
	pass io.Writer

	// The rest belongs to the reader until it is done.
	head  []byte // the first bytes
	tail  []byte // the last bytes
	size  int64
	sum   hash.Hash
	ended bool // read to its end
}

// pump starts reading, until the stream ends or expires, and passing on, until
// abandon is closed.
func (s *stream) pump(reading, passing *sync.WaitGroup, abandon <-chan struct{}) {
	s.sum = sha256.New()
	var chunks chan []byte
	if s.pass != nil {
		chunks = make(chan []byte, 2)
		passing.Go(func() { passOn(s.pass, chunks, abandon) })
	}
	reading.Go(func() {
		if chunks != nil {
			defer close(chunks)
		}
		buf := make([]byte, chunkSize)
		for {
			n, err := s.pipe.Read(buf)
			s.keep(buf[:n])
			if n > 0 && chunks != nil {
				select {
				case chunks <- bytes.Clone(buf[:n]):
				case <-abandon:
				}
			}
			if err != nil {
				s.ended = errors.Is(err, io.EOF)
				return
			}
		}
	})
}

// passOn writes chunks until w fails; then it drops them, since a reader that
// went away must not stop the program.
func passOn(w io.Writer, chunks <-chan []byte, abandon <-chan struct{}) {
	for chunk := range chunks {
		select {
		case <-abandon:
			w = io.Discard
		default:
		}
		if _, err := w.Write(chunk); err != nil {
			w = io.Discard
		}
	}
}

func (s *stream) keep(b []byte) {
	s.size += int64(len(b))
	s.sum.Write(b)
	s.head = append(s.head, b[:min(len(b), semel.MaxResult-len(s.head))]...)
	s.tail = append(s.tail, b[max(0, len(b)-maxTail):]...)
	if extra := len(s.tail) - maxTail; extra > 0 {
		s.tail = append(s.tail[:0], s.tail[extra:]...)
	}
}

// expire ends the reading of a stream that somebody else still holds open. What
// lies in the pipe is read first.
func (s *stream) expire() { _ = s.pipe.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) }

// result is the stream as an answer with the given status.
func (s *stream) result(status int) *semel.Result {
	r := &semel.Result{Status: status, Body: s.head}
	switch {
	case !s.ended:
		r.Size = -1
	case s.size > int64(len(s.head)):
		r.Size, r.SHA256 = s.size, hex.EncodeToString(s.sum.Sum(nil))
	default:
		r.MediaType = semel.MediaTypeOf(s.head)
	}
	return r
}
