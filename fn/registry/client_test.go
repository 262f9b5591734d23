package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/belay-krm/belay/fn/digest"
)

// A fake is a registry whose answers a test can change, and that keeps what it
// was asked.
type fake struct {
	server *httptest.Server
	host   string
	mu     sync.Mutex
	log    []string // "HEAD /v2/a/manifests/1"
	// answer handles a request in place of the registry; it says whether it did.
	answer func(w http.ResponseWriter, r *http.Request, nth int) bool
}

func newFake(t testing.TB) *fake {
	t.Helper()
	f := &fake{}
	backend := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.log = append(f.log, r.Method+" "+r.URL.Path)
		nth := len(f.log)
		answer := f.answer
		f.mu.Unlock()
		if answer != nil && answer(w, r, nth) {
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(f.server.Close)
	f.host = strings.TrimPrefix(f.server.URL, "http://")
	return f
}

// push makes a tag, and forgets the requests that it took.
func (f *fake) push(t testing.TB, ref string) (name.Tag, v1.Hash) {
	t.Helper()
	tag, err := name.NewTag(f.host + "/" + ref)
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	answer := f.answer
	f.answer = nil
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	f.answer = answer
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.log = nil
	f.mu.Unlock()
	return tag, hash
}

// count gives the number of requests that begin so.
func (f *fake) count(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, l := range f.log {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

func quick() Options {
	return Options{Keychain: authn.NewMultiKeychain(), Timeout: 2 * time.Second, Backoff: time.Millisecond}
}

// TestResolve wants the digest, one HEAD for each tag, and no GET.
func TestResolve(t *testing.T) {
	f := newFake(t)
	c := New(quick())
	var wg sync.WaitGroup
	for i := range 50 {
		tag, want := f.push(t, fmt.Sprintf("team/app:v%d", i))
		wg.Go(func() {
			got, err := c.Resolve(context.Background(), tag)
			if err != nil || got != want {
				t.Errorf("%s: got %v, %v; want %v", tag, got, err, want)
			}
		})
		wg.Wait() // push forgets the requests: one after the other
	}
	// Now all at once.
	f.mu.Lock()
	f.log = nil
	f.mu.Unlock()
	c = New(quick())
	for i := range 50 {
		wg.Go(func() {
			tag, err := name.NewTag(fmt.Sprintf("%s/team/app:v%d", f.host, i))
			if err != nil {
				t.Error(err)
			}
			if _, err := c.Resolve(context.Background(), tag); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if heads, gets := f.count("HEAD"), f.count("GET /v2/team"); heads != 50 || gets != 0 || f.count("") > 52 {
		t.Errorf("%d HEAD, %d GET, %d in all", heads, gets, f.count(""))
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
			f.answer = func(w http.ResponseWriter, r *http.Request, _ int) bool {
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
			got, err := New(quick()).Resolve(t.Context(), tag)
			if n := f.count("GET /v2/a/b/manifests"); n != tt.gets {
				t.Errorf("%d GET, want %d", n, tt.gets)
			}
			if tt.class == "" {
				if err != nil || got != want {
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
	for _, status := range []int{408, 429, 500, 502, 503, 504} {
		f := newFake(t)
		tag, want := f.push(t, "a/b:1")
		failures := 0
		f.answer = func(w http.ResponseWriter, r *http.Request, _ int) bool {
			if r.Method != http.MethodHead || failures == 2 {
				return false
			}
			failures++
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
			return true
		}
		got, err := New(quick()).Resolve(t.Context(), tag)
		if err != nil || got != want || f.count("HEAD") != 3 {
			t.Errorf("%d: %v, %v after %d tries", status, got, err, f.count("HEAD"))
		}
	}
}

// TestCancel wants an interrupt to end a pause at once.
func TestCancel(t *testing.T) {
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	ctx, cancel := context.WithCancel(t.Context())
	f.answer = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method == http.MethodHead {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			time.AfterFunc(20*time.Millisecond, cancel)
			return true
		}
		return false
	}
	start := time.Now()
	_, err := New(quick()).Resolve(ctx, tag)
	if !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
		t.Errorf("ended with %v after %v", err, time.Since(start))
	}
}

// TestTimeout wants a registry that never answers to be given up.
func TestTimeout(t *testing.T) {
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	f.answer = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		<-r.Context().Done()
		return true
	}
	opt := quick()
	opt.Timeout = 50 * time.Millisecond
	_, err := New(opt).Resolve(t.Context(), tag)
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
	_, err := New(quick()).Resolve(t.Context(), tag)
	var e *digest.Error
	if !errors.As(err, &e) || e.Class != digest.Network || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error is %v", err)
	}
	linkLocal, err := name.NewTag("169.254.169.254/latest/meta-data:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(quick()).Resolve(t.Context(), linkLocal); err == nil || !strings.Contains(err.Error(), "link-local addresses are refused") {
		t.Errorf("asking the metadata service gave %v", err)
	}
}

// TestBearer wants one token for each repository.
func TestBearer(t *testing.T) {
	f := newFake(t)
	var tags []name.Tag
	for i := range 5 {
		for _, v := range []string{"1", "2"} {
			tag, _ := f.push(t, fmt.Sprintf("team/app%d:%s", i, v))
			tags = append(tags, tag)
		}
	}
	f.answer = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.URL.Path == "/token" {
			_, _ = fmt.Fprintf(w, `{"token": %q}`, r.URL.Query().Get("scope"))
			return true
		}
		repo, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
		if r.URL.Path != "/v2/" && r.Header.Get("Authorization") == "Bearer repository:"+repo+":pull" {
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, f.host))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	c := New(quick())
	var wg sync.WaitGroup
	for _, tag := range tags {
		wg.Go(func() {
			if _, err := c.Resolve(context.Background(), tag); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if heads, tokens := f.count("HEAD"), f.count("GET /token"); heads != 10 || tokens != 5 {
		t.Errorf("%d HEAD and %d tokens for 10 tags in 5 repositories", heads, tokens)
	}
	if c.Requests() < f.count("") {
		t.Errorf("counted %d of %d requests", c.Requests(), f.count(""))
	}
}

// A brokenKeychain is that of a helper that is not there.
type brokenKeychain struct{}

func (brokenKeychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return nil, errors.New("exec: docker-credential-none: not found")
}

// TestBrokenKeychain wants public images to be had without credentials.
func TestBrokenKeychain(t *testing.T) {
	f := newFake(t)
	tag, want := f.push(t, "a/b:1")
	opt := quick()
	opt.Keychain = brokenKeychain{}
	c := New(opt)
	got, err := c.Resolve(t.Context(), tag)
	if err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "going on without credentials") {
		t.Errorf("warnings are %q", w)
	}
}

// BenchmarkResolve resolves 100 tags in 10 repositories, 16 at a time, with 5 ms
// for each request.
func BenchmarkResolve(b *testing.B) {
	f := newFake(b)
	var tags []name.Tag
	for i := range 100 {
		tag, _ := f.push(b, fmt.Sprintf("team/app%d:%d", i%10, i))
		tags = append(tags, tag)
	}
	f.answer = func(http.ResponseWriter, *http.Request, int) bool {
		time.Sleep(5 * time.Millisecond)
		return false
	}
	for b.Loop() {
		c := New(quick())
		slots := make(chan bool, 16)
		var wg sync.WaitGroup
		for _, tag := range tags {
			slots <- true
			wg.Go(func() {
				if _, err := c.Resolve(context.Background(), tag); err != nil {
					b.Error(err)
				}
				<-slots
			})
		}
		wg.Wait()
		b.ReportMetric(float64(c.Requests()), "requests")
	}
}
