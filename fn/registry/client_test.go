package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/belay-krm/belay/fn/digest"
)

// TestRequests counts what registries are asked.
func TestRequests(t *testing.T) {
	for title, tt := range map[string]struct {
		repos, tags int // tags in each repository
		bearer      bool
		atMost      int
	}{
		"50 tags in one repository":               {1, 50, false, 51},
		"50 tags in one repository, with a token": {1, 50, true, 52},
		"50 repositories, with tokens":            {50, 1, true, 101},
	} {
		t.Run(title, func(t *testing.T) {
			f := newFake(t)
			var tags []name.Tag
			want := map[string]v1.Hash{}
			for i := range tt.repos {
				for j := range tt.tags {
					tag, hash := f.push(t, fmt.Sprintf("team/app%d:v%d", i, j))
					tags, want[tag.Name()] = append(tags, tag), hash
				}
			}
			if tt.bearer {
				f.answer = f.bearer("", false, 0)
			}
			c := mustNew(t, quick())
			resolveAll(t, c, tags)
			if n := f.count(""); n > tt.atMost || f.count("HEAD") != len(tags) {
				t.Errorf("%d requests, %d of them HEAD; want at most %d", n, f.count("HEAD"), tt.atMost)
			}
			for _, m := range f.log {
				if strings.HasPrefix(m, "GET") && strings.Contains(m, "/manifests/") {
					t.Errorf("a pull: %s", m)
				}
			}
			for _, tag := range tags {
				if got, err := c.Resolve(t.Context(), tag); err != nil || got.Digest != want[tag.Name()] || !got.MediaType.IsImage() {
					t.Errorf("%s: %+v, %v; want %v", tag, got, err, want[tag.Name()])
				}
			}
		})
	}
}

// TestFallback wants a GET where HEAD is not supported, and nowhere else.
func TestFallback(t *testing.T) {
	tests := map[string]struct {
		status int // of the answer to HEAD; 0 to leave out the digest
		gets   int
		class  digest.Class
	}{
		"HEAD refused":    {status: http.StatusMethodNotAllowed, gets: 1},
		"HEAD unknown":    {status: http.StatusNotImplemented, gets: 1},
		"bad request":     {status: http.StatusBadRequest, gets: 1},
		"no digest":       {status: 0, gets: 1},
		"no such tag":     {status: http.StatusNotFound, class: digest.NotFound},
		"no credentials":  {status: http.StatusUnauthorized, class: digest.Auth},
		"forbidden":       {status: http.StatusForbidden, class: digest.Auth},
		"asked too often": {status: http.StatusTooManyRequests, class: digest.RateLimit},
		"broken":          {status: http.StatusInternalServerError, class: digest.Network},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			f := newFake(t)
			tag, want := f.push(t, "a/b:1")
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodHead {
					return false
				}
				if tt.status != 0 {
					w.WriteHeader(tt.status)
				} else {
					w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				}
				return true
			}
			got, err := mustNew(t, quick()).Resolve(t.Context(), tag)
			if n := f.count("GET /v2/a/b/manifests"); n != tt.gets {
				t.Errorf("%d GET, want %d", n, tt.gets)
			}
			if tt.class == "" {
				if err != nil || got.Digest != want {
					t.Errorf("got %v, %v; want %v", got, err, want)
				}
				return
			}
			var e *digest.Error
			if !errors.As(err, &e) || e.Class != tt.class || e.Hint == "" {
				t.Errorf("error is %v, want class %s and a hint", err, tt.class)
			}
			if strings.Contains(err.Error(), "HEAD responses") || strings.Contains(err.Error(), "\n") {
				t.Errorf("not for people: %v", err)
			}
		})
	}
}

// TestRetry wants failures that pass to be tried again, as the registry asks.
func TestRetry(t *testing.T) {
	for _, status := range []int{408, 429, 500, 502, 503, 504, 520, 522, 524} {
		f := newFake(t)
		tag, want := f.push(t, "a/b:1")
		failures := 0
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodHead || failures == 2 {
				return false
			}
			failures++
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
			return true
		}
		got, err := mustNew(t, quick()).Resolve(t.Context(), tag)
		if err != nil || got.Digest != want || f.count("HEAD") != 3 {
			t.Errorf("%d: %v, %v after %d tries", status, got, err, f.count("HEAD"))
		}
	}
}

// TestPause wants what Retry-After says, in seconds or as a date, within bounds,
// and without it pauses that grow.
func TestPause(t *testing.T) {
	r := newRetrier(Options{Backoff: time.Second}, nil, nil)
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for title, tt := range map[string]struct {
		try      int
		after    string // "" for an answer that does not say
		from, to time.Duration
	}{
		"seconds":         {1, "7", 7 * time.Second, 7 * time.Second},
		"too many":        {1, "3600", maxPause, maxPause},
		"date":            {1, date(10 * time.Second), 5 * time.Second, 10 * time.Second},
		"date gone by":    {1, date(-time.Hour), 0, 0},
		"far date":        {1, date(time.Hour), maxPause, maxPause},
		"nonsense":        {1, "soon", time.Second / 2, 3 * time.Second / 2},
		"first, no word":  {1, "", time.Second / 2, 3 * time.Second / 2},
		"second, no word": {2, "", time.Second, 3 * time.Second},
	} {
		resp := &http.Response{Header: http.Header{"Retry-After": {tt.after}}}
		if got := r.pause(tt.try, resp); got < tt.from || got > tt.to {
			t.Errorf("%s: %v, want %v to %v", title, got, tt.from, tt.to)
		}
	}
}

// TestCancel wants an interrupt to end a pause at once.
func TestCancel(t *testing.T) {
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	ctx, cancel := context.WithCancel(t.Context())
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			time.AfterFunc(20*time.Millisecond, cancel)
			return true
		}
		return false
	}
	start := time.Now()
	_, err := mustNew(t, quick()).Resolve(ctx, tag)
	if !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
		t.Errorf("ended with %v after %v", err, time.Since(start))
	}
}

// TestTimeout wants a registry that never answers to be given up.
func TestTimeout(t *testing.T) {
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	opt := quick()
	opt.Timeout = 50 * time.Millisecond
	_, err := mustNew(t, opt).Resolve(t.Context(), tag)
	var e *digest.Error
	if !errors.As(err, &e) || e.Class != digest.Network || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error is %v", err)
	}
}

// TestUnreachable wants errors of the network to say what is wrong.
func TestUnreachable(t *testing.T) {
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	f.server.Close()
	_, err := mustNew(t, quick()).Resolve(t.Context(), tag)
	var e *digest.Error
	if !errors.As(err, &e) || e.Class != digest.Network || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error is %v", err)
	}
	linkLocal, err := name.NewTag("169.254.169.254/latest/meta-data:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustNew(t, quick()).Resolve(t.Context(), linkLocal); err == nil || !strings.Contains(err.Error(), "link-local addresses are refused") {
		t.Errorf("asking the metadata service gave %v", err)
	}
}
