package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A progress is a line on a terminal that says how far the work is. It is shown
// only for work that takes longer than wait, and goes when the work is done.
type progress struct {
	out  io.Writer // nil for none
	wait time.Duration

	mu    sync.Mutex
	since time.Time
	last  time.Time
	shown bool
}

func newProgress(env Env) *progress {
	p := &progress{wait: time.Second, since: time.Now()}
	if env.StderrTerminal {
		p.out = env.Stderr
	}
	return p
}

// step shows how much is done. Often called, it writes ten times a second.
func (p *progress) step(done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.out == nil || now.Sub(p.since) < p.wait || p.shown && now.Sub(p.last) < time.Second/10 {
		return
	}
	p.shown, p.last = true, now
	// Nothing can be done about a terminal that cannot be written.
	_, _ = fmt.Fprintf(p.out, "\r\x1b[Kbelay: resolved %d of %s", done, count(total, "image"))
}

// end takes the line away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}
