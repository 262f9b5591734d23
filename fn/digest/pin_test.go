package digest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// fixed resolves tags to the hash of their names, and keeps what it was asked.
type fixed struct {
	mu    sync.Mutex
	asked []string
	err   error
}

func (f *fixed) Resolve(_ context.Context, ref name.Reference) (Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, ref.Name())
	if f.err != nil {
		return Image{}, f.err
	}
	if strings.HasSuffix(ref.Context().RepositoryStr(), "gone") {
		return Image{}, &Error{Class: NotFound, Err: errors.New("no such image")}
	}
	h, err := v1.NewHash(digestOf(ref.Name()))
	if d, ok := ref.(name.Digest); ok {
		h, err = v1.NewHash(d.DigestStr())
	}
	return Image{Digest: h}, err
}

func (f *fixed) Platforms(context.Context, name.Digest) ([]string, error) { return nil, nil }

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// pod gives a Pod with these images, written as they stand.
func pod(images ...string) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n")
	for i, image := range images {
		fmt.Fprintf(&b, "  - name: c%d\n    image: %s\n", i, image)
	}
	return b.String()
}

// pin runs Pin with the defaults, and gives the images that come out.
func pin(t *testing.T, cfg Config, l *lock.Lock, r Resolver, text string) (*manifest.List, Stats, []string) {
	t.Helper()
	list, err := manifest.ReadFiles([]manifest.Input{{Path: "in.yaml", Data: []byte(text), Stream: true}})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Mode == "" {
		cfg.Mode = "missing"
	}
	stats := Pin(t.Context(), list, cfg, map[string]*lock.Lock{"": l}, Options{Resolver: r})
	var images []string
	for _, o := range list.Objects {
		for _, f := range cfg.table().Images(o) {
			images = append(images, f.Text())
		}
	}
	return list, stats, images
}

func TestPinSpellings(t *testing.T) {
	spellings := []string{"nginx:1", "library/nginx:1", "docker.io/nginx:1", "docker.io/library/nginx:1", "index.docker.io/library/nginx:1"}
	r := &fixed{}
	_, stats, got := pin(t, Config{Jobs: 16}, &lock.Lock{}, r, pod(spellings...))
	want := make([]string, len(spellings))
	for i, s := range spellings {
		want[i] = s + "@" + digestOf("index.docker.io/library/nginx:1")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got)\n%s", diff)
	}
	if len(r.asked) != 1 || stats.Unique != 1 || stats.Images != 5 || len(stats.Pins) != 5 {
		t.Errorf("asked %q, stats %+v", r.asked, stats)
	}
}

func TestPinReferences(t *testing.T) {
	const hash = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	tests := map[string]struct {
		image string
		want  string // what is asked for; "" for nothing
		class string // of the error; "" for none
		note  string // part of the note; "" for none
	}{
		"tag":                      {image: "nginx:1.27", want: "index.docker.io/library/nginx:1.27"},
		"no tag":                   {image: "nginx", want: "index.docker.io/library/nginx:latest"},
		"port, no tag":             {image: "host:5000/a/b", want: "host:5000/a/b:latest"},
		"port and tag":             {image: "host:5000/a/b:1", want: "host:5000/a/b:1"},
		"IPv6":                     {image: `"[::1]:5000/a:1"`, want: "[::1]:5000/a:1"},
		"localhost":                {image: "localhost/a:1", want: "localhost/a:1"},
		"upper case host and tag":  {image: "Registry.example.com/a:V1", want: "Registry.example.com/a:V1"},
		"tag of 64 hex digits":     {image: "a/b:" + strings.Repeat("a", 64), want: "index.docker.io/a/b:" + strings.Repeat("a", 64)},
		"tag like a digest":        {image: "a/b:sha256-" + strings.Repeat("a", 64) + ".sig", want: "index.docker.io/a/b:sha256-" + strings.Repeat("a", 64) + ".sig"},
		"pinned":                   {image: "nginx" + hash},
		"pinned with tag":          {image: "nginx:1" + hash},
		"pinned with sha512":       {image: "nginx@sha512:" + strings.Repeat("a", 128)},
		"empty digest":             {image: `"nginx:1@sha256:"`, class: "malformed"},
		"short digest":             {image: "nginx@sha256:12", class: "malformed"},
		"bad hex":                  {image: "nginx@sha256:" + strings.Repeat("x", 64), class: "malformed"},
		"two digests":              {image: "nginx" + hash + hash, class: "malformed"},
		"upper case repository":    {image: "Team/App:1", class: "malformed"},
		"long tag":                 {image: "a:" + strings.Repeat("a", 129), class: "malformed"},
		"bazel label":              {image: "//cmd:image", class: "malformed"},
		"double slash":             {image: "example.com/a//b:1", class: "malformed"},
		"number":                   {image: "123", class: "malformed"},
		"bool":                     {image: "true", class: "malformed"},
		"white space":              {image: `" nginx:1"`, class: "malformed"},
		"line break":               {image: `"nginx:1\n"`, class: "malformed"},
		"empty":                    {image: `""`, note: "no image is given"},
		"null":                     {image: "", note: "no image is given"},
		"auto":                     {image: "auto", note: "filled in by an injector"},
		"variable":                 {image: "$(IMAGE):1", note: "placeholder"},
		"shell variable":           {image: "nginx:${TAG}", note: "placeholder"},
		"template":                 {image: "'nginx:{{ .tag }}'", note: "placeholder"},
		"braces":                   {image: "'{IMAGE}'", note: "placeholder"},
		"angle brackets":           {image: "<your image>", note: "placeholder"},
		"ko":                       {image: "ko://example.com/cmd", note: "built by ko"},
		"kind":                     {image: "kind.local/a:1", note: "this machine alone"},
		"never pulled":             {image: "a:1\n    imagePullPolicy: Never", note: "never pulled"},
		"skipped":                  {image: "registry:5000/team/x/y:1", note: "digests.skip"},
		"not quite skipped":        {image: "registry:5000/teams/x:1", want: "registry:5000/teams/x:1"},
		"skipped on Docker Hub":    {image: "docker.io/library/private", note: "digests.skip"},
		"not skipped on Quay":      {image: "quay.io/library/private", want: "quay.io/library/private:latest"},
		"skipped with docker.io":   {image: "traefik:3", note: "digests.skip"},
		"wildcard for one segment": {image: "gcr.io/foo/bar:1", note: "digests.skip"},
		"not for two":              {image: "gcr.io/foo/bar/baz:1", want: "gcr.io/foo/bar/baz:1"},
	}
	cfg := Config{Skip: []string{"registry:5000/team/**", "private", "gcr.io/foo/*", "docker.io/traefik"}}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			r := &fixed{}
			list, _, got := pin(t, cfg, &lock.Lock{}, r, pod(tt.image))
			if asked := strings.Join(r.asked, " "); asked != tt.want {
				t.Errorf("asked %q, want %q", asked, tt.want)
			}
			if tt.want != "" && !strings.HasSuffix(got[0], "@"+digestOf(tt.want)) {
				t.Errorf("image is %q", got[0])
			}
			checkResults(t, list, tt.class, tt.note)
		})
	}
}

// checkResults wants an error of a class, or a note, or neither.
func checkResults(t *testing.T, list *manifest.List, class, note string) {
	t.Helper()
	var gotClass, gotNote string
	for _, r := range list.Results {
		switch r.Severity {
		case manifest.Error:
			gotClass = r.Tags["class"]
		case manifest.Info:
			gotNote = r.Message
		case manifest.Warning:
		}
	}
	if gotClass != class {
		t.Errorf("error is of class %q, want %q: %v", gotClass, class, list.Findings(manifest.Error))
	}
	if (note == "") != (gotNote == "") || !strings.Contains(gotNote, note) {
		t.Errorf("note is %q, want %q", gotNote, note)
	}
}

func TestPinLock(t *testing.T) {
	l := &lock.Lock{Images: map[string]string{
		"index.docker.io/library/nginx:1":      digestOf("locked"),
		"index.docker.io/library/old:1":        digestOf("old"),
		"index.docker.io/library/tagless:v2":   digestOf("tagless"),
		"index.docker.io/library/broken:1":     "sha256:12",
		"index.docker.io/library/pinned:1":     digestOf("pinned"),
		"index.docker.io/library/elsewhere:v2": digestOf("other"),
	}}
	r := &fixed{}
	list, stats, got := pin(t, Config{}, l, r, pod("nginx:1", "redis:7", "tagless@"+digestOf("tagless"), "pinned:1@"+digestOf("pinned"), "elsewhere@"+digestOf("x"), "broken:1"))
	if got[0] != "nginx:1@"+digestOf("locked") || stats.FromLock != 1 || strings.Join(r.asked, " ") != "index.docker.io/library/redis:7" {
		t.Errorf("images %q, asked %q, stats %+v", got, r.asked, stats)
	}
	want := map[string]string{
		"index.docker.io/library/nginx:1":    digestOf("locked"),
		"index.docker.io/library/redis:7":    digestOf("index.docker.io/library/redis:7"),
		"index.docker.io/library/tagless:v2": digestOf("tagless"),
		"index.docker.io/library/pinned:1":   digestOf("pinned"),
		"index.docker.io/library/broken:1":   "sha256:12",
	}
	if diff := cmp.Diff(want, l.Images); diff != "" {
		t.Errorf("lock (-want +got)\n%s", diff)
	}
	checkResults(t, list, "malformed", "")
}

func TestPinModes(t *testing.T) {
	for _, tt := range []struct {
		mode   string
		asked  int
		errors int
	}{{"missing", 1, 0}, {"locked", 0, 1}, {"off", 0, 0}} {
		r := &fixed{}
		list, _, _ := pin(t, Config{Mode: tt.mode}, &lock.Lock{}, r, pod("nginx:1"))
		if got := len(list.Findings(manifest.Error)); len(r.asked) != tt.asked || got != tt.errors {
			t.Errorf("%s: asked %d times, %d errors; want %d and %d", tt.mode, len(r.asked), got, tt.asked, tt.errors)
		}
	}
}

// TestPinFailures wants every failing field reported, in the order of the
// text, also where the failures come from different phases.
func TestPinFailures(t *testing.T) {
	r := &fixed{err: &Error{Class: RateLimit, Hint: "wait", Err: errors.New("too many")}}
	list, _, _ := pin(t, Config{}, &lock.Lock{}, r, pod("b:1", "BAD/x", "a:1", "b:1"))
	want := []string{
		"pinning images: Pod web: spec.containers[0].image: b:1: too many (wait)",
		"pinning images: Pod web: spec.containers[1].image: BAD/x: is not the name of an image (a repository is written in lower case)",
		"pinning images: Pod web: spec.containers[2].image: a:1: too many (wait)",
		"pinning images: Pod web: spec.containers[3].image: b:1: too many (wait)",
	}
	if diff := cmp.Diff(want, list.Findings(manifest.Error)); diff != "" {
		t.Errorf("errors (-want +got)\n%s", diff)
	}
	if line := list.Results[1].Line; line != 9 {
		t.Errorf("line is %d, want 9", line)
	}
	if len(r.asked) != 2 {
		t.Errorf("asked %q", r.asked)
	}
}

func TestPinCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list, err := manifest.ReadFiles([]manifest.Input{{Data: []byte(pod("a:1"))}})
	if err != nil {
		t.Fatal(err)
	}
	r := &fixed{}
	Pin(ctx, list, Config{Mode: "missing"}, map[string]*lock.Lock{"": {}}, Options{Resolver: r})
	if len(r.asked) != 0 || !list.Failed() {
		t.Errorf("asked %q after it was cancelled", r.asked)
	}
}

func TestValidate(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"nginx": true, "a/b": true, "**": true, "*.example.com/**": true, "registry:5000/a": true, "localhost/a/*": true,
		"docker.io/nginx": true, "*": true, "registry.example.com": false, "localhost": true,
		"": false, " a": false, "a:1": false, "a/b:1": false, "a@b": false, "a//b": false, "a/[": false,
	} {
		if err := (Config{Skip: []string{pattern}}).Validate(); (err == nil) != ok {
			t.Errorf("%q: error %v, want ok %t", pattern, err, ok)
		}
	}
}

// TestValidateAll wants every part of a configuration to be checked, and every
// error to say where.
func TestValidateAll(t *testing.T) {
	tests := map[string]struct {
		cfg  Config
		want []string // parts of the lines of the error
	}{
		"good": {Config{
			Platforms: []string{"linux/amd64", "linux/arm/v7"},
			Rules:     []Rule{{Images: []string{"a/**"}, Tags: []string{"v*"}, Labels: "a=b,c in (d, e),!f", Mode: "off"}},
			Fields:    []Field{{Path: "spec/image"}, {Path: "/metadata/annotations/a.b\\/c"}, {Path: "spec/values/image", Parts: &Parts{Repository: "repo", Tag: "tag"}}},
			Env:       []string{"RELATED_IMAGE_*"},
			Args:      []string{"--a-image=", "-b"},
			Network: NetworkConfig{Allow: []string{"a.example.com:5000", "*.b.example.com", "169.254.1.1"}, Registries: []Registry{
				{Host: "docker.io", Mirror: "harbor.example.com/hub", ResolveAt: "compare"}, {Host: "a.example.com:5000", CA: "x", Cert: "y", Key: "z"}, {Host: "b.example.com", PlainHTTP: true},
			}},
		}, nil},
		"platforms": {Config{Platforms: []string{"linux", "a/b/c/d", "linux/"}}, []string{"digests.platforms[0]", "digests.platforms[1]", "digests.platforms[2]"}},
		"rules":     {Config{Rules: []Rule{{Images: []string{"a:1"}, Tags: []string{"["}, Labels: "a b", Platforms: []string{"x"}}, {Images: []string{"a"}}}}, []string{"rules[0].images[0]", "rules[0].tags[0]", `rules[0].labels: "a b": not a label selector`, "rules[0].platforms[0]", "rules[1]: says nothing"}},
		"fields":    {Config{Fields: []Field{{}, {Path: "a//b"}, {Path: "a", Create: true}, {Path: "a", Parts: &Parts{}, Labels: "="}}}, []string{"fields[0].path", "fields[1].path", "fields[2].create", "fields[3].parts", "fields[3].labels"}},
		"env, args": {Config{Env: []string{"[", ""}, Args: []string{"image", "--a=b", "--a b"}}, []string{"digests.env[0]", "digests.env[1]", "digests.args[0]", "digests.args[1]", "digests.args[2]"}},
		"network": {Config{Network: NetworkConfig{Allow: []string{"", "a/b", "["}, Registries: []Registry{
			{}, {Host: "a/b"}, {Host: "docker.io"}, {Host: "index.docker.io"}, {Host: "a.b", Cert: "x"}, {Host: "c.d", PlainHTTP: true, SkipVerify: true}, {Host: "e.f", Mirror: "hub"}, {Host: "g.h", ResolveAt: "compare"},
		}}}, []string{"allow[0]", "allow[1]", "allow[2]", "registries[0].host", "registries[1].host", "registries[3].host: index.docker.io is there twice", "registries[4]: a client certificate", "registries[5]: plainHTTP", "registries[6].mirror", "registries[7].resolveAt"}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			err := tt.cfg.Validate()
			var got []string
			if err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if len(got) != len(tt.want) {
				t.Fatalf("errors %q, want %d", got, len(tt.want))
			}
			for i, w := range tt.want {
				if !strings.Contains(got[i], w) {
					t.Errorf("error %q, want %q", got[i], w)
				}
			}
		})
	}
}

// FuzzReference wants any text, in any mode, to be refused, left alone, or
// pinned with what the author wrote in front; and a second run to change nothing
// and ask nobody.
func FuzzReference(f *testing.F) {
	for i, s := range []string{"nginx", "nginx:1", "a@b", "host:1/x:y@sha256:00", "$(X)", "[::1]:5000/a", "a//b", "ÄÖ:ü", "@", ":", "/", "", "nginx:1@" + digestOf("old"), "nginx@" + digestOf("old")} {
		f.Add(s, "index.docker.io/library/nginx:2", uint8(i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, s, locked string, mode uint8, drop bool) {
		list, err := manifest.ReadFiles([]manifest.Input{{Data: []byte(pod("x"))}})
		if err != nil {
			t.Fatal(err)
		}
		o, images := list.Objects[0], manifest.NewImageTable()
		o.Set(images.Images(o)[0].Node, s)
		cfg := Config{Mode: []string{"missing", "update", "verify", "locked"}[mode%4]}
		if drop {
			cfg.Tag = "drop"
		}
		locks := map[string]*lock.Lock{"": {Images: map[string]string{locked: digestOf("old")}}}
		stats := Pin(t.Context(), list, cfg, locks, Options{Resolver: &fixed{}})
		got := images.Images(o)[0].Text()
		base, _, _ := strings.Cut(s, "@")
		if drop && strings.LastIndex(base, ":") > strings.LastIndex(base, "/") {
			base = base[:strings.LastIndex(base, ":")]
		}
		if len(stats.Pins) == 0 && got != s || len(stats.Pins) == 1 && !strings.HasPrefix(got, base) {
			t.Errorf("%q became %q", s, got)
		}
		if _, digest, ok := strings.Cut(got, "@"); got != s && (!ok || !isDigest(digest)) {
			t.Errorf("%q became %q, which has no digest", s, got)
		}
		if list.Failed() || cfg.Mode == "verify" {
			return
		}
		r := &fixed{}
		cfg.Mode = "missing"
		again := Pin(t.Context(), list, cfg, locks, Options{Resolver: r})
		if len(again.Pins)+len(r.asked) != 0 {
			t.Errorf("%q became %q, and then %q; asked %q", s, got, images.Images(o)[0].Text(), r.asked)
		}
	})
}
