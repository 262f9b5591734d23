package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/belay-krm/belay/fn/digest"
)

// A counter is a client that counts who is inside of it.
type counter struct{ inside, most, calls atomic.Int64 }

func (c *counter) Resolve(context.Context, name.Reference) (digest.Image, error) {
	c.calls.Add(1)
	n := c.inside.Add(1)
	for {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			break
		}
	}
	time.Sleep(time.Millisecond)
	c.inside.Add(-1)
	return digest.Image{}, nil
}

func (c *counter) Platforms(context.Context, name.Digest) ([]string, error) { return nil, nil }
func (c *counter) Requests() int                                            { return int(c.calls.Load()) }
func (c *counter) Warnings() []string                                       { return nil }

func tag(t *testing.T, s string) name.Tag {
	t.Helper()
	out, err := name.NewTag(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestClients wants packages with one network to share a client, which is asked
// once for each reference, and of each registry for no more than jobs at a time.
func TestClients(t *testing.T) {
	c := &counter{}
	dials := 0
	all := newClients(Env{Dial: func(digest.NetworkConfig) (Client, error) { dials++; return c, nil }})
	cfg := digest.Config{Jobs: 3}
	var wg sync.WaitGroup
	for range 10 { // packages
		o, err := all.of(cfg, "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			wg.Go(func() {
				if _, err := o.Resolve(t.Context(), tag(t, fmt.Sprintf("a.example.com/x:%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if dials != 1 || c.calls.Load() != 20 || c.most.Load() > 3 || all.Requests() != 20 {
		t.Errorf("%d clients, %d calls, %d at a time", dials, c.calls.Load(), c.most.Load())
	}
	if _, err := all.of(digest.Config{Jobs: 3, Network: digest.NetworkConfig{Timeout: 1}}, ""); err != nil || len(all.all) != 2 {
		t.Errorf("another network has no client of its own: %v", err)
	}
}

// late answers once the run has time.
type late struct{ counter }

func (l *late) Resolve(ctx context.Context, ref name.Reference) (digest.Image, error) {
	if ctx.Err() != nil {
		return digest.Image{}, ctx.Err()
	}
	return l.counter.Resolve(ctx, ref)
}

// TestClientsAskAgain wants the end of one package not to be the answer for
// another.
func TestClientsAskAgain(t *testing.T) {
	o, err := newClients(Env{Dial: func(digest.NetworkConfig) (Client, error) { return &late{}, nil }}).of(digest.Config{Jobs: 1}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Resolve(ctx, tag(t, "a.example.com/x:1")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := o.Resolve(t.Context(), tag(t, "a.example.com/x:1")); err != nil {
		t.Error(err)
	}
}

// TestClientsCancelled wants those who wait for a turn to leave when the run
// ends.
func TestClientsCancelled(t *testing.T) {
	o, err := newClients(Env{Dial: func(digest.NetworkConfig) (Client, error) { return &counter{}, nil }}).of(digest.Config{Jobs: 1}, "")
	if err != nil {
		t.Fatal(err)
	}
	o.slot("a.example.com") <- true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Resolve(ctx, tag(t, "a.example.com/x:1")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
