// Package registry asks container registries for digests. It is the only code
// of belay that opens a connection.
//
// A tag costs one HEAD request, which registries do not count as a pull. A
// registry is greeted once, and a token is had once for each repository. A GET is
// made only where a registry does not answer HEAD, and then its body is hashed.
// Credentials come from the configuration of Docker or Podman, and then from
// what the environment has for GHCR, ECR, ACR and Google.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/belay-krm/belay/fn/digest"
)

// Options say how a Client works.
type Options struct {
	// Network says how registries are reached. CA, Cert and Key hold PEM text.
	// The zero value means 10 seconds for a request.
	Network digest.NetworkConfig
	// Keychain gives the credentials; nil for those of the environment.
	Keychain authn.Keychain
	// Tries is how often a request is made that fails for reasons that pass;
	// 0 for 3.
	Tries int
	// Backoff is the first pause between two tries, which doubles each time; 0
	// for half a second.
	Backoff time.Duration
	// Timeout is what one request may take; 0 for what Network says, or else 10
	// seconds.
	Timeout time.Duration
	// HelperTimeout is what a credential helper may take; 0 for 10 seconds.
	HelperTimeout time.Duration
}

// A Client resolves tags. It may be used by several goroutines.
type Client struct {
	keys     *keys
	guard    *guard
	http     *http.Client
	configs  map[string]digest.Registry // by host
	requests atomic.Int64

	mu       sync.Mutex
	hosts    map[string]*host
	warnings []string
}

// New gives a client. It opens no connection. The error is about certificates
// that cannot be read.
func New(opt Options) (*Client, error) {
	c := &Client{guard: newGuard(opt.Network.Allow), configs: map[string]digest.Registry{}, hosts: map[string]*host{}}
	c.keys = newKeys(opt, c.warn)
	routes := router{"": c.guard.transport(nil)}
	for i, r := range opt.Network.Registries {
		tls, err := tlsConfig(r)
		if err != nil {
			return nil, fmt.Errorf("digests.network.registries[%d] (%s): %w", i, r.Host, err)
		}
		name := digest.CanonicalHost(r.Host)
		c.configs[name] = r
		if tls != nil {
			routes[name] = c.guard.transport(tls)
		}
	}
	c.http = &http.Client{Transport: newRetrier(opt, routes, &c.requests), CheckRedirect: c.guard.redirect}
	return c, nil
}

// host gives the registry of a name.
func (c *Client) host(name string) *host {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hosts[name] == nil {
		c.hosts[name] = &host{client: c, name: name, config: c.configs[name], repos: map[string]*repository{}}
	}
	return c.hosts[name]
}

// Requests gives the number of HTTP requests sent so far, those of handshakes
// and repeated ones included.
func (c *Client) Requests() int { return int(c.requests.Load()) }

// Warnings gives what went wrong without being a failure, sorted.
func (c *Client) Warnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.warnings)
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *Client) warn(w string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnings = append(c.warnings, w)
}

// A place is where something can be asked for: a repository of a registry.
type place struct {
	*host
	repo string
}

// places gives where a repository is looked up: the registry that its name
// gives, and the mirror; one of them may be nil.
func (c *Client) places(repo name.Repository) (source, mirror *place) {
	h := c.host(repo.RegistryStr())
	source = &place{h, repo.RepositoryStr()}
	if h.config.Mirror == "" || h.config.ResolveAt == "source" {
		return source, nil
	}
	at, path, _ := strings.Cut(strings.TrimSuffix(h.config.Mirror, "/"), "/")
	mirror = &place{c.host(digest.CanonicalHost(at)), strings.TrimPrefix(path+"/"+source.repo, "/")}
	if h.config.ResolveAt == "compare" {
		return source, mirror
	}
	return nil, mirror
}

// Resolve implements digest.Resolver: it gives what a registry serves under a
// tag or a digest. Errors are of type *digest.Error, but for that of a cancelled
// ctx.
func (c *Client) Resolve(ctx context.Context, ref name.Reference) (digest.Image, error) {
	source, mirror := c.places(ref.Context())
	if source == nil {
		return mirror.resolve(ctx, ref)
	}
	image, err := source.resolve(ctx, ref)
	if err != nil || mirror == nil {
		return image, err
	}
	other, err := mirror.resolve(ctx, ref)
	switch {
	case ctx.Err() != nil:
		return digest.Image{}, ctx.Err()
	case err != nil:
		c.warn(fmt.Sprintf("%s: cannot be compared with the mirror %s: %v", ref, mirror.name, err))
	case other.Digest != image.Digest:
		c.warn(fmt.Sprintf("%s: the mirror %s has another digest: %s, and the registry itself %s", ref, mirror.name, other.Digest, image.Digest))
	}
	return image, nil
}

// Platforms implements digest.Resolver.
func (c *Client) Platforms(ctx context.Context, ref name.Digest) ([]string, error) {
	source, mirror := c.places(ref.Context())
	if source == nil {
		source = mirror
	}
	out, err := source.platforms(ctx, ref.DigestStr())
	return out, source.explain(ctx, ref, err)
}

// resolve asks one place.
func (p *place) resolve(ctx context.Context, ref name.Reference) (digest.Image, error) {
	image, err := p.manifest(ctx, ref.Identifier())
	return image, p.explain(ctx, ref, err)
}

// explain gives the error that a person sees.
func (p *place) explain(ctx context.Context, ref name.Reference, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	e := classify(p.name, err)
	if _, ok := ref.(name.Digest); ok && e.Class == digest.NotFound {
		e.Hint, e.Err = "pin what the registry has now: belay hydrate with digests.mode: update", errors.New("the digest is gone from the registry")
	}
	if p.name != ref.Context().RegistryStr() {
		e.Err = fmt.Errorf("%w (at %s, the mirror of %s)", e.Err, p.name, ref.Context().RegistryStr())
	}
	return e
}
