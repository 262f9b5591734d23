package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxPause bounds what a Retry-After header can ask for.
const maxPause = 30 * time.Second

// errLinkLocal is the error for addresses at which clouds serve credentials: a
// manifest in a pull request must not make CI ask there.
var errLinkLocal = errors.New("link-local addresses are refused")

// A retrier sends requests again that failed for reasons that pass. Its pauses
// end when the request is cancelled.
type retrier struct {
	base     http.RoundTripper
	tries    int
	backoff  time.Duration
	requests *atomic.Int64
	// untrusted holds, by host, the error of the last certificate that was not
	// trusted. On loopback the library falls back to plain HTTP then, and what
	// comes of that says nothing.
	untrusted sync.Map
}

func newRetrier(opt Options, requests *atomic.Int64) *retrier {
	r := &retrier{base: newTransport(opt.Timeout), tries: opt.Tries, backoff: opt.Backoff, requests: requests}
	if r.tries == 0 {
		r.tries = 3
	}
	if r.backoff == 0 {
		r.backoff = 500 * time.Millisecond
	}
	return r
}

// newTransport gives a transport with a time limit for each part of a request,
// that keeps connections open for all workers, and that takes proxies from the
// environment.
func newTransport(timeout time.Duration) http.RoundTripper {
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	dialer := &net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second, Control: refuseLinkLocal}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   timeout,
		ResponseHeaderTimeout: timeout,
	}
}

// refuseLinkLocal looks at the address after its name was resolved.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dialing %s: %w", address, err)
	}
	if a := ap.Addr().Unmap(); a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() {
		return fmt.Errorf("dialing %s: %w", address, errLinkLocal)
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		r.requests.Add(1)
		resp, err := r.base.RoundTrip(req)
		if isUntrusted(err) {
			r.untrusted.Store(req.URL.Host, err)
		}
		if try >= r.tries || !passes(resp, err) || req.Body != nil && req.GetBody == nil {
			return resp, err
		}
		pause := r.pause(try, resp)
		if resp != nil {
			// Read to the end, so that the connection can be used again.
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
			_ = resp.Body.Close()
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
	return false
}

// pause gives the time to wait: what the registry asks for, or twice as long as
// before, with a part by chance so that workers do not come back together.
func (r *retrier) pause(try int, resp *http.Response) time.Duration {
	if resp != nil {
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
			return min(time.Duration(s)*time.Second, maxPause)
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
