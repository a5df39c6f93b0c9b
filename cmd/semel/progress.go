package main

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// progressLine is how far long work is, on a terminal.
type progressLine struct {
	sh          *shell
	doing, what string // "drilling billing", "schedules"
	shown       bool
	to          bool
}

func (sh *shell) progressLine(doing, what string) *progressLine {
	f, ok := sh.err.(*os.File)
	return &progressLine{sh: sh, doing: doing, what: what, to: ok && sh.getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))}
}

func (p *progressLine) show(done, total int) {
	if !p.to || done%5 > 0 && done < total {
		return
	}
	p.shown = true
	fmt.Fprintf(p.sh.err, "\r%s: %d of %d %s", p.doing, done, total, p.what)
}

// end takes the line away.
func (p *progressLine) end() {
	if p.shown {
		fmt.Fprint(p.sh.err, "\r\x1b[K")
	}
}
