package registry

import (
	"context"
	"encoding/base64"
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
	server  *httptest.Server
	backend http.Handler
	host    string
	mu      sync.Mutex
	log     []string // "HEAD /v2/a/manifests/1"
	// answer handles a request in place of the registry; it says whether it did.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func newFake(t testing.TB) *fake {
	t.Helper()
	f := unstarted()
	f.server.Start()
	f.host = strings.TrimPrefix(f.server.URL, "http://")
	t.Cleanup(f.server.Close)
	return f
}

func unstarted() *fake {
	f := &fake{backend: ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.log = append(f.log, r.Method+" "+r.URL.Path)
		answer := f.answer
		f.mu.Unlock()
		if answer != nil && answer(w, r) {
			return
		}
		f.backend.ServeHTTP(w, r)
	}))
	f.server.Config.ErrorLog = log.New(io.Discard, "", 0)
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
	f.quietly(func() {
		if err := remote.Write(tag, img, remote.WithTransport(f.server.Client().Transport)); err != nil {
			t.Fatal(err)
		}
	})
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return tag, hash
}

// quietly does something with the registry as it would answer by itself, and
// forgets the requests.
func (f *fake) quietly(do func()) {
	answer := f.answer
	f.answer = nil
	do()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = nil
	f.answer = answer
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

// bearer makes the registry want a token of the token service at realm, which
// is the registry itself where realm is "". Each token opens what the scope
// says, or with wide everything, and counts as expired after uses requests,
// where that is not 0.
func (f *fake) bearer(realm string, wide bool, uses int) func(w http.ResponseWriter, r *http.Request) bool {
	if realm == "" {
		realm = "http://" + f.host + "/token"
	}
	var mu sync.Mutex
	left := map[string]int{}
	issued := 0
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		scope := "repository:" + repoOf(r.URL.Path) + ":pull"
		if r.URL.Path == "/token" {
			issued++
			value := fmt.Sprintf("%d %s", issued, r.URL.Query().Get("scope"))
			left[value] = uses
			_, _ = fmt.Fprintf(w, `{"access_token": %q, "expires_in": 300}`, value)
			return true
		}
		value := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		n, known := left[value]
		if known && (wide || strings.HasSuffix(value, " "+scope)) && (uses == 0 || n > 0) && r.URL.Path != "/v2/" {
			left[value] = n - 1
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="test"`, realm))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

func repoOf(path string) string {
	repo, _, _ := strings.Cut(strings.TrimPrefix(path, "/v2/"), "/manifests/")
	return repo
}

// basic makes the registry want a user and a password.
func basic(user, password string) func(w http.ResponseWriter, r *http.Request) bool {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == want {
			return false
		}
		w.Header().Add("WWW-Authenticate", "Negotiate")
		w.Header().Add("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

func quick() Options {
	return Options{Keychain: authn.NewMultiKeychain(), Timeout: 2 * time.Second, Backoff: time.Millisecond}
}

func mustNew(t testing.TB, opt Options) *Client {
	t.Helper()
	c, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// with gives options for a network.
func with(n digest.NetworkConfig) Options {
	opt := quick()
	opt.Network = n
	return opt
}

// resolveAll asks for all tags at once.
func resolveAll(t testing.TB, c *Client, tags []name.Tag) {
	t.Helper()
	var wg sync.WaitGroup
	for _, tag := range tags {
		wg.Go(func() {
			if _, err := c.Resolve(context.Background(), tag); err != nil {
				t.Errorf("%s: %v", tag, err)
			}
		})
	}
	wg.Wait()
}
