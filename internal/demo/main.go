// Command demo shows what belay does, with nothing but Go: it starts a registry
// on loopback, hydrates examples/quickstart in a temporary folder, changes the
// ConfigMap, and hydrates again.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/registry"
	"github.com/belay-krm/belay/internal/cli"
)

// sample is the image that the quick start names.
const sample = "registry.example.com/my-application:1.0.0"

func main() {
	if err := run(context.Background(), os.Stdout, filepath.Join("examples", "quickstart")); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run shows the demo for the example at source on w.
func run(ctx context.Context, w io.Writer, source string) error {
	host, stop, err := serve()
	if err != nil {
		return err
	}
	defer stop()
	dir, err := os.MkdirTemp("", "belay-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	d := demo{w: w, dir: dir}
	if err := d.copyFrom(source, host); err != nil {
		return err
	}
	return errors.Join(
		d.hydrate(ctx, "A first hydrate pins the image, and makes the ConfigMap a version:"),
		d.edit("FOO: bar", "FOO: baz"),
		d.hydrate(ctx, "The ConfigMap was edited (FOO: baz). A second hydrate makes the next version:"),
		d.hydrate(ctx, "A third hydrate changes nothing, and makes no request:"),
	)
}

// serve starts a registry that holds the sample image.
func serve() (host string, stop func(), err error) {
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	host = strings.TrimPrefix(server.URL, "http://")
	img, err := random.Image(64, 1)
	if err != nil {
		return "", nil, err
	}
	tag, err := name.NewTag(strings.Replace(sample, "registry.example.com", host, 1))
	if err != nil {
		return "", nil, err
	}
	return host, server.Close, remote.Write(tag, img)
}

// A demo is one run in a folder.
type demo struct {
	w    io.Writer
	dir  string
	seen map[string]string // files as they were shown last
}

// copyFrom copies the example, with its image in the registry at host.
func (d *demo) copyFrom(source, host string) error {
	entries, err := os.ReadDir(source)
	if err != nil {
		return fmt.Errorf("run it in the project's folder: %w", err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(source, e.Name()))
		if err != nil {
			return err
		}
		data = bytes.ReplaceAll(data, []byte("registry.example.com"), []byte(host))
		if err := os.WriteFile(filepath.Join(d.dir, e.Name()), data, 0o644); err != nil {
			return err
		}
	}
	d.seen, err = d.files()
	return err
}

func (d *demo) files() (map[string]string, error) {
	out := map[string]string{}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(d.dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out[e.Name()] = string(data)
	}
	return out, nil
}

// edit changes the ConfigMap as a person would.
func (d *demo) edit(from, to string) error {
	path := filepath.Join(d.dir, "app.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o644); err != nil {
		return err
	}
	d.seen, err = d.files()
	return err
}

// say prints; nothing can be done about an output that is closed.
func (d *demo) say(format string, a ...any) { _, _ = fmt.Fprintf(d.w, format, a...) }

// hydrate runs belay on the folder, and shows what it changed.
func (d *demo) hydrate(ctx context.Context, title string) error {
	var stderr bytes.Buffer
	env := cli.Env{
		Stdin: strings.NewReader(""), Stdout: d.w, Stderr: &stderr,
		Dial: func(n digest.NetworkConfig) (cli.Client, error) { return registry.New(registry.Options{Network: n}) },
	}
	code := cli.Run(ctx, env, []string{"hydrate", d.dir})
	d.say("\n## %s\n\n$ belay hydrate quickstart\n%s", title, stderr.String())
	if code != 0 {
		return fmt.Errorf("belay hydrate: exit code %d", code)
	}
	now, err := d.files()
	if err != nil {
		return err
	}
	for _, name := range []string{"app.yaml", "belay.lock.yaml"} {
		if now[name] != d.seen[name] {
			d.say("\n%s", diff.Diff("a/"+name, []byte(d.seen[name]), "b/"+name, []byte(now[name])))
		}
	}
	d.seen = now
	return nil
}
