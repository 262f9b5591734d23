package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

var me = authn.AuthConfig{Username: "me", Password: "secret"}

// fixedKeys is a keychain that knows one thing.
type fixedKeys struct{ authn.AuthConfig }

// Resolve implements authn.Keychain.
func (k fixedKeys) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(k.AuthConfig), nil
}

// A brokenKeychain is that of a helper that is not there.
type brokenKeychain struct{}

// Resolve implements authn.Keychain.
func (brokenKeychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return nil, errors.New("exec: docker-credential-none: not found")
}

// TestBrokenKeychain wants public images to be had without credentials.
func TestBrokenKeychain(t *testing.T) {
	f := newFake(t)
	tag, want := f.push(t, "a/b:1")
	f.answer = f.bearer("", false, 0)
	opt := quick()
	opt.Keychain = brokenKeychain{}
	c := mustNew(t, opt)
	got, err := c.Resolve(t.Context(), tag)
	if err != nil || got.Digest != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "going on without credentials") {
		t.Errorf("warnings are %q", w)
	}
}

// A home is what the environment says of credentials.
type home struct {
	dir      string
	warnings []string
}

func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{dir: t.TempDir()}
	t.Setenv("HOME", h.dir)
	for _, key := range []string{"DOCKER_CONFIG", "DOCKER_AUTH_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "GITHUB_TOKEN"} {
		t.Setenv(key, "")
	}
	t.Setenv("PATH", h.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return h
}

func (h *home) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	path = filepath.Join(h.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// helper writes a program docker-credential-NAME, which notes that it ran.
func (h *home) helper(t *testing.T, helper, body string) {
	t.Helper()
	h.write(t, "docker-credential-"+helper, "#!/bin/sh\necho run >> "+h.dir+"/runs\n"+body, 0o755)
}

func (h *home) runs(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, "runs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "run")
}

func (h *home) keys() *keys {
	return newKeys(Options{HelperTimeout: 1500 * time.Millisecond}, func(w string) { h.warnings = append(h.warnings, w) })
}

func (h *home) get(t *testing.T, k *keys, repo string) authn.AuthConfig {
	t.Helper()
	r, err := name.NewRepository(repo, name.WeakValidation)
	if err != nil {
		t.Fatal(err)
	}
	auth, err := k.get(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

func entry(user string) string {
	return `{"auth": "` + base64.StdEncoding.EncodeToString([]byte(user+":secret")) + `"}`
}

// TestFiles wants the most special entry of the files to be found.
func TestFiles(t *testing.T) {
	h := newHome(t)
	h.write(t, ".docker/config.json", fmt.Sprintf(`{"auths": {"https://index.docker.io/v1/": %s, "registry.example.com": %s, "https://old.example.com/v2/": %s, "empty.example.com": {}}}`, entry("hub"), entry("all"), entry("old")), 0o600)
	h.write(t, ".config/containers/auth.json", fmt.Sprintf(`{"auths": {"registry.example.com/team": %s, "empty.example.com": %s}}`, entry("team"), entry("podman")), 0o600)
	k := h.keys()
	got := map[string]string{}
	for _, repo := range []string{"nginx", "docker.io/me/app", "registry.example.com/other", "registry.example.com/team/app", "registry.example.com/teams", "old.example.com/a", "empty.example.com/a", "unknown.example.com/a"} {
		got[repo] = h.get(t, k, repo).Username
	}
	want := map[string]string{"nginx": "hub", "docker.io/me/app": "hub", "registry.example.com/other": "all", "registry.example.com/team/app": "team", "registry.example.com/teams": "all", "old.example.com/a": "old", "empty.example.com/a": "podman", "unknown.example.com/a": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("users (-want +got)\n%s", diff)
	}
	if len(h.warnings) != 0 {
		t.Errorf("warnings %q", h.warnings)
	}
}

// TestFilesElsewhere wants the places that the environment names.
func TestFilesElsewhere(t *testing.T) {
	for key, path := range map[string]string{"DOCKER_CONFIG": "config.json", "REGISTRY_AUTH_FILE": "", "XDG_RUNTIME_DIR": "containers/auth.json", "XDG_CONFIG_HOME": "containers/auth.json"} {
		t.Run(key, func(t *testing.T) {
			h := newHome(t)
			h.write(t, filepath.Join("there", path), fmt.Sprintf(`{"auths": {"a.example.com": %s}}`, entry(key)), 0o600)
			t.Setenv(key, filepath.Join(h.dir, "there"))
			if got := h.get(t, h.keys(), "a.example.com/x").Username; got != key {
				t.Errorf("user %q", got)
			}
		})
	}
	h := newHome(t)
	t.Setenv("DOCKER_AUTH_CONFIG", fmt.Sprintf(`{"auths": {"a.example.com": %s}}`, entry("env")))
	if got := h.get(t, h.keys(), "a.example.com/x").Username; got != "env" {
		t.Errorf("user %q", got)
	}
}

// TestBrokenFile wants a file that cannot be read to be a warning, without its
// text.
func TestBrokenFile(t *testing.T) {
	h := newHome(t)
	h.write(t, ".docker/config.json", `{"auths": {"a": {"auth": "topsecret"`, 0o600)
	if got := h.get(t, h.keys(), "a/b"); got != (authn.AuthConfig{}) {
		t.Errorf("credentials %+v", got)
	}
	if w := strings.Join(h.warnings, "\n"); !strings.Contains(w, "config.json: credentials cannot be read") || strings.Contains(w, "topsecret") {
		t.Errorf("warnings %s", w)
	}
}

// TestHelpers wants a helper to run once for each registry, and one that fails
// or hangs to cost no more than a warning.
func TestHelpers(t *testing.T) {
	const answer = `cat > /dev/null; echo '{"ServerURL": "", "Username": "helped", "Secret": "secret"}'`
	for title, tt := range map[string]struct {
		config, body string
		user         string
		identity     string
		warning      string
	}{
		"of the registry":     {config: `{"credHelpers": {"a.example.com": "x"}}`, body: answer, user: "helped"},
		"of all registries":   {config: `{"credsStore": "x"}`, body: answer, user: "helped"},
		"before the file":     {config: `{"credHelpers": {"a.example.com": "x"}, "auths": {"a.example.com": ` + entry("written") + `}}`, body: answer, user: "helped"},
		"store after file":    {config: `{"credsStore": "x", "auths": {"a.example.com": ` + entry("written") + `}}`, body: answer, user: "written"},
		"knows nothing":       {config: `{"credsStore": "x"}`, body: `echo "credentials not found in native keychain"; exit 1`},
		"identity token":      {config: `{"credsStore": "x"}`, body: strings.Replace(answer, "helped", "<token>", 1), identity: "secret"},
		"fails":               {config: `{"credsStore": "x"}`, body: `echo boom; exit 1`, warning: "docker-credential-x: "},
		"fails, file knows":   {config: `{"credHelpers": {"a.example.com": "x"}, "auths": {"a.example.com": ` + entry("written") + `}}`, body: `exit 1`, user: "written", warning: "docker-credential-x: "},
		"fails and talks":     {config: `{"credsStore": "x"}`, body: answer + `; exit 1`, warning: "docker-credential-x: exit status 1"},
		"leaves a child":      {config: `{"credsStore": "x"}`, body: answer + `; sleep 3 &`, user: "helped"},
		"answers nonsense":    {config: `{"credsStore": "x"}`, body: `echo '{"Secret": "secret'`, warning: "its answer cannot be read"},
		"nothing, file knows": {config: `{"credHelpers": {"a.example.com": "x"}, "credsStore": "y", "auths": {"a.example.com": ` + entry("written") + `}}`, body: `echo "credentials not found in native keychain"; exit 1`, user: "written"},
		"hangs":               {config: `{"credsStore": "x"}`, body: `sleep 60`, warning: "no answer in 1.5s"},
		"is not there":        {config: `{"credsStore": "none"}`, warning: "docker-credential-none: "},
		"of another registry": {config: `{"credHelpers": {"b.example.com": "x"}}`, body: answer},
	} {
		t.Run(title, func(t *testing.T) {
			h := newHome(t)
			h.write(t, ".docker/config.json", tt.config, 0o600)
			h.helper(t, "x", tt.body)
			k := h.keys()
			for range 3 {
				got := h.get(t, k, "a.example.com/team/app")
				if got.Username != tt.user || got.IdentityToken != tt.identity {
					t.Errorf("got %+v", got)
				}
			}
			h.get(t, k, "a.example.com/other")
			if n := h.runs(t); n > 1 {
				t.Errorf("the helper ran %d times", n)
			}
			if w := strings.Join(h.warnings, "\n"); (tt.warning == "") != (w == "") || !strings.Contains(w, tt.warning) || strings.Contains(w, "secret") {
				t.Errorf("warnings %q, want %q", w, tt.warning)
			}
		})
	}
}

// TestFileKeys wants the exact spelling of a key to come first, and a version
// of the API only behind a host.
func TestFileKeys(t *testing.T) {
	for range 20 {
		h := newHome(t)
		h.write(t, ".docker/config.json", fmt.Sprintf(`{"auths": {"https://index.docker.io/v1/": %s, "docker.io": %s, "quay.io/team/v1": %s}}`, entry("one"), entry("two"), entry("v1")), 0o600)
		k := h.keys()
		if got := h.get(t, k, "nginx").Username; got != "one" {
			t.Fatalf("docker.io gets %q", got)
		}
		if got := h.get(t, k, "quay.io/team/other").Username; got != "" {
			t.Fatalf("another namespace gets %q", got)
		}
	}
}

// TestCancelledKeys wants an interrupt to end the wait for a helper at once, and
// what was not found out then to be asked for again.
func TestCancelledKeys(t *testing.T) {
	h := newHome(t)
	k := newKeys(Options{Keychain: slowKeys{}, HelperTimeout: time.Minute}, func(string) {})
	r, err := name.NewRepository("a.example.com/x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := k.get(ctx, r); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
		t.Errorf("ended with %v after %v", err, time.Since(start))
	}
	k.custom = fixedKeys{me}
	if got := h.get(t, k, "a.example.com/x"); got != me {
		t.Errorf("later: %+v", got)
	}
}

// slowKeys is a keychain that does not end when it should.
type slowKeys struct{}

// Resolve implements authn.Keychain.
func (slowKeys) Resolve(authn.Resource) (authn.Authenticator, error) {
	time.Sleep(20 * time.Second)
	return authn.Anonymous, nil
}

// TestAmbient wants the credentials of the environment for their own hosts
// alone.
func TestAmbient(t *testing.T) {
	for host, want := range map[string]bool{
		"ghcr.io": true, "gcr.io": true, "eu.gcr.io": true, "europe-docker.pkg.dev": true,
		"123456789012.dkr.ecr.eu-central-1.amazonaws.com": true, "team.azurecr.io": true,
		"index.docker.io": false, "ghcr.io.example.com": false, "evilgcr.io": false, "azurecr.io.example.com": false,
		"dkr.ecr.amazonaws.com.example.com": false, "public.ecr.aws": false, "quay.io": false,
	} {
		if got := ambient(host) != nil; got != want {
			t.Errorf("%s: %t", host, got)
		}
	}
	h := newHome(t)
	t.Setenv("GITHUB_TOKEN", "token")
	k := h.keys()
	if got := h.get(t, k, "ghcr.io/a/b"); got.Password != "token" {
		t.Errorf("ghcr.io gets %+v", got)
	}
	if got := h.get(t, k, "quay.io/a/b"); got != (authn.AuthConfig{}) {
		t.Errorf("quay.io gets %+v", got)
	}
	h.write(t, ".docker/config.json", `{"auths": {"ghcr.io": `+entry("explicit")+`}}`, 0o600)
	if got := h.get(t, h.keys(), "ghcr.io/a/b"); got.Username != "explicit" {
		t.Errorf("what docker login wrote is not preferred: %+v", got)
	}
}
