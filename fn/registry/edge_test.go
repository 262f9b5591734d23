package registry

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/belay-krm/belay/fn/digest"
)

// wantClass wants an error of a class that says something.
func wantClass(t *testing.T, err error, class digest.Class, text string) {
	t.Helper()
	var e *digest.Error
	if !errors.As(err, &e) || e.Class != class || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is %v, want class %s and %q", err, class, text)
	}
}

// TestDeadHost wants a registry that never answers to cost one time-out for all
// its images: on this machine after a greeting with TLS.
func TestDeadHost(t *testing.T) {
	f := newFake(t)
	tags := pushMany(t, f, 20, 1)
	f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	opt := quick()
	opt.Timeout = 100 * time.Millisecond
	c := mustNew(t, opt)
	for _, tag := range tags {
		_, err := c.Resolve(t.Context(), tag)
		wantClass(t, err, digest.Network, "does not answer")
	}
	if n := c.Requests(); n > 2 {
		t.Errorf("%d requests", n)
	}
}

// TestBreaker wants a registry that stops to work to be given up after a few
// failures, and one that fails now and then not.
func TestBreaker(t *testing.T) {
	f := newFake(t)
	tags := pushMany(t, f, 1, 30)
	var n atomic.Int64
	every := int64(1)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead || n.Add(1)%every != 0 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	opt := quick()
	opt.Tries = 1
	c := mustNew(t, opt)
	for _, tag := range tags {
		_, err := c.Resolve(t.Context(), tag)
		wantClass(t, err, digest.Network, "503")
	}
	if n := f.count("HEAD"); n != fatal {
		t.Errorf("%d requests to a registry that is down", n)
	}
	every = 3
	opt.Tries = 3
	c = mustNew(t, opt)
	for _, tag := range tags {
		resolveAll(t, c, []name.Tag{tag})
	}
}

// TestRateLimitHeaders wants a warning before the last pull is used.
func TestRateLimitHeaders(t *testing.T) {
	for remaining, want := range map[string]string{
		"76;w=21600": "",
		"9;w=21600":  "only 9 of 100 pulls are left in 360 minutes",
		"0":          "only 0 of 100 pulls are left (",
		"many":       "",
	} {
		f := newFake(t)
		tag, _ := f.push(t, "a/b:1")
		f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("RateLimit-Limit", "100;w=21600")
			w.Header().Set("RateLimit-Remaining", remaining)
			return false
		}
		c := mustNew(t, quick())
		if _, err := c.Resolve(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Warnings(), "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: warnings are %q, want %q", remaining, got, want)
		}
	}
}

// TestBadAnswers wants no digest from a registry that contradicts itself, and an
// end to what has none.
func TestBadAnswers(t *testing.T) {
	for title, tt := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		class  digest.Class
		want   string
	}{
		"lying header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
			_, _ = fmt.Fprint(w, "{}")
		}, digest.Malformed, "its header says sha256:000"},
		"a body that never ends": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}, digest.Malformed, "more than 4 MiB"},
		"a body that trickles": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				http.NewResponseController(w).Flush() //nolint:errcheck // the client is gone
				time.Sleep(10 * time.Millisecond)
			}
		}, digest.Network, "does not answer"},
		"a redirect loop": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, digest.Network, "too many redirects"},
		"a redirect to the metadata service": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
		}, digest.Forbidden, "link-local addresses are refused"},
	} {
		t.Run(title, func(t *testing.T) {
			f := newFake(t)
			tag, _ := f.push(t, "a/b:1")
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == "/v2/":
					return false
				case r.Method == http.MethodHead:
					w.WriteHeader(http.StatusMethodNotAllowed)
				default:
					tt.answer(w, r)
				}
				return true
			}
			opt := quick()
			opt.Timeout = time.Second
			_, err := mustNew(t, opt).Resolve(t.Context(), tag)
			wantClass(t, err, tt.class, tt.want)
		})
	}
}

// TestNoRegistry wants no digest of what a login page or a proxy answers, with
// and without a header that looks right, and a 404 to the greeting to be told from a
// tag that is missing.
func TestNoRegistry(t *testing.T) {
	for title, header := range map[string]string{"page": "", "page with a digest": "sha256:" + strings.Repeat("a", 64)} {
		f := newFake(t)
		tag, _ := f.push(t, "a/b:1")
		f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			if header != "" {
				w.Header().Set("Docker-Content-Digest", header)
			}
			_, _ = fmt.Fprint(w, "<html>log in</html>")
			return true
		}
		got, err := mustNew(t, quick()).Resolve(t.Context(), tag)
		var e *digest.Error
		if !errors.As(err, &e) || e.Class != digest.Malformed {
			t.Errorf("%s: got %v, %v", title, got, err)
		}
	}
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	_, err := mustNew(t, quick()).Resolve(t.Context(), tag)
	wantClass(t, err, digest.Network, "answers 404")
}

// TestPolicyIsNoFailure wants what belay itself refuses not to count against a
// registry.
func TestPolicyIsNoFailure(t *testing.T) {
	f := newFake(t)
	tags := pushMany(t, f, 1, 10)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && r.URL.Path != "/v2/" {
			http.Redirect(w, r, "http://localhost:1/blob", http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	c := mustNew(t, with(digest.NetworkConfig{Allow: []string{f.host}}))
	for _, tag := range tags {
		_, err := c.Platforms(t.Context(), tag.Digest("sha256:"+strings.Repeat("a", 64)))
		wantClass(t, err, digest.Forbidden, "localhost:1 may not be contacted")
	}
	resolveAll(t, c, tags)
}

// TestNameService wants an outage of the name service not to be mistaken for a
// typing error.
func TestNameService(t *testing.T) {
	wantClass(t, classify("a.example.com", &net.DNSError{Err: "no such host", Name: "a.example.com", IsNotFound: true}), digest.Network, "check the name")
	for _, err := range []error{&net.DNSError{Err: "server misbehaving", Name: "a.example.com", IsTemporary: true}, &net.DNSError{Err: "i/o timeout", Name: "a.example.com", IsTimeout: true}} {
		got := classify("a.example.com", err)
		wantClass(t, got, digest.Network, "check the connection")
	}
}

// TestArtifact wants what has no platform, as a chart of Helm, to have none.
func TestArtifact(t *testing.T) {
	f := newFake(t)
	tag, hash := f.push(t, "a/chart:1")
	got, err := mustNew(t, quick()).Platforms(t.Context(), tag.Digest(hash.String()))
	if err != nil || len(got) != 0 {
		t.Errorf("platforms %q, %v", got, err)
	}
}

// TestDigest wants a digest asked for by itself to be found, missed, or not
// believed.
func TestDigest(t *testing.T) {
	f := newFake(t)
	tag, hash := f.push(t, "a/b:1")
	got, err := mustNew(t, quick()).Resolve(t.Context(), tag.Digest(hash.String()))
	if err != nil || got.Digest != hash {
		t.Errorf("got %v, %v", got, err)
	}
	none := "sha256:" + strings.Repeat("0", 64)
	_, err = mustNew(t, quick()).Resolve(t.Context(), tag.Digest(none))
	wantClass(t, err, digest.NotFound, "the digest is gone")
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.Header().Set("Docker-Content-Digest", hash.String())
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		}
		return r.Method == http.MethodHead
	}
	_, err = mustNew(t, quick()).Resolve(t.Context(), tag.Digest(none))
	wantClass(t, err, digest.Malformed, "asked for sha256:000")
}

// TestPlatforms wants what an index can run on, without attestations, and what
// the configuration of a single image says.
func TestPlatforms(t *testing.T) {
	f := newFake(t)
	var adds []mutate.IndexAddendum
	for _, p := range []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64", Variant: "v8"}, {OS: "unknown", Architecture: "unknown"}} {
		img, err := random.Image(8, 1)
		if err != nil {
			t.Fatal(err)
		}
		adds = append(adds, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &p}})
	}
	index := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, adds...), types.OCIImageIndex)
	tag, err := name.NewTag(f.host + "/a/index:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	c := mustNew(t, quick())
	image, err := c.Resolve(t.Context(), tag)
	if want, errWant := index.Digest(); err != nil || errWant != nil || image.Digest != want || !image.MediaType.IsIndex() {
		t.Errorf("an index does not stay one: %+v, %v", image, err)
	}
	got, err := c.Platforms(t.Context(), tag.Digest(image.Digest.String()))
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64/v8"}, got); diff != "" || err != nil {
		t.Errorf("%v, platforms (-want +got)\n%s", err, diff)
	}

	single, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "s390x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, single); err != nil {
		t.Fatal(err)
	}
	hash, err := single.Digest()
	if err != nil {
		t.Fatal(err)
	}
	got, err = c.Platforms(t.Context(), tag.Digest(hash.String()))
	if diff := cmp.Diff([]string{"linux/s390x"}, got); diff != "" || err != nil {
		t.Errorf("%v, platforms of a single image (-want +got)\n%s", err, diff)
	}
}

// TestRedirectCredentials wants credentials to stay with their own registry.
func TestRedirectCredentials(t *testing.T) {
	f, other := newFake(t), newFake(t)
	tag, _ := f.push(t, "a/b:1")
	_, want := other.push(t, "a/b:1")
	var leaked string
	other.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		leaked += r.Header.Get("Authorization")
		return false
	}
	// Another host by name: credentials are kept for other ports of one.
	_, port, _ := strings.Cut(other.host, ":")
	signed := basic("me", "secret")
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if signed(w, r) {
			return true
		}
		if r.Method == http.MethodHead {
			http.Redirect(w, r, "http://localhost:"+port+r.URL.Path, http.StatusTemporaryRedirect)
		}
		return r.Method == http.MethodHead
	}
	opt := quick()
	opt.Keychain = fixedKeys{me}
	got, err := mustNew(t, opt).Resolve(t.Context(), tag)
	if err != nil || got.Digest != want || leaked != "" {
		t.Errorf("got %v, %v; credentials elsewhere: %q", got, err, leaked)
	}
}

// TestRedirect wants redirects refused that lead where a registry should not
// lead.
func TestRedirect(t *testing.T) {
	g := newGuard(nil)
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"https://registry.example.com/v2/", "https://cdn.example.net/x", true},
		{"https://registry.example.com/v2/", "http://cdn.example.net/x", false},
		{"http://registry.example.com/v2/", "http://cdn.example.net/x", true},
		{"https://registry.example.com/v2/", "https://10.0.0.1/x", false},
		{"https://registry.example.com/v2/", "https://localhost/x", false},
		{"https://10.0.0.2/v2/", "https://10.0.0.1/x", true},
	} {
		request := func(s string) *http.Request {
			u, err := url.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			return &http.Request{Method: http.MethodGet, URL: u}
		}
		if err := g.redirect(request(tt.to), []*http.Request{request(tt.from)}); (err == nil) != tt.ok {
			t.Errorf("%s to %s: %v", tt.from, tt.to, err)
		}
	}
}

// TestAllow wants only the named hosts to be contacted.
func TestAllow(t *testing.T) {
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	for _, tt := range []struct {
		allow []string
		ok    bool
	}{{nil, true}, {[]string{f.host}, true}, {[]string{"127.0.0.1:*"}, true}, {[]string{"docker.io"}, false}, {[]string{"127.0.0.1"}, false}} {
		c := mustNew(t, with(digest.NetworkConfig{Allow: tt.allow}))
		_, err := c.Resolve(t.Context(), tag)
		if tt.ok && err != nil {
			t.Errorf("%q: %v", tt.allow, err)
		}
		if !tt.ok {
			wantClass(t, err, digest.Forbidden, "digests.network.allow")
		}
	}
	// A token service must be allowed too.
	realm := newFake(t)
	f.answer = f.bearer("http://"+realm.host+"/token", false, 0)
	_, err := mustNew(t, with(digest.NetworkConfig{Allow: []string{f.host}})).Resolve(t.Context(), tag)
	wantClass(t, err, digest.Forbidden, realm.host+" may not be contacted")
	if n := realm.count(""); n != 0 {
		t.Errorf("it was contacted %d times", n)
	}
	hub := newGuard([]string{"docker.io"})
	for _, host := range []string{"index.docker.io", "auth.docker.io", "registry-1.docker.io"} {
		if !hub.allows(host) {
			t.Errorf("docker.io does not allow %s", host)
		}
	}
}

// TestLinkLocal wants the addresses refused at which clouds serve credentials,
// also behind a name, unless they are named.
func TestLinkLocal(t *testing.T) {
	for _, address := range []string{"169.254.169.254:80", "[fe80::1%eth0]:80", "[::ffff:169.254.169.254]:80", "[fd00:ec2::254]:80"} {
		// What a dialer is given: the name was resolved.
		if err := refuseLinkLocal("tcp", address, nil); !errors.Is(err, errLinkLocal) {
			t.Errorf("dialing %s: %v", address, err)
		}
	}
	if err := refuseLinkLocal("tcp", "10.0.0.1:80", nil); err != nil {
		t.Error(err)
	}
	for _, host := range []string{"169.254.169.254", "169.254.169.254:443", "[fd00:ec2::254]"} {
		if err := newGuard(nil).check(host); !errors.Is(err, errLinkLocal) {
			t.Errorf("%s: %v", host, err)
		}
		if err := newGuard([]string{"*"}).check(host); !errors.Is(err, errLinkLocal) {
			t.Errorf("%s, allowed by a pattern: %v", host, err)
		}
		if err := newGuard([]string{host}).check(host); err != nil {
			t.Errorf("%s, allowed by name: %v", host, err)
		}
	}
}
