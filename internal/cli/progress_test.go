package cli

import (
	"strings"
	"testing"
	"time"
)

// TestProgress wants a line on a terminal for work that takes a while, also
// while nothing gets done, and no trace of it at the end.
func TestProgress(t *testing.T) {
	var out strings.Builder
	p := &progress{out: &out, wait: time.Hour}
	a, b := p.part(), p.part()
	a(0, 200)
	b(0, 40)
	a(1, 200)
	if out.Len() != 0 {
		t.Errorf("too early: %q", out.String())
	}
	p.show() // as the clock does
	b(1, 40)
	p.end()
	p.show()
	p.end()
	if got := out.String(); got != "\r\x1b[Kbelay: resolved 1 of 240 images\r\x1b[K" {
		t.Errorf("wrote %q", got)
	}
	out.Reset()
	p = newProgress(Env{Stderr: &out})
	p.show()
	p.end()
	if out.Len() != 0 || p.part() != nil {
		t.Errorf("without a terminal: wrote %q", out.String())
	}
	if p := newProgress(Env{Stderr: &out, StderrTerminal: true}); p.out == nil || p.wait != time.Second {
		t.Errorf("on a terminal: %+v", p)
	}
}
