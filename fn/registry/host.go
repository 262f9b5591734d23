package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/belay-krm/belay/fn/digest"
)

// fatal is how many failures in a row make a registry count as dead: what is
// still to be asked there fails at once.
const fatal = 3

// A host is one registry.
type host struct {
	client *Client
	name   string
	config digest.Registry

	greeting sync.Mutex // held while the registry is greeted
	scheme   string     // "" before the greeting
	challenge

	mu       sync.Mutex
	repos    map[string]*repository
	failures int   // in a row
	dead     error // why nothing is asked any more; nil for a living registry
	warned   bool  // of its rate limit
}

// A repository keeps what the registry wants to see with each request.
type repository struct {
	mu    sync.Mutex
	token token
	// public is set where the credentials were refused.
	public bool
	own    *challenge // what a request was answered, where that differs from the greeting
}

// A challenge says how a registry wants to be asked.
// https://datatracker.ietf.org/doc/html/rfc7235#section-2.1
type challenge struct {
	method     string // "", basic or bearer
	parameters map[string]string
}

// repository gives what is kept for a repository.
func (h *host) repository(repo string) *repository {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.repos[repo] == nil {
		h.repos[repo] = &repository{}
	}
	return h.repos[repo]
}

// greet finds out, once, how the registry wants to be asked. Those who come
// meanwhile wait for the first.
// https://github.com/opencontainers/distribution-spec/blob/main/spec.md#determining-support
func (h *host) greet(ctx context.Context) error {
	h.greeting.Lock()
	defer h.greeting.Unlock()
	if h.scheme != "" {
		return nil
	}
	if err := h.alive(); err != nil {
		return err
	}
	scheme := "https"
	if h.config.PlainHTTP {
		scheme = "http"
	}
	says, err := h.ping(ctx, scheme)
	if err != nil && scheme == "https" && isLoopback(h.name) && !isTimeout(err) && !isUntrusted(err) {
		// As for Docker, the machine itself may do without TLS.
		// https://docs.docker.com/reference/cli/dockerd/#insecure-registries
		scheme = "http"
		says, err = h.ping(ctx, scheme)
	}
	if err != nil {
		return h.die(ctx, err)
	}
	h.challenge, h.scheme = says, scheme
	if scheme == "http" && !isLoopback(h.name) {
		h.client.warn(h.name + ": is reached over plain HTTP: who is on the way can change the digests")
	}
	return nil
}

func (h *host) ping(ctx context.Context, scheme string) (challenge, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+h.name+"/v2/", nil)
	if err != nil {
		return challenge{}, err
	}
	resp, err := h.send(req)
	if err != nil {
		return challenge{}, err
	}
	defer drain(resp)
	return challengeOf(resp), transport.CheckError(resp, http.StatusOK, http.StatusUnauthorized)
}

// send sends a request as it is.
func (h *host) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", "belay")
	return h.client.http.Do(req)
}

// drain reads a body to its end, so that the connection can be used again.
func drain(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
}

// challengeOf reads what an answer says of how to ask. The parser is that of
// the library, which gives it the answer itself.
func challengeOf(resp *http.Response) challenge {
	if resp.StatusCode != http.StatusUnauthorized {
		return challenge{}
	}
	header := http.Header{"Www-Authenticate": resp.Header.Values("WWW-Authenticate")}
	answer := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusUnauthorized, Header: header, Body: http.NoBody}, nil
	})
	reg, err := name.NewRegistry("registry.invalid")
	if err != nil {
		return challenge{}
	}
	c, err := transport.Ping(context.Background(), reg, answer)
	if err != nil {
		return challenge{}
	}
	return challenge{strings.ToLower(c.Scheme), c.Parameters}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// do sends a request about a repository, with what the registry wants to see.
// The caller closes the body of the answer, whose status may be any.
func (p *place) do(ctx context.Context, method, path string) (*http.Response, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	if err := p.greet(ctx); err != nil {
		return nil, err
	}
	repo := p.repository(p.repo)
	stale := ""
	for try := 0; ; try++ {
		resp, used, err := p.attempt(ctx, repo, method, path, stale)
		if err != nil {
			return nil, p.failed(ctx, err)
		}
		again := try == 0 && resp.StatusCode == http.StatusUnauthorized && p.relearn(repo, resp, used)
		if !again {
			p.note(resp)
			return resp, nil
		}
		drain(resp)
		stale = used
	}
}

// attempt sends a request once. It gives the token that it was sent with.
func (p *place) attempt(ctx context.Context, repo *repository, method, path, stale string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.scheme+"://"+p.name+"/v2/"+p.repo+path, nil)
	if err != nil {
		return nil, "", err
	}
	req.Header["Accept"] = accept()
	used, err := p.authorize(ctx, repo, req, stale)
	if err != nil {
		return nil, "", err
	}
	resp, err := p.send(req)
	return resp, used, err
}

// relearn tells whether a refused request may succeed at a second try: with a
// new token, or since only now the registry says what it wants.
func (p *place) relearn(repo *repository, resp *http.Response, used string) bool {
	got := challengeOf(resp)
	repo.mu.Lock()
	defer repo.mu.Unlock()
	if used == basicUsed && !repo.public {
		// The image may be public, and the credentials out of date.
		repo.public = true
		p.client.warn(p.name + ": refuses the credentials for " + p.repo + ", going on without them")
	}
	if used != "" {
		return true
	}
	if got.method == "" || got.method == p.method || repo.own != nil {
		return false
	}
	repo.own = &got
	return true
}

// authorize puts credentials into a request. It gives the token that it used,
// which is not the stale one.
func (p *place) authorize(ctx context.Context, repo *repository, req *http.Request, stale string) (string, error) {
	repo.mu.Lock()
	defer repo.mu.Unlock()
	want := p.challenge
	if repo.own != nil {
		want = *repo.own
	}
	switch want.method {
	case "bearer":
		if err := p.renew(ctx, repo, want, stale); err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bearer "+repo.token.value)
		return repo.token.value, nil
	case "basic":
		auth, err := p.credentials(ctx)
		if err != nil {
			return "", err
		}
		if !repo.public && (auth.Username != "" || auth.Password != "") {
			req.SetBasicAuth(auth.Username, auth.Password)
			return basicUsed, nil
		}
	}
	return "", nil
}

// basicUsed stands for a token where user and password were sent.
const basicUsed = "basic"

// credentials gives what the keychain has for the repository.
func (p *place) credentials(ctx context.Context) (authn.AuthConfig, error) {
	r, err := name.NewRepository(p.name+"/"+p.repo, name.WeakValidation)
	if err != nil {
		return authn.AuthConfig{}, err
	}
	return p.client.keys.get(ctx, r)
}

// alive gives the error that made the registry count as dead.
func (h *host) alive() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead
}

// die makes a registry count as dead at once, unless it was the run that ended.
func (h *host) die(ctx context.Context, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() == nil && h.dead == nil {
		h.dead = err
	}
	return err
}

// failed counts a request that had no answer.
func (h *host) failed(ctx context.Context, err error) error {
	var te *transport.Error
	if errors.As(err, &te) && !isOverload(te.StatusCode) || ctx.Err() != nil || isRefused(err) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failures++; h.failures >= fatal && h.dead == nil {
		h.dead = err
	}
	return err
}

// isRefused tells whether it was belay that would not go on.
func isRefused(err error) bool {
	var off *forbidden
	return errors.As(err, &off) || errors.Is(err, errLinkLocal) || errors.Is(err, errRedirects) || errors.Is(err, errLie)
}

// note looks at what an answer says besides what was asked for.
func (h *host) note(resp *http.Response) {
	if isOverload(resp.StatusCode) {
		_ = h.failed(context.Background(), &transport.Error{StatusCode: resp.StatusCode, Request: resp.Request})
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = 0
	// https://docs.docker.com/docker-hub/usage/pulls/#view-pull-rate-and-limit
	left, window := rate(resp.Header.Get("RateLimit-Remaining"))
	limit, _ := rate(resp.Header.Get("RateLimit-Limit"))
	if h.warned || limit <= 0 || left < 0 || left*10 > limit {
		return
	}
	h.warned = true
	h.client.warn(fmt.Sprintf("%s: only %d of %d pulls are left%s (log in, or use a mirror)", h.name, left, limit, window))
}

// isOverload tells whether a registry answers that it cannot work now.
func isOverload(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// rate reads a header such as 76;w=21600: a number, and the seconds that it is
// for. The number is -1 where there is none.
func rate(s string) (int, string) {
	number, rest, _ := strings.Cut(s, ";")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		return -1, ""
	}
	seconds, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(rest), "w="))
	if err != nil {
		return n, ""
	}
	return n, fmt.Sprintf(" in %d minutes", seconds/60)
}
