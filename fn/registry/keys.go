package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/docker-credential-helpers/client"
	"github.com/docker/docker-credential-helpers/credentials"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// keys finds credentials. What cannot be had is a warning, since the image may
// be public.
type keys struct {
	custom  authn.Keychain // in place of all else; may be nil
	timeout time.Duration
	warn    func(string)

	load  sync.Once
	files []*configfile.ConfigFile // the first that knows a registry counts

	mu     sync.Mutex
	helped map[string]*lookup // by registry
}

// A lookup is what programs and services say of one registry, asked once.
type lookup struct {
	mu   sync.Mutex
	done bool
	auth authn.AuthConfig
}

func newKeys(opt Options, warn func(string)) *keys {
	return &keys{custom: opt.Keychain, timeout: cmp.Or(opt.HelperTimeout, 10*time.Second), warn: warn, helped: map[string]*lookup{}}
}

// get gives the credentials for a repository; the zero value for none. As for
// Docker, a helper of the registry comes first, then what the files hold, then
// the store of all registries, then the environment.
// https://docs.docker.com/reference/cli/docker/login/#credential-stores
func (k *keys) get(ctx context.Context, r name.Repository) (authn.AuthConfig, error) {
	host := r.RegistryStr()
	if k.custom != nil {
		return k.once(ctx, host, r, ofKeychain(k.custom))
	}
	k.load.Do(k.read)
	if h := k.helper(host); h != "" {
		auth, err := k.once(ctx, "helper of "+host, r, ofHelper(h))
		if err != nil || auth != (authn.AuthConfig{}) {
			return auth, err
		}
	}
	if auth, ok := k.written(r); ok {
		return auth, nil
	}
	var rest []source
	if s := k.store(); s != "" {
		rest = append(rest, ofHelper(s))
	}
	if chain := ambient(host); chain != nil {
		rest = append(rest, ofKeychain(chain))
	}
	return k.once(ctx, host, r, rest...)
}

// A source knows credentials.
type source func(context.Context, name.Repository) (authn.AuthConfig, error)

// once asks sources until one knows something, and remembers the answer under
// a key. Those who come meanwhile wait for the first.
func (k *keys) once(ctx context.Context, key string, r name.Repository, sources ...source) (authn.AuthConfig, error) {
	k.mu.Lock()
	l := k.helped[key]
	if l == nil {
		l = &lookup{}
		k.helped[key] = l
	}
	k.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return l.auth, ctx.Err()
	}
	for _, source := range sources {
		auth, err := limited(ctx, k.timeout, func(ctx context.Context) (authn.AuthConfig, error) { return source(ctx, r) })
		switch {
		case ctx.Err() != nil:
			return authn.AuthConfig{}, ctx.Err() // it may be asked again
		case err != nil:
			k.warn(r.RegistryStr() + ": going on without credentials, since they cannot be had: " + firstLine(err.Error()))
		case auth != authn.AuthConfig{}:
			l.auth, l.done = auth, true
			return auth, nil
		}
	}
	l.done = true
	return authn.AuthConfig{}, nil
}

// helper gives the name of the helper of a registry; "" for none.
func (k *keys) helper(host string) string {
	for _, f := range k.files {
		for _, key := range slices.Sorted(maps.Keys(f.CredentialHelpers)) {
			if plainKey(key) == host && f.CredentialHelpers[key] != "" {
				return f.CredentialHelpers[key]
			}
		}
	}
	return ""
}

// store gives the name of the store of all registries; "" for none.
func (k *keys) store() string {
	for _, f := range k.files {
		if f.CredentialsStore != "" {
			return f.CredentialsStore
		}
	}
	return ""
}

// serverURL gives what Docker calls a registry.
func serverURL(host string) string {
	if host == name.DefaultRegistry {
		return authn.DefaultAuthKey
	}
	return host
}

// written gives the credentials that stand in a file: those of the longest part
// of the repository that has any.
// https://github.com/containers/image/blob/main/docs/containers-auth.json.5.md
func (k *keys) written(r name.Repository) (authn.AuthConfig, bool) {
	for key := r.Name(); key != ""; key = key[:max(strings.LastIndex(key, "/"), 0)] {
		for _, f := range k.files {
			for _, at := range spellings(f, key) {
				c := f.AuthConfigs[at]
				auth := authn.AuthConfig{Username: c.Username, Password: c.Password, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken}
				if auth != (authn.AuthConfig{}) {
					return auth, true
				}
			}
		}
	}
	return authn.AuthConfig{}, false
}

// spellings gives the keys of a file that mean a registry or repository, that
// by which Docker itself calls it first.
func spellings(f *configfile.ConfigFile, key string) []string {
	var out []string
	for _, at := range slices.Sorted(maps.Keys(f.AuthConfigs)) {
		if at == serverURL(key) {
			out = slices.Insert(out, 0, at)
		} else if plainKey(at) == key {
			out = append(out, at)
		}
	}
	return out
}

// plainKey gives the registry or repository that a key of a file means.
func plainKey(s string) string {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://")
	s = strings.TrimSuffix(s, "/")
	if host, path, _ := strings.Cut(s, "/"); path == "v1" || path == "v2" {
		s = host
	}
	if s == "docker.io" || strings.HasPrefix(s, "docker.io/") {
		return "index." + s
	}
	return s
}

// read reads the files that Docker and Podman keep.
func (k *keys) read() {
	if text := os.Getenv("DOCKER_AUTH_CONFIG"); text != "" {
		k.parse("DOCKER_AUTH_CONFIG", strings.NewReader(text))
	}
	for _, path := range authFiles() {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			k.warn("credentials cannot be read: " + err.Error())
			continue
		}
		k.parse(path, f)
		_ = f.Close()
	}
}

// parse reads one file. Its text is kept out of messages.
func (k *keys) parse(where string, r io.Reader) {
	f, err := config.LoadFromReader(r)
	if err != nil {
		k.warn(where + ": credentials cannot be read: is no configuration of Docker or Podman")
		return
	}
	k.files = append(k.files, f)
}

func authFiles() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	var out []string
	add := func(dir string, rest ...string) {
		if dir != "" {
			out = append(out, filepath.Join(append([]string{dir}, rest...)...))
		}
	}
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		add(dir, "config.json")
	} else {
		add(home, ".docker", "config.json")
	}
	add(os.Getenv("REGISTRY_AUTH_FILE"))
	add(os.Getenv("XDG_RUNTIME_DIR"), "containers", "auth.json")
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		add(dir, "containers", "auth.json")
	} else {
		add(home, ".config", "containers", "auth.json")
	}
	return out
}

// limited gives what f finds, or an error when it takes too long. What does not
// end then is left behind.
func limited(outer context.Context, limit time.Duration, f func(context.Context) (authn.AuthConfig, error)) (authn.AuthConfig, error) {
	type found struct {
		auth authn.AuthConfig
		err  error
	}
	ctx, cancel := context.WithTimeout(outer, limit)
	out := make(chan found, 1)
	go func() {
		defer cancel()
		auth, err := f(ctx)
		out <- found{auth, err}
	}()
	select {
	case x := <-out:
		if x.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return x.auth, fmt.Errorf("no answer in %v", limit)
		}
		return x.auth, x.err
	case <-time.After(limit + time.Second):
		return authn.AuthConfig{}, fmt.Errorf("no answer in %v", limit)
	case <-outer.Done():
		return authn.AuthConfig{}, outer.Err()
	}
}

func ofKeychain(chain authn.Keychain) source {
	return func(ctx context.Context, r name.Repository) (authn.AuthConfig, error) {
		auth, err := authn.Resolve(ctx, chain, r)
		if err != nil {
			return authn.AuthConfig{}, err
		}
		got, err := authn.Authorization(ctx, auth)
		if err != nil {
			return authn.AuthConfig{}, err
		}
		return decoded(*got), nil
	}
}

// decoded fills in user and password where only their encoded form is given.
func decoded(c authn.AuthConfig) authn.AuthConfig {
	if c.Username == "" && c.Auth != "" {
		data, err := c.MarshalJSON()
		var full authn.AuthConfig
		if err == nil && full.UnmarshalJSON(data) == nil {
			c = full
		}
	}
	c.Auth = ""
	return c
}

// ofHelper asks a program. One that hangs is killed.
// https://github.com/docker/docker-credential-helpers
func ofHelper(helper string) source {
	return func(ctx context.Context, r name.Repository) (authn.AuthConfig, error) {
		p := &run{}
		program := func(args ...string) client.Program {
			p.Cmd = exec.CommandContext(ctx, "docker-credential-"+helper, args...)
			p.WaitDelay = time.Second / 2
			return p
		}
		got, err := client.Get(program, serverURL(r.RegistryStr()))
		switch {
		case credentials.IsErrCredentialsNotFound(err):
			return authn.AuthConfig{}, nil
		case p.err != nil:
			return authn.AuthConfig{}, fmt.Errorf("docker-credential-%s: %w", helper, p.err)
		case err != nil:
			// The error holds what the helper said, which may be a secret.
			return authn.AuthConfig{}, fmt.Errorf("docker-credential-%s: its answer cannot be read", helper)
		case got.Username == "<token>":
			return authn.AuthConfig{IdentityToken: got.Secret}, nil
		}
		return authn.AuthConfig{Username: got.Username, Password: got.Secret}, nil
	}
}

// A run is one run of a helper.
type run struct {
	*exec.Cmd
	err error // of the program, without what it said
}

// Output implements client.Program. A child that the helper leaves behind, and
// that keeps its output open, is not waited for.
func (r *run) Output() ([]byte, error) {
	out, err := r.Cmd.Output()
	if errors.Is(err, exec.ErrWaitDelay) && r.ProcessState.Success() {
		err = nil
	}
	r.err = err
	return out, err
}

// Input implements client.Program.
func (r *run) Input(in io.Reader) { r.Stdin = in }
