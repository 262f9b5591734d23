package cli

import (
	"strings"
	"testing"
	"time"
)

// TestProgress wants a line on a terminal for work that takes a while, and no
// trace of it at the end.
func TestProgress(t *testing.T) {
	var out strings.Builder
	p := &progress{out: &out}
	p.step(1, 240)
	p.step(2, 240) // at once: not written
	p.end()
	if got := out.String(); got != "\r\x1b[Kbelay: resolved 1 of 240 images\r\x1b[K" {
		t.Errorf("wrote %q", got)
	}
	for title, p := range map[string]*progress{
		"short work":  {out: &out, wait: time.Hour, since: time.Now()},
		"no terminal": newProgress(Env{Stderr: &out}),
	} {
		out.Reset()
		p.step(1, 2)
		p.end()
		if out.Len() != 0 {
			t.Errorf("%s: wrote %q", title, out.String())
		}
	}
	if p := newProgress(Env{Stderr: &out, StderrTerminal: true}); p.out == nil || p.wait != time.Second {
		t.Errorf("on a terminal: %+v", p)
	}
}
