package registry

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// maxPause bounds what a Retry-After header can ask for.
const maxPause = 30 * time.Second

// A retrier sends requests again that failed for reasons that pass. Each try has
// a time limit, that for reading the answer included. Pauses end when the
// request is cancelled.
type retrier struct {
	base     http.RoundTripper
	tries    int
	backoff  time.Duration
	timeout  time.Duration
	requests *atomic.Int64
}

func newRetrier(opt Options, base http.RoundTripper, requests *atomic.Int64) *retrier {
	return &retrier{base: base, tries: cmp.Or(opt.Tries, 3), backoff: cmp.Or(opt.Backoff, time.Second/2), timeout: cmp.Or(opt.Timeout, time.Duration(opt.Network.Timeout)*time.Second, 10*time.Second), requests: requests}
}

// RoundTrip implements http.RoundTripper.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := r.once(req)
		if try >= r.tries || !passes(resp, err) || req.Body != nil && req.GetBody == nil {
			return resp, err
		}
		pause := r.pause(try, resp)
		if resp != nil {
			drain(resp)
		}
		if err := sleep(req.Context(), pause); err != nil {
			return nil, err
		}
		if req.Body != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// A router sends requests over the transport of their host, so that certificates
// of one registry are not shown to the token service of another, nor trusted there.
// "" is that of all others.
type router map[string]http.RoundTripper

// RoundTrip implements http.RoundTripper.
func (r router) RoundTrip(req *http.Request) (*http.Response, error) {
	if base, ok := r[req.URL.Host]; ok {
		return base.RoundTrip(req)
	}
	return r[""].RoundTrip(req)
}

// once sends a request, whose time ends at the latest when the body is closed.
func (r *retrier) once(req *http.Request) (*http.Response, error) {
	r.requests.Add(1)
	ctx, cancel := context.WithTimeout(req.Context(), r.timeout)
	resp, err := r.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &timedBody{resp.Body, cancel}
	return resp, nil
}

// A timedBody ends the time limit of a request when it is closed.
type timedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *timedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// passes tells whether a failure may be gone at the next try.
func passes(resp *http.Response, err error) bool {
	if err != nil {
		return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return resp.StatusCode >= 520 && resp.StatusCode <= 524 // Cloudflare, in front of many
}

// pause gives the time to wait: what the registry asks for, or twice as long as
// before, with a part by chance so that workers do not come back together.
// https://datatracker.ietf.org/doc/html/rfc9110#name-retry-after
func (r *retrier) pause(try int, resp *http.Response) time.Duration {
	if resp != nil {
		after := resp.Header.Get("Retry-After")
		if s, err := strconv.Atoi(after); err == nil && s >= 0 {
			return min(time.Duration(s)*time.Second, maxPause)
		}
		if at, err := http.ParseTime(after); err == nil {
			return min(max(time.Until(at), 0), maxPause)
		}
	}
	d := r.backoff << (try - 1)
	return d/2 + rand.N(d)
}

// sleep waits, or gives the error of a context that ended before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
