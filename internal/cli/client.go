package cli

import (
	"context"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/belay-krm/belay/fn/manifest"
)

// A onceClient makes its client when it is first needed, and asks it once for
// each tag of a run, in however many packages the tag stands.
type onceClient struct {
	dial func() Client

	mu     sync.Mutex
	client Client
	asked  map[string]*reply
}

// A reply is what the client says of one tag.
type reply struct {
	once   sync.Once
	digest v1.Hash
	err    error
}

// Resolve implements digest.Resolver.
func (c *onceClient) Resolve(ctx context.Context, tag name.Tag) (v1.Hash, error) {
	c.mu.Lock()
	if c.client == nil {
		c.client, c.asked = c.dial(), map[string]*reply{}
	}
	r := c.asked[tag.Name()]
	if r == nil {
		r = &reply{}
		c.asked[tag.Name()] = r
	}
	client := c.client
	c.mu.Unlock()
	r.once.Do(func() { r.digest, r.err = client.Resolve(ctx, tag) })
	return r.digest, r.err
}

// Requests gives the number of HTTP requests sent so far; 0 if the client was
// never needed.
func (c *onceClient) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		return 0
	}
	return c.client.Requests()
}

// report adds the client's warnings to the results of a run.
func (c *onceClient) report(list *manifest.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		return
	}
	for _, w := range c.client.Warnings() {
		list.Report(manifest.Result{Severity: manifest.Warning, Step: "pinning images", Message: w})
	}
}
