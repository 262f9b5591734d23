package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/manifest"
)

// clients holds the clients of a run: one for each way of reaching registries
// that the configurations of its packages have.
type clients struct {
	dial func(digest.NetworkConfig) (Client, error)
	all  []*onceClient
	by   map[string]*onceClient
}

func newClients(env Env) *clients { return &clients{dial: env.Dial, by: map[string]*onceClient{}} }

// of gives the client of a configuration. Certificates that are files are read,
// below dir where their paths are relative.
func (c *clients) of(cfg digest.Config, dir string) (*onceClient, error) {
	n, err := readCertificates(cfg.Network, dir)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%d %+v", cfg.Jobs, n)
	if c.by[key] != nil {
		return c.by[key], nil
	}
	o := &onceClient{dial: func() (Client, error) { return c.dial(n) }, jobs: cfg.Jobs, asked: map[string]*reply{}, slots: map[string]chan bool{}}
	if len(n.Registries) > 0 {
		// Certificates that cannot be used are an error of the configuration.
		if _, err := o.connect(); err != nil {
			return nil, usageError{fmt.Errorf("reading the configuration: %w", err)}
		}
	}
	c.by[key] = o
	c.all = append(c.all, o)
	return o, nil
}

// readCertificates puts the text of PEM files in place of their paths.
func readCertificates(n digest.NetworkConfig, dir string) (digest.NetworkConfig, error) {
	var errs []error
	read := func(at string, value *string) {
		if *value == "" || strings.Contains(*value, "-----BEGIN") || strings.Contains(*value, "\n") {
			return // the text itself: of a key, it must not be taken for a path and named
		}
		path := *value
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, usageError{fmt.Errorf("reading the configuration: %s: %w", at, plain(err))})
		}
		*value = string(data)
	}
	registries := make([]digest.Registry, len(n.Registries))
	copy(registries, n.Registries)
	for i := range registries {
		at := fmt.Sprintf("digests.network.registries[%d].", i)
		read(at+"ca", &registries[i].CA)
		read(at+"cert", &registries[i].Cert)
		read(at+"key", &registries[i].Key)
	}
	n.Registries = registries
	return n, errors.Join(errs...)
}

// Requests gives the number of HTTP requests sent so far.
func (c *clients) Requests() int {
	n := 0
	for _, o := range c.all {
		n += o.Requests()
	}
	return n
}

// report adds the clients' warnings to the results of a run.
func (c *clients) report(list *manifest.List) {
	for _, o := range c.all {
		o.report(list)
	}
}

// A onceClient makes its client when it is first needed, and asks it once for
// each reference of a run, in however many packages it stands, and of each
// registry for so many at a time as jobs says.
type onceClient struct {
	dial func() (Client, error)
	jobs int

	mu     sync.Mutex
	client Client
	err    error
	asked  map[string]*reply
	slots  map[string]chan bool // by registry
}

// A reply is what the client says of one reference.
type reply struct {
	mu   sync.Mutex
	done bool
	said
}

type said struct {
	image     digest.Image
	platforms []string
	err       error
}

func (c *onceClient) connect() (Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil && c.err == nil {
		c.client, c.err = c.dial()
	}
	return c.client, c.err
}

// reply gives the place for what the client says of something.
func (c *onceClient) reply(key string) *reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked[key] == nil {
		c.asked[key] = &reply{}
	}
	return c.asked[key]
}

// Resolve implements digest.Resolver.
func (c *onceClient) Resolve(ctx context.Context, ref name.Reference) (digest.Image, error) {
	r := c.ask(ctx, ref.Context(), ref.Name(), func(client Client, r *said) {
		r.image, r.err = client.Resolve(ctx, ref)
	})
	return r.image, r.err
}

// ask gives what the client says, which is found out by the first who asks.
func (c *onceClient) ask(ctx context.Context, repo name.Repository, key string, find func(Client, *said)) said {
	client, err := c.connect()
	if err != nil {
		return said{err: err}
	}
	r := c.reply(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return r.said
	}
	slot := c.slot(repo.RegistryStr())
	select {
	case slot <- true:
		defer func() { <-slot }()
		find(client, &r.said)
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	// What the end of one package cut short may be asked again for another.
	r.done = ctx.Err() == nil
	return r.said
}

func (c *onceClient) slot(registry string) chan bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slots[registry] == nil {
		c.slots[registry] = make(chan bool, max(c.jobs, 1))
	}
	return c.slots[registry]
}

// Platforms implements digest.Resolver.
func (c *onceClient) Platforms(ctx context.Context, ref name.Digest) ([]string, error) {
	r := c.ask(ctx, ref.Context(), "platforms "+ref.Name(), func(client Client, r *said) {
		r.platforms, r.err = client.Platforms(ctx, ref)
	})
	return r.platforms, r.err
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
