package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		// belay asks a registry that is not there: its digests are the hashes
		// of the references, so that goldens do not depend on a port.
		"belay": func() { os.Exit(runFixed()) },
	})
}

// runFixed runs belay with a resolver that gives fixed answers, and writes the
// number of requests to the file that REQUESTS names.
func runFixed() int {
	f := &fixedClient{}
	code := cli.Run(context.Background(), cli.Env{
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: os.Getenv("TERMINAL") != "",
		Dial:     func(digest.NetworkConfig) (cli.Client, error) { return f, nil },
	}, os.Args[1:])
	if path := os.Getenv("REQUESTS"); path != "" {
		if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n", f.requests.Load()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
	}
	return code
}

// A fixedClient resolves every tag to the hash of its name, but for those that
// speak of a failure. A tag that the variable MOVED holds has another digest,
// and a digest of a repository called gone is not there.
type fixedClient struct{ requests atomic.Int64 }

// Resolve implements digest.Resolver.
func (c *fixedClient) Resolve(_ context.Context, ref name.Reference) (digest.Image, error) {
	c.requests.Add(1)
	text := ref.Name()
	repo := ref.Context().RepositoryStr()
	image := digest.Image{MediaType: types.OCIImageIndex}
	switch {
	case strings.HasPrefix(ref.Identifier(), "missing"), strings.HasSuffix(repo, "gone"):
		return image, &digest.Error{Class: digest.NotFound, Hint: "check the tag, or set digests.mode: locked", Err: errors.New("no such tag")}
	case strings.HasPrefix(ref.Identifier(), "private"):
		return image, &digest.Error{Class: digest.Auth, Hint: "docker login " + ref.Context().RegistryStr(), Err: errors.New("wants credentials, or others")}
	case strings.HasSuffix(repo, "schema1"):
		image.MediaType = types.DockerManifestSchema1Signed
	case strings.HasSuffix(repo, "single"):
		image.MediaType = types.OCIManifestSchema1
	case os.Getenv("MOVED") == text:
		text += " moved"
	}
	if strings.HasPrefix(ref.Identifier(), "sha256:") {
		var err error
		image.Digest, err = v1.NewHash(ref.Identifier())
		return image, err
	}
	sum := sha256.Sum256([]byte(text))
	image.Digest = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
	return image, nil
}

// Platforms implements digest.Resolver.
func (c *fixedClient) Platforms(_ context.Context, ref name.Digest) ([]string, error) {
	c.requests.Add(1)
	if strings.HasSuffix(ref.Context().RepositoryStr(), "single") {
		return []string{"linux/amd64"}, nil
	}
	return []string{"linux/amd64", "linux/arm64/v8"}, nil
}

// Requests implements cli.Client.
func (c *fixedClient) Requests() int { return int(c.requests.Load()) }

// Warnings implements cli.Client.
func (c *fixedClient) Warnings() []string { return nil }

// TestGolden runs the scripts of testdata/golden, one for each behaviour. With
// -update it writes what the runs gave into them.
//
// The command "twice CMD ARGS" runs a command that must succeed, runs it again
// on what it wrote, and wants the same bytes and no request.
func TestGolden(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "golden"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"function": runFunctionTwice,
			"hydrate":  runHydrateTwice,
		},
	})
}

// runFunctionTwice is the command "function IN OUT": it sends the ResourceList
// IN to belay, compares the answer with OUT, and sends the answer again.
// With ! it wants exit code 1, and the items of the answer as they were.
func runFunctionTwice(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: function IN")
	}
	in := ts.ReadFile(args[0])
	first, failed := runOn(ts, in)
	if failed != neg {
		ts.Fatalf("function: failed is %t, want %t", failed, neg)
	}
	ts.Check(os.WriteFile(ts.MkAbs("got.yaml"), []byte(first), 0o644))
	if neg {
		if kept := withoutResults(first); kept != withoutResults(in) {
			ts.Fatalf("function: it failed, and changed the items:\n%s", kept)
		}
		return
	}
	second, failed := runOn(ts, withoutResults(first))
	if failed || withoutResults(second) != withoutResults(first) {
		ts.Fatalf("function: a second run changes\n%s\nto\n%s", first, second)
	}
	if n := strings.TrimSpace(ts.ReadFile("requests")); n != "0" {
		ts.Fatalf("function: a second run made %s requests", n)
	}
}

// runOn sends a text to belay's stdin, and gives stdout and whether it failed.
func runOn(ts *testscript.TestScript, in string) (string, bool) {
	ts.Check(os.WriteFile(ts.MkAbs("stdin.yaml"), []byte(in), 0o644))
	ts.Setenv("REQUESTS", ts.MkAbs("requests"))
	err := ts.Exec("sh", "-c", `belay < stdin.yaml > stdout.yaml 2>> stderr.txt`)
	return ts.ReadFile("stdout.yaml"), err != nil
}

// withoutResults cuts off the results, which belay writes last.
func withoutResults(s string) string {
	s, _, _ = strings.Cut(s, "\nresults:\n")
	return strings.TrimSuffix(s, "\n") + "\n"
}

// runHydrateTwice is the command "hydrate ARGS": it runs belay hydrate, then
// again, and wants the files that the first run left and no request.
func runHydrateTwice(ts *testscript.TestScript, neg bool, args []string) {
	ts.Setenv("REQUESTS", ts.MkAbs("requests"))
	before := tree(ts)
	err := ts.Exec("belay", append([]string{"hydrate"}, args...)...)
	if (err != nil) != neg {
		ts.Fatalf("hydrate: error is %v, want failure: %t", err, neg)
	}
	first := tree(ts)
	if neg {
		if first != before {
			ts.Fatalf("hydrate: it failed, and changed files:\n%s", first)
		}
		return
	}
	requests := strings.TrimSpace(ts.ReadFile("requests"))
	ts.Check(ts.Exec("belay", append([]string{"hydrate"}, args...)...))
	if second := tree(ts); second != first {
		ts.Fatalf("hydrate: a second run changes\n%s\nto\n%s", first, second)
	}
	if n := strings.TrimSpace(ts.ReadFile("requests")); n != "0" {
		ts.Fatalf("hydrate: a second run made %s requests", n)
	}
	ts.Check(os.WriteFile(ts.MkAbs("requests"), []byte(requests+"\n"), 0o644))
}

// tree gives the manifests below the work folder as one text.
func tree(ts *testscript.TestScript) string {
	var b strings.Builder
	ts.Check(filepath.WalkDir(ts.MkAbs("."), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".json" {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "== %s\n%s", path, data)
		return err
	}))
	return b.String()
}
