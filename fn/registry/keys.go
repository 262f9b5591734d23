package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	once sync.Once
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
	if k.custom == nil {
		k.load.Do(k.read)
		if k.helper(host) == "" {
			if auth, ok := k.written(r); ok {
				return auth, nil
			}
		}
	}
	k.mu.Lock()
	l := k.helped[host]
	if l == nil {
		l = &lookup{}
		k.helped[host] = l
	}
	k.mu.Unlock()
	l.once.Do(func() { l.auth = k.ask(ctx, r) })
	if l.auth != (authn.AuthConfig{}) || k.custom != nil {
		return l.auth, ctx.Err()
	}
	auth, _ := k.written(r) // the helper of the registry had nothing
	return auth, ctx.Err()
}

// ask asks the programs and services that may know a registry, until one does.
func (k *keys) ask(ctx context.Context, r name.Repository) authn.AuthConfig {
	for _, source := range k.sources(r.RegistryStr()) {
		auth, err := limited(ctx, k.timeout, func(ctx context.Context) (authn.AuthConfig, error) { return source(ctx, r) })
		switch {
		case ctx.Err() != nil:
			return authn.AuthConfig{}
		case err != nil:
			k.warn(r.RegistryStr() + ": going on without credentials, since they cannot be had: " + firstLine(err.Error()))
		case auth != authn.AuthConfig{}:
			return auth
		}
	}
	return authn.AuthConfig{}
}

// A source knows credentials.
type source func(context.Context, name.Repository) (authn.AuthConfig, error)

func (k *keys) sources(host string) []source {
	if k.custom != nil {
		return []source{ofKeychain(k.custom)}
	}
	var out []source
	if h := k.helper(host); h != "" {
		out = append(out, ofHelper(h))
	}
	if s := k.store(); s != "" {
		out = append(out, ofHelper(s))
	}
	if chain := ambient(host); chain != nil {
		out = append(out, ofKeychain(chain))
	}
	return out
}

// helper gives the name of the helper of a registry; "" for none.
func (k *keys) helper(host string) string {
	for _, f := range k.files {
		for key, h := range f.CredentialHelpers {
			if plainKey(key) == host {
				return h
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
			for at, c := range f.AuthConfigs {
				if plainKey(at) != key {
					continue
				}
				c.ServerAddress, c.Auth = "", ""
				auth := authn.AuthConfig{Username: c.Username, Password: c.Password, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken}
				if auth != (authn.AuthConfig{}) {
					return auth, true
				}
			}
		}
	}
	return authn.AuthConfig{}, false
}

// plainKey gives the registry or repository that a key of a file means.
func plainKey(s string) string {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://")
	s = strings.TrimSuffix(s, "/")
	s = strings.TrimSuffix(strings.TrimSuffix(s, "/v1"), "/v2")
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
func limited(ctx context.Context, limit time.Duration, f func(context.Context) (authn.AuthConfig, error)) (authn.AuthConfig, error) {
	type found struct {
		auth authn.AuthConfig
		err  error
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
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
		program := func(args ...string) client.Program {
			cmd := exec.CommandContext(ctx, "docker-credential-"+helper, args...)
			cmd.WaitDelay = time.Second / 2
			return &run{cmd}
		}
		got, err := client.Get(program, serverURL(r.RegistryStr()))
		switch {
		case credentials.IsErrCredentialsNotFound(err):
			return authn.AuthConfig{}, nil
		case err != nil:
			return authn.AuthConfig{}, fmt.Errorf("docker-credential-%s: %w", helper, err)
		case got.Username == "<token>":
			return authn.AuthConfig{IdentityToken: got.Secret}, nil
		}
		return authn.AuthConfig{Username: got.Username, Password: got.Secret}, nil
	}
}

// A run is one run of a helper.
type run struct{ *exec.Cmd }

// Input implements client.Program.
func (r *run) Input(in io.Reader) { r.Stdin = in }
