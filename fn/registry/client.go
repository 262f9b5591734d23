// Package registry asks container registries for digests. It is the only code
// of belay that opens a connection.
//
// A tag costs one HEAD request, which registries do not count as a pull; the
// handshake with a repository is made once for all of its tags. A GET is made
// only where a registry does not answer HEAD, and then its body is hashed.
// Credentials come from the configuration of Docker or Podman.
package registry

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Options say how a Client works.
type Options struct {
	// Keychain gives the credentials; nil for those of Docker and Podman.
	Keychain authn.Keychain
	// Timeout is what one request may take; 0 for 10 seconds.
	Timeout time.Duration
	// Tries is how often a request is made that fails for reasons that pass;
	// 0 for 3.
	Tries int
	// Backoff is the first pause between two tries, which doubles each time; 0
	// for half a second.
	Backoff time.Duration
}

// A Client resolves tags. It may be used by several goroutines.
type Client struct {
	puller    *remote.Puller
	transport *retrier
	requests  atomic.Int64
	broken    error // why there is no puller

	mu       sync.Mutex
	warnings []string
}

// New gives a client. It opens no connection.
func New(opt Options) *Client {
	c := &Client{}
	keys := opt.Keychain
	if keys == nil {
		keys = authn.DefaultKeychain
	}
	c.transport = newRetrier(opt, &c.requests)
	// The transport retries by itself, so that an interrupt ends the pauses.
	c.puller, c.broken = remote.NewPuller(
		remote.WithTransport(c.transport),
		remote.WithAuthFromKeychain(&lenientKeychain{keys: keys, warn: c.warn}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes(),
		remote.WithUserAgent("belay"),
	)
	return c
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

// Resolve gives the digest of what the registry serves under a tag; an index
// stays an index. Errors are of type *digest.Error, but for that of a cancelled
// ctx.
func (c *Client) Resolve(ctx context.Context, tag name.Tag) (v1.Hash, error) {
	if c.broken != nil {
		return v1.Hash{}, c.broken
	}
	desc, err := c.puller.Head(ctx, tag)
	if err == nil {
		return desc.Digest, nil
	}
	if ctx.Err() == nil && headUnsupported(err) {
		full, getErr := c.puller.Get(ctx, tag)
		if getErr == nil {
			return full.Digest, nil
		}
		err = getErr
	}
	if ctx.Err() != nil {
		return v1.Hash{}, ctx.Err()
	}
	if untrusted, ok := c.transport.untrusted.Load(tag.RegistryStr()); ok {
		err, _ = untrusted.(error)
	}
	return v1.Hash{}, classify(tag, err)
}

// headUnsupported tells whether a registry that failed a HEAD request may still
// answer a GET: it does not know HEAD, or forgets the headers of the answer. A
// GET counts as a pull, so that it is made for no other reason.
func headUnsupported(err error) bool {
	var te *transport.Error
	if !errors.As(err, &te) {
		return isMissingHeader(err)
	}
	switch te.StatusCode {
	case http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotImplemented:
		return true
	}
	return false
}

// A lenientKeychain turns credentials that cannot be had into a warning: the
// image may be public.
type lenientKeychain struct {
	keys authn.Keychain
	warn func(string)
}

// Resolve implements authn.Keychain.
func (k *lenientKeychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return k.ResolveContext(context.Background(), r)
}

// ResolveContext implements authn.ContextKeychain.
func (k *lenientKeychain) ResolveContext(ctx context.Context, r authn.Resource) (authn.Authenticator, error) {
	auth, err := authn.Resolve(ctx, k.keys, r)
	if err == nil {
		// A helper is asked only now.
		if _, err = authn.Authorization(ctx, auth); err == nil {
			return auth, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	k.warn(r.RegistryStr() + ": going on without credentials, since they cannot be had: " + firstLine(err.Error()))
	return authn.Anonymous, nil
}
