// Package e2e_test runs belay with the real programs that it works with: kpt,
// kustomize, pre-commit and the CNCF registry.
package e2e_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// tools is the folder with the programs under test, first in PATH.
var tools string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run builds what the tests use, and runs them.
func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "belay-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tools = dir
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "belay"), ".")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("building belay: %w\n%s", err, out)
	}
	for _, tool := range []string{"kustomize", "registry"} {
		// -n builds the tool and prints where it is.
		out, err := exec.Command("go", "tool", "-n", tool).Output()
		if err != nil {
			return 1, fmt.Errorf("building %s: %w", tool, err)
		}
		if err := os.Symlink(strings.TrimSpace(string(out)), filepath.Join(dir, tool)); err != nil {
			return 1, err
		}
	}
	if err := os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// need skips the test where a program is missing; in CI that is a failure.
func need(t *testing.T, program, install string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: %s", program, install)
	}
	t.Skipf("%s is missing: %s", program, install)
}

// A command is a program that was run.
type command struct {
	stdout, stderr string
	code           int
}

// sh runs a program in dir, with stdin and more environment, within a minute.
func sh(t *testing.T, dir, stdin string, env []string, args ...string) command {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(stdin), append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return command{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs a program that has to succeed.
func must(t *testing.T, dir, stdin string, args ...string) command {
	t.Helper()
	c := sh(t, dir, stdin, nil, args...)
	if c.code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), c.code, c.stdout, c.stderr)
	}
	return c
}

// write makes files below dir.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// read gives a file.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tree gives all files below dir as one text.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "== %s\n%s", path, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A server is a registry on loopback.
type server struct {
	host string // host:port
	cmd  *exec.Cmd
}

// startRegistry starts the CNCF registry with more lines of configuration for
// its http and auth sections, and waits until it listens.
func startRegistry(t *testing.T, tlsLines, auth string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{host: l.Addr().String()}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"config.yml": fmt.Sprintf(`version: 0.1
log: {level: error}
storage:
  inmemory: {}
http:
  addr: %s
%s%s`, s.host, tlsLines, auth)})
	s.cmd = exec.Command("registry", "serve", filepath.Join(dir, "config.yml"))
	var log bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	for range 100 {
		c, err := net.DialTimeout("tcp", s.host, time.Second)
		if err == nil {
			_ = c.Close()
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the registry does not listen:\n%s", log.String())
	return nil
}

// stop ends the registry; a second time nothing happens.
func (s *server) stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// push makes an image, or an index of several, under team/app:1.0, and gives
// its digest.
func (s *server) push(t *testing.T, index bool, opts ...remote.Option) string {
	t.Helper()
	tag, err := name.NewTag(s.host + "/team/app:1.0")
	if err != nil {
		t.Fatal(err)
	}
	if index {
		idx, err := random.Index(64, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.WriteIndex(tag, idx, opts...); err != nil {
			t.Fatal(err)
		}
		d, err := idx.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d.String()
	}
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img, opts...); err != nil {
		t.Fatal(err)
	}
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// client trusts the certificate of a test registry.
func client(rt http.RoundTripper) remote.Option { return remote.WithTransport(rt) }

// contains wants all parts in a text.
func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s: lacks %q:\n%s", what, p, text)
		}
	}
}
