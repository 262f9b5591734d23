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

	mu          sync.Mutex
	timer       *time.Timer // until the line is shown
	done, total int
	last        time.Time // when it was written; zero while it is not shown
}

func newProgress(env Env) *progress {
	p := &progress{wait: time.Second}
	if env.StderrTerminal {
		p.out = env.Stderr
	}
	return p
}

// part gives what notes how much of one part of the work is done: of one
// package, say. It may be called by several goroutines, in any order.
func (p *progress) part() func(done, total int) {
	if p.out == nil {
		return nil
	}
	var before, of int
	return func(done, total int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		done = max(done, before)
		p.step(done-before, total-of)
		before, of = done, total
	}
}

// step adds to what is done and to be done. The first call starts the clock;
// often called, it writes ten times a second. The caller holds the lock.
func (p *progress) step(done, total int) {
	p.done, p.total = p.done+done, p.total+total
	if p.timer == nil {
		p.timer = time.AfterFunc(p.wait, p.show)
	}
	if !p.last.IsZero() && time.Since(p.last) > time.Second/10 {
		p.write()
	}
}

// show writes the line, unless the work ended before.
func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.write()
	}
}

// write writes the line. The caller holds the lock.
func (p *progress) write() {
	p.last = time.Now()
	// Nothing can be done about a terminal that cannot be written.
	_, _ = fmt.Fprintf(p.out, "\r\x1b[Kbelay: resolved %d of %s", p.done, count(p.total, "image"))
}

// end takes the line away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	if !p.last.IsZero() {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.timer, p.last, p.done, p.total = nil, time.Time{}, 0, 0
}
