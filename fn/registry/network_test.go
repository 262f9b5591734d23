package registry

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// TestMirror wants images looked up where the configuration says, and a warning
// where two places differ.
func TestMirror(t *testing.T) {
	source, mirror := newFake(t), newFake(t)
	_, atSource := source.push(t, "library/nginx:1")
	_, atMirror := mirror.push(t, "hub/library/nginx:1")
	for _, tt := range []struct {
		resolveAt       string
		want            v1.Hash
		source, mirrors int
		warning         string
	}{
		{"mirror", atMirror, 0, 1, ""},
		{"", atMirror, 0, 1, ""},
		{"source", atSource, 1, 0, ""},
		{"compare", atSource, 1, 1, "has another digest"},
	} {
		source.quietly(func() {})
		mirror.quietly(func() {})
		c := mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{{Host: source.host, Mirror: mirror.host + "/hub", ResolveAt: tt.resolveAt}}}))
		tag, err := name.NewTag(source.host + "/library/nginx:1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Resolve(t.Context(), tag)
		if err != nil || got.Digest != tt.want || source.count("HEAD") != tt.source || mirror.count("HEAD") != tt.mirrors {
			t.Errorf("%s: got %v, %v; %d asked at the source, %d at the mirror", tt.resolveAt, got, err, source.count("HEAD"), mirror.count("HEAD"))
		}
		if w := strings.Join(c.Warnings(), "\n"); (tt.warning == "") != (w == "") || !strings.Contains(w, tt.warning) {
			t.Errorf("%s: warnings %q", tt.resolveAt, w)
		}
	}
}

// TestMirrorPath wants a slash at the end of a mirror to say nothing, and
// platforms to be those of the image whose digest is taken.
func TestMirrorPath(t *testing.T) {
	source, mirror := newFake(t), newFake(t)
	_, atMirror := mirror.push(t, "hub/a/b:1")
	tag, atSource := source.push(t, "a/b:1")
	c := mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{{Host: source.host, Mirror: mirror.host + "/hub/"}}}))
	if got, err := c.Resolve(t.Context(), tag); err != nil || got.Digest != atMirror {
		t.Errorf("got %v, %v", got, err)
	}
	c = mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{{Host: source.host, Mirror: mirror.host + "/hub", ResolveAt: "compare"}}}))
	if _, err := c.Platforms(t.Context(), tag.Digest(atSource.String())); err != nil {
		t.Error(err)
	}
}

// TestMirrorMisses wants an error that names the mirror.
func TestMirrorMisses(t *testing.T) {
	source, mirror := newFake(t), newFake(t)
	tag, _ := source.push(t, "a/b:1")
	c := mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{{Host: source.host, Mirror: mirror.host}}}))
	_, err := c.Resolve(t.Context(), tag)
	wantClass(t, err, digest.NotFound, "at "+mirror.host+", the mirror of "+source.host)

	// A comparison takes the source's word where the mirror has none.
	c = mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{{Host: source.host, Mirror: mirror.host, ResolveAt: "compare"}}}))
	if _, err := c.Resolve(t.Context(), tag); err != nil {
		t.Error(err)
	}
	if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "cannot be compared with the mirror") {
		t.Errorf("warnings: %s", w)
	}
}

// TestDockerHubMirror wants docker.io and its other names to be one registry.
func TestDockerHubMirror(t *testing.T) {
	mirror := newFake(t)
	_, want := mirror.push(t, "hub/library/nginx:1")
	c := mustNew(t, with(digest.NetworkConfig{Allow: []string{mirror.host}, Registries: []digest.Registry{{Host: "docker.io", Mirror: mirror.host + "/hub"}}}))
	for _, spelling := range []string{"nginx:1", "docker.io/nginx:1", "index.docker.io/library/nginx:1"} {
		tag, err := name.NewTag(spelling)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Resolve(t.Context(), tag); err != nil || got.Digest != want {
			t.Errorf("%s: %v, %v", spelling, got, err)
		}
	}
}

// TestPin wants one HEAD for an image in five spellings, which stay, and no
// request in the second run.
func TestPin(t *testing.T) {
	mirror := newFake(t)
	_, hash := mirror.push(t, "hub/library/nginx:1")
	network := digest.NetworkConfig{Registries: []digest.Registry{{Host: "docker.io", Mirror: mirror.host + "/hub"}}}
	spellings := []string{"nginx:1", "library/nginx:1", "docker.io/nginx:1", "docker.io/library/nginx:1", "index.docker.io/library/nginx:1"}
	text := deployments(spellings)
	locks := map[string]*lock.Lock{"": {}}
	for run, want := range []int{1, 0} {
		list, err := manifest.ReadFiles([]manifest.Input{{Data: text, Stream: true}})
		if err != nil {
			t.Fatal(err)
		}
		mirror.quietly(func() {})
		c := mustNew(t, with(network))
		stats := digest.Pin(t.Context(), list, digest.Config{Mode: "missing", Jobs: 16}, locks, digest.Options{Resolver: c})
		if mirror.count("HEAD") != want || run == 1 && c.Requests() != 0 || len(stats.Pins) != 1200 || list.Failed() {
			t.Errorf("run %d: %d HEAD, %d requests, %d pins: %v", run, mirror.count("HEAD"), c.Requests(), len(stats.Pins), list.Findings(manifest.Error))
		}
		for i, p := range stats.Pins {
			if want := spellings[i%5] + "@" + hash.String(); p.To != want {
				t.Fatalf("%s became %s, want %s", p.From, p.To, want)
			}
		}
	}
}

// secure starts a registry with TLS, whose certificate is its own authority.
func secure(t *testing.T, config *tls.Config) (*fake, string) {
	t.Helper()
	f := unstarted()
	f.server.TLS = config
	f.server.StartTLS()
	t.Cleanup(f.server.Close)
	f.host = strings.TrimPrefix(f.server.URL, "https://")
	return f, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw}))
}

// TestTLS wants a certificate trusted that the configuration names, or not
// checked where it says so, and no other.
func TestTLS(t *testing.T) {
	f, ca := secure(t, nil)
	tag, want := f.push(t, "a/b:1")
	for title, tt := range map[string]struct {
		registry digest.Registry
		ok       bool
	}{
		"unknown authority":      {digest.Registry{}, false},
		"authority":              {digest.Registry{CA: ca}, true},
		"not verified":           {digest.Registry{SkipVerify: true}, true},
		"of another registry":    {digest.Registry{Host: "registry.example.com", CA: ca}, false},
		"another's verification": {digest.Registry{Host: "registry.example.com", SkipVerify: true}, false},
	} {
		if tt.registry.Host == "" {
			tt.registry.Host = f.host
		}
		got, err := mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{tt.registry}})).Resolve(t.Context(), tag)
		if tt.ok && (err != nil || got.Digest != want) {
			t.Errorf("%s: got %v, %v", title, got, err)
		}
		if !tt.ok {
			wantClass(t, err, digest.TLS, "digests.network.registries")
		}
	}
	if _, err := New(with(digest.NetworkConfig{Registries: []digest.Registry{{Host: f.host, CA: "nonsense"}}})); err == nil || !strings.Contains(err.Error(), "registries[0]") {
		t.Errorf("a certificate that is none: %v", err)
	}
}

// TestTLSOfTokenService wants the settings of a registry not to hold for the
// token service that it names.
func TestTLSOfTokenService(t *testing.T) {
	f, _ := secure(t, nil)
	service, ca := secure(t, nil)
	tag, want := f.push(t, "a/b:1")
	f.answer = f.bearer("https://"+service.host+"/token", false, 0)
	service.answer = f.answer
	registries := []digest.Registry{{Host: f.host, SkipVerify: true}}
	_, err := mustNew(t, with(digest.NetworkConfig{Registries: registries})).Resolve(t.Context(), tag)
	wantClass(t, err, digest.TLS, "the certificate of "+service.host+" (for "+f.host+") is not trusted")
	registries = append(registries, digest.Registry{Host: service.host, CA: ca})
	got, err := mustNew(t, with(digest.NetworkConfig{Registries: registries})).Resolve(t.Context(), tag)
	if err != nil || got.Digest != want {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestClientCertificate wants the certificate of the configuration to be shown.
func TestClientCertificate(t *testing.T) {
	cert, key := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	f, ca := secure(t, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12})
	tag, err := name.NewTag(f.host + "/a/b:1")
	if err != nil {
		t.Fatal(err)
	}
	r := digest.Registry{Host: f.host, CA: ca}
	if _, err := mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{r}})).Resolve(t.Context(), tag); err == nil || strings.Contains(err.Error(), "no such tag") {
		t.Errorf("without certificate: %v", err)
	}
	r.Cert, r.Key = string(cert), string(key)
	_, err = mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{r}})).Resolve(t.Context(), tag)
	wantClass(t, err, digest.NotFound, "no such tag") // and so the registry was reached
}

func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

// TestPlainHTTP wants HTTP without TLS only on this machine, or where the
// configuration names a registry, and then a warning.
func TestPlainHTTP(t *testing.T) {
	var asked []string
	c := mustNew(t, with(digest.NetworkConfig{Registries: []digest.Registry{{Host: "plain.example.com", PlainHTTP: true}}}))
	c.http = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.String())
		if r.URL.Scheme == "https" {
			return nil, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{"Docker-Content-Digest": {"sha256:" + strings.Repeat("a", 64)}, "Content-Type": {string(types.OCIManifestSchema1)}}, Request: r}, nil
	})}
	plain, err := name.NewTag("plain.example.com/a:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(t.Context(), plain); err != nil {
		t.Error(err)
	}
	private, err := name.NewTag("10.0.0.1:5000/a:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resolve(t.Context(), private)
	wantClass(t, err, digest.TLS, "set plainHTTP")
	if got := strings.Join(asked, " "); got != "http://plain.example.com/v2/ http://plain.example.com/v2/a/manifests/1 https://10.0.0.1:5000/v2/" {
		t.Errorf("asked %s", got)
	}
	if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "plain.example.com: is reached over plain HTTP") {
		t.Errorf("warnings: %s", w)
	}
}

// TestOwnMachine wants a registry on this machine that speaks no TLS to be
// reached without a word.
func TestOwnMachine(t *testing.T) {
	f := newFake(t)
	tag, _ := f.push(t, "a/b:1")
	var stderr bytes.Buffer
	f.server.Config.ErrorLog.SetOutput(&stderr)
	c := mustNew(t, quick())
	if _, err := c.Resolve(t.Context(), tag); err != nil || len(c.Warnings()) != 0 {
		t.Errorf("%v, warnings %q", err, c.Warnings())
	}
}
