package registry

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/belay-krm/belay/fn/digest"
)

// pushMany makes tags in as many repositories.
func pushMany(t *testing.T, f *fake, repos, tags int) []name.Tag {
	t.Helper()
	var out []name.Tag
	for i := range repos {
		for j := range tags {
			tag, _ := f.push(t, fmt.Sprintf("team/app%d:v%d", i, j))
			out = append(out, tag)
		}
	}
	return out
}

// TestTokens wants one token for each repository, also where one would open all
// of them, and where the token service is another host; and a new one, had once
// for all who wait, where it expires.
func TestTokens(t *testing.T) {
	for title, tt := range map[string]struct {
		wide    bool
		uses    int
		tokens  int // requests to the token service for 3 repositories with 10 tags
		another bool
	}{
		"one scope":    {tokens: 3},
		"wide scope":   {wide: true, tokens: 3},
		"another host": {another: true, tokens: 3},
	} {
		t.Run(title, func(t *testing.T) {
			f := newFake(t)
			tags := pushMany(t, f, 3, 10)
			service := f
			realm := ""
			if tt.another {
				service = newFake(t)
				realm = "http://" + service.host + "/token"
			}
			f.answer = f.bearer(realm, tt.wide, tt.uses)
			if tt.another {
				service.answer = f.answer
			}
			resolveAll(t, mustNew(t, quick()), tags)
			if n := service.count("GET /token"); n != tt.tokens {
				t.Errorf("%d tokens, want %d", n, tt.tokens)
			}
		})
	}
}

// TestExpiringToken wants a token that ends in the middle to be renewed.
func TestExpiringToken(t *testing.T) {
	f := newFake(t)
	tags := pushMany(t, f, 1, 20)
	f.answer = f.bearer("", false, 7)
	c := mustNew(t, quick())
	for _, tag := range tags {
		if _, err := c.Resolve(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.count("GET /token"); n != 3 {
		t.Errorf("%d tokens for 20 requests, 7 with each", n)
	}
}

// TestEndlessRefusal wants a registry that refuses every token to be given up.
func TestEndlessRefusal(t *testing.T) {
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	refuse := f.bearer("", false, 0)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/token" {
			r.Header.Del("Authorization")
		}
		return refuse(w, r)
	}
	_, err := mustNew(t, quick()).Resolve(t.Context(), tag)
	wantClass(t, err, digest.Auth, "wants credentials")
	if n := f.count(""); n > 5 {
		t.Errorf("%d requests", n)
	}
}

// TestBasic wants credentials to be sent where a registry asks for them, also
// when it names ways that belay does not know first.
func TestBasic(t *testing.T) {
	f := newFake(t)
	tag, want := f.push(t, "a/b:1")
	f.answer = basic("me", "secret")
	opt := quick()
	opt.Keychain = fixedKeys{authn.AuthConfig{Auth: "bWU6c2VjcmV0"}} // me:secret
	got, err := mustNew(t, opt).Resolve(t.Context(), tag)
	if err != nil || got.Digest != want || f.count("HEAD") != 1 {
		t.Errorf("got %v, %v after %d HEAD", got, err, f.count("HEAD"))
	}
	_, err = mustNew(t, quick()).Resolve(t.Context(), tag)
	wantClass(t, err, digest.Auth, "docker login "+f.host)
}

// TestLateChallenge wants a registry understood that lets anybody greet it, and
// asks for credentials only then.
func TestLateChallenge(t *testing.T) {
	f := newFake(t)
	tag, want := f.push(t, "a/b:1")
	tokens := f.bearer("", false, 0)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		return r.URL.Path != "/v2/" && tokens(w, r)
	}
	got, err := mustNew(t, quick()).Resolve(t.Context(), tag)
	if err != nil || got.Digest != want {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestIdentityToken wants the exchange of OAuth2 where a helper gave a token.
func TestIdentityToken(t *testing.T) {
	f := newFake(t)
	tag, want := f.push(t, "a/b:1")
	tokens := f.bearer("", false, 0)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" && (r.Method != http.MethodPost || r.FormValue("refresh_token") != "identity") {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if r.URL.Path == "/token" {
			r.URL.RawQuery = r.Form.Encode()
		}
		return tokens(w, r)
	}
	opt := quick()
	opt.Keychain = fixedKeys{authn.AuthConfig{IdentityToken: "identity"}}
	got, err := mustNew(t, opt).Resolve(t.Context(), tag)
	if err != nil || got.Digest != want {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestStaleCredentials wants a public image to be had although the credentials
// are refused.
func TestStaleCredentials(t *testing.T) {
	f := newFake(t)
	tag, want := f.push(t, "a/b:1")
	tokens := f.bearer("", false, 0)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" && r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return tokens(w, r)
	}
	opt := quick()
	opt.Keychain = fixedKeys{authn.AuthConfig{Username: "me", Password: "old"}}
	c := mustNew(t, opt)
	got, err := c.Resolve(t.Context(), tag)
	if err != nil || got.Digest != want {
		t.Errorf("got %v, %v", got, err)
	}
	if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "refuses the credentials") || strings.Contains(w, "old") {
		t.Errorf("warnings: %s", w)
	}
}

// TestStaleBasicCredentials wants the same of a registry that asks for
// credentials itself.
func TestStaleBasicCredentials(t *testing.T) {
	f := newFake(t)
	tag, want := f.push(t, "a/b:1")
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" || r.Header.Get("Authorization") != "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	}
	opt := quick()
	opt.Keychain = fixedKeys{authn.AuthConfig{Username: "me", Password: "old"}}
	c := mustNew(t, opt)
	got, err := c.Resolve(t.Context(), tag)
	if err != nil || got.Digest != want {
		t.Errorf("got %v, %v", got, err)
	}
	if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "refuses the credentials") {
		t.Errorf("warnings: %s", w)
	}
}

// TestStaleBasicTogether wants the same of all who were refused at once.
func TestStaleBasicTogether(t *testing.T) {
	f := newFake(t)
	tags := pushMany(t, f, 1, 2)
	var refused sync.WaitGroup
	refused.Add(2)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v2/" && r.Header.Get("Authorization") == "" {
			return false
		}
		if r.URL.Path != "/v2/" {
			refused.Done()
			refused.Wait() // both are under way with the credentials
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	opt := quick()
	opt.Keychain = fixedKeys{authn.AuthConfig{Username: "me", Password: "old"}}
	resolveAll(t, mustNew(t, opt), tags)
}

// TestRedirectedToken wants an identity token not to go along with a redirect
// to another host.
func TestRedirectedToken(t *testing.T) {
	f, other := newFake(t), newFake(t)
	tag, _ := f.push(t, "a/b:1")
	tokens := f.bearer("", false, 0)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			http.Redirect(w, r, "http://"+other.host+"/token", http.StatusTemporaryRedirect)
			return true
		}
		return tokens(w, r)
	}
	opt := quick()
	opt.Keychain = fixedKeys{authn.AuthConfig{IdentityToken: "identity"}}
	_, err := mustNew(t, opt).Resolve(t.Context(), tag)
	if err == nil || other.count("POST") != 0 {
		t.Errorf("%d requests with the token elsewhere, %v", other.count("POST"), err)
	}
}

// TestNoTokenService wants the answers of a token service not to be mistaken for
// those about an image.
func TestNoTokenService(t *testing.T) {
	f := newFake(t)
	tag, hash := f.push(t, "a/b:1")
	tokens := f.bearer("", false, 0)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return tokens(w, r)
	}
	_, err := mustNew(t, quick()).Resolve(t.Context(), tag)
	wantClass(t, err, digest.Network, "answers 404")
	_, err = mustNew(t, quick()).Resolve(t.Context(), tag.Digest(hash.String()))
	wantClass(t, err, digest.Network, "answers 404")
}

// TestBadTokens wants answers of a token service that make no sense to be
// errors of that service.
func TestBadTokens(t *testing.T) {
	for title, tt := range map[string]struct{ body, want string }{
		"no token":  {`{"expires_in": 3}`, "gives no token"},
		"no JSON":   {`<html>`, "cannot be read"},
		"unfitting": {`{"token": 7}`, "cannot be read"},
	} {
		t.Run(title, func(t *testing.T) {
			f := newFake(t)
			tag, _ := f.push(t, "a/b:1")
			tokens := f.bearer("", false, 0)
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					_, _ = fmt.Fprint(w, tt.body)
					return true
				}
				return tokens(w, r)
			}
			_, err := mustNew(t, quick()).Resolve(t.Context(), tag)
			wantClass(t, err, digest.Network, tt.want)
		})
	}
}

// TestRealm wants token services refused that a registry must not make belay
// call.
func TestRealm(t *testing.T) {
	for _, tt := range []struct {
		host, scheme, realm string
		allow               []string
		ok                  bool
	}{
		{host: "registry.example.com", scheme: "https", realm: "https://auth.example.com/token", ok: true},
		{host: "registry.example.com", scheme: "https", realm: "http://auth.example.com/token"},
		{host: "registry.example.com", scheme: "https", realm: "https://169.254.169.254/latest"},
		{host: "registry.example.com", scheme: "https", realm: "https://10.0.0.1/"},
		{host: "registry.example.com", scheme: "https", realm: "https://10.0.0.1/", allow: []string{"10.0.0.1"}, ok: true},
		{host: "registry.example.com", scheme: "https", realm: "https://localhost:8080/"},
		{host: "registry.example.com", scheme: "https", realm: "https://[::1]:8080/"},
		{host: "registry.example.com", scheme: "https", realm: "https://0.0.0.0:8080/"},
		{host: "registry.example.com", scheme: "https", realm: "https://[::]:8080/"},
		{host: "registry.example.com", scheme: "https", realm: "https://LOCALHOST:8080/"},
		{host: "registry.example.com", scheme: "https", realm: "https://localhost.:8080/"},
		{host: "registry.example.com", scheme: "https", realm: "/token"},
		{host: "registry.example.com", scheme: "https", realm: "file:///etc/passwd"},
		{host: "registry.example.com", scheme: "https", realm: ":"},
		{host: "registry.example.com", scheme: "https", realm: ""},
		{host: "registry.example.com:5000", scheme: "http", realm: "http://registry.example.com:5000/token", ok: true},
		{host: "10.0.0.1:5000", scheme: "https", realm: "https://10.0.0.2/token", ok: true},
	} {
		c := mustNew(t, with(digest.NetworkConfig{Allow: tt.allow}))
		p := &place{c.host(tt.host), "a"}
		p.scheme = tt.scheme
		if _, err := p.realm(tt.realm); (err == nil) != tt.ok {
			t.Errorf("%s: %s: %v", tt.host, tt.realm, err)
		}
	}
}
