package digest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// lines gives the results but for notes, shortened: severity, class, message.
func lines(list *manifest.List) []string {
	var out []string
	for _, r := range list.Results {
		if r.Severity != manifest.Info {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s: %s", r.Severity, r.Tags["class"], short(r.Message))))
		}
	}
	return out
}

// short gives digests in few letters: the name that they were made of, in
// brackets.
func short(s string) string {
	for _, of := range []string{"old", "index.docker.io/library/nginx:1", "index.docker.io/library/nginx:2", "index.docker.io/library/nginx:latest"} {
		s = strings.ReplaceAll(s, digestOf(of), "<"+strings.TrimPrefix(of, "index.docker.io/library/")+">")
	}
	return s
}

// TestModes goes through what can be written of a tag and a digest, and what
// the lock can hold, in each mode.
func TestModes(t *testing.T) {
	at := func(of string) string { return digestOf("index.docker.io/library/" + of) }
	type locked = map[string]string
	l := func(pairs ...string) locked {
		m := locked{}
		for i := 0; i < len(pairs); i += 2 {
			m["index.docker.io/library/"+pairs[i]] = pairs[i+1]
		}
		return m
	}
	const moved = "warning moved: nginx:1@<old>: the tag 1 has moved: <old> → <nginx:1>"
	tests := []struct {
		title, mode, tag string
		in               string
		lock             locked
		want             string // image that comes out
		wantLock         locked
		asked            int
		lines            []string
	}{
		{"a tag", "missing", "", "nginx:1", l(), "nginx:1@<nginx:1>", l("nginx:1", at("nginx:1")), 1, nil},
		{"a tag stays with the lock", "missing", "", "nginx:1", l("nginx:1", digestOf("old")), "nginx:1@<old>", l("nginx:1", digestOf("old")), 0, nil},
		{"pinned", "missing", "", "nginx:1@" + digestOf("old"), l(), "nginx:1@<old>", l(), 0, nil},
		{"pinned to another digest than the lock's", "missing", "", "nginx:1@" + digestOf("old"), l("nginx:1", at("nginx:1")), "nginx:1@<old>", l("nginx:1", at("nginx:1")), 0, nil},
		{"tag edited", "missing", "", "nginx:2@" + at("nginx:1"), l("nginx:1", at("nginx:1")), "nginx:2@<nginx:2>", l("nginx:2", at("nginx:2")), 1, []string{"warning : nginx:2@<nginx:1>: had the digest of another tag, and gets that of 2: <nginx:1> → <nginx:2>"}},
		{"tag edited, lock knows", "missing", "", "nginx:2@" + at("nginx:1"), l("nginx:1", at("nginx:1"), "nginx:2", digestOf("old")), "nginx:2@<old>", l("nginx:2", digestOf("old")), 0, []string{"warning : nginx:2@<nginx:1>: had the digest of another tag, and gets that of 2: <nginx:1> → <old>"}},
		{"tag edited, same content", "missing", "", "nginx:2@" + at("nginx:2"), l("nginx:1", at("nginx:2")), "nginx:2@<nginx:2>", l("nginx:2", at("nginx:2")), 1, nil},

		{"an alias of what is pinned now", "missing", "", "nginx:1\n  - image: nginx:2@" + at("nginx:1"), l(), "nginx:1@<nginx:1>", l("nginx:1", at("nginx:1"), "nginx:2", at("nginx:1")), 1, nil},

		{"locked", "locked", "", "nginx:1", l("nginx:1", digestOf("old")), "nginx:1@<old>", l("nginx:1", digestOf("old")), 0, nil},
		{"locked, unknown", "locked", "", "nginx:1", l(), "nginx:1", l(), 0, []string{"error not in the lock: nginx:1: is not pinned, and not in the lock (run belay hydrate, and commit the lock)"}},
		{"locked, tag edited", "locked", "", "nginx:2@" + at("nginx:1"), l("nginx:1", at("nginx:1")), "nginx:2@<nginx:1>", l(), 0, []string{"error not in the lock: nginx:2@<nginx:1>: has the digest of another tag, and its own is not in the lock (run belay hydrate, and commit the lock)"}},

		{"update", "update", "", "nginx:1", l("nginx:1", digestOf("old")), "nginx:1@<nginx:1>", l("nginx:1", at("nginx:1")), 1, []string{"warning moved: nginx:1: the tag 1 has moved: <old> → <nginx:1>"}},
		{"update pinned", "update", "", "nginx:1@" + digestOf("old"), l(), "nginx:1@<nginx:1>", l("nginx:1", at("nginx:1")), 1, []string{moved}},
		{"update what is up to date", "update", "", "nginx:1@" + at("nginx:1"), l(), "nginx:1@<nginx:1>", l("nginx:1", at("nginx:1")), 1, nil},
		{"update without tag", "update", "", "nginx@" + digestOf("old"), l(), "nginx@<old>", l(), 0, nil},
		{"update without tag, lock knows it", "update", "", "nginx@" + digestOf("old"), l("nginx:2", digestOf("old")), "nginx@<nginx:2>", l("nginx:2", at("nginx:2")), 1, []string{"warning moved: nginx@<old>: the tag 2 has moved: <old> → <nginx:2>"}},
		{"update without tag, lock knows two", "update", "", "nginx@" + digestOf("old"), l("nginx:1", digestOf("old"), "nginx:2", digestOf("old")), "nginx@<old>", l("nginx:1", digestOf("old"), "nginx:2", digestOf("old")), 0, nil},

		{"verify", "verify", "", "nginx:1@" + at("nginx:1"), l(), "nginx:1@<nginx:1>", l(), 1, nil},
		{"verify moved", "verify", "", "nginx:1@" + digestOf("old"), l(), "nginx:1@<old>", l(), 1, []string{"error moved: nginx:1@<old>: the tag 1 has moved from <old> to <nginx:1> (run belay hydrate with digests.mode: update, and review what changed)"}},
		{"verify the lock", "verify", "", "nginx:1", l("nginx:1", digestOf("old")), "nginx:1", l("nginx:1", digestOf("old")), 1, []string{"error moved: nginx:1: the tag 1 has moved from <old> to <nginx:1> (run belay hydrate with digests.mode: update, and review what changed)"}},
		{"verify unpinned", "verify", "", "nginx:1", l(), "nginx:1", l(), 0, []string{"error not pinned: nginx:1: is not pinned (run belay hydrate with digests.mode: missing)"}},
		{"verify without tag", "verify", "", "nginx@" + digestOf("old"), l(), "nginx@<old>", l(), 1, nil},
		{"verify without tag, gone", "verify", "", "gone@" + digestOf("old"), l(), "gone@<old>", l(), 1, []string{"error not found: gone@<old>: no such image"}},

		{"drop", "missing", "drop", "nginx:1", l(), "nginx@<nginx:1>", l("nginx:1", at("nginx:1")), 1, nil},
		{"drop from what is pinned", "missing", "drop", "nginx:1@" + digestOf("old"), l("nginx:1", digestOf("old")), "nginx@<old>", l("nginx:1", digestOf("old")), 0, nil},
		{"drop what nothing remembers", "missing", "drop", "nginx:1@" + digestOf("old"), l(), "nginx:1@<old>", l(), 0, nil},
		{"drop with update", "update", "drop", "nginx:1@" + digestOf("old"), l(), "nginx@<nginx:1>", l("nginx:1", at("nginx:1")), 1, []string{moved}},
		{"drop with a port", "missing", "drop", "localhost:5000/nginx", l(), "localhost:5000/nginx@" + digestOf("localhost:5000/nginx:latest"), locked{"localhost:5000/nginx:latest": digestOf("localhost:5000/nginx:latest")}, 1, []string{"warning : localhost:5000/nginx: has no tag, so that the digest is of whatever is newest now (name a release)"}},
		{"off", "off", "", "nginx:1", l("nginx:1", digestOf("old")), "nginx:1", l("nginx:1", digestOf("old")), 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) {
			r := &fixed{}
			lk := &lock.Lock{Images: tt.lock}
			list, _, got := pin(t, Config{Mode: tt.mode, Tag: tt.tag}, lk, r, pod(tt.in))
			if short(got[0]) != short(tt.want) || len(r.asked) != tt.asked {
				t.Errorf("image is %s, want %s; asked %q", short(got[0]), tt.want, r.asked)
			}
			if diff := cmp.Diff(tt.lines, lines(list)); diff != "" {
				t.Errorf("results (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantLock, lk.Images); diff != "" {
				t.Errorf("lock (-want +got)\n%s", diff)
			}
			if tt.mode == "update" || tt.mode == "verify" || list.Failed() {
				return
			}
			again := &fixed{}
			_, stats, second := pin(t, Config{Mode: tt.mode, Tag: tt.tag}, lk, again, pod(got[0]))
			if len(again.asked)+len(stats.Pins) != 0 || second[0] != got[0] {
				t.Errorf("a second run asked %q and gave %s", again.asked, second[0])
			}
		})
	}
}

// TestOffline wants a run without a resolver to keep what is pinned in every
// mode.
func TestOffline(t *testing.T) {
	for _, mode := range []string{"missing", "update", "verify", "locked"} {
		l := &lock.Lock{Images: map[string]string{"index.docker.io/library/a:1": digestOf("a")}}
		list, _, got := pin(t, Config{Mode: mode}, l, nil, pod("a:1", "b:1@"+digestOf("b")))
		if got[0] != "a:1@"+digestOf("a") || len(list.Results) != 0 {
			t.Errorf("%s: %q, %v", mode, got, list.Results)
		}
	}
}

// TestRules wants the first rule that matches to count.
func TestRules(t *testing.T) {
	old := "@" + digestOf("old")
	in := `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web, tier: front}}
spec:
  containers:
  - image: nginx:main` + old + `
  - image: quay.io/team/app:v1
  - image: quay.io/team/app:main` + old + `
  - image: quay.io/other/app:v1
  - image: redis:7
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: job}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: "redis:7"}]}}}}}
`
	cfg := Config{Rules: []Rule{
		{Tags: []string{"main", "edge"}, Mode: "update"},
		{Images: []string{"quay.io/team/**"}, Mode: "locked"},
		{Images: []string{"quay.io/**"}, Tag: "drop"},
		{Labels: "app=web,tier in (front, middle)", Mode: "off"},
		{Kinds: []string{"CronJob"}, Mode: "missing"},
	}}
	list, _, got := pin(t, cfg, &lock.Lock{}, &fixed{}, in)
	want := []string{
		"nginx:main@" + digestOf("index.docker.io/library/nginx:main"),
		"quay.io/team/app:v1",
		"quay.io/team/app:main@" + digestOf("quay.io/team/app:main"),
		"quay.io/other/app@" + digestOf("quay.io/other/app:v1"),
		"redis:7",
		"redis:7@" + digestOf("index.docker.io/library/redis:7"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got)\n%s", diff)
	}
	if errs := list.Findings(manifest.Error); len(errs) != 1 || !strings.Contains(errs[0], "quay.io/team/app:v1: is not pinned, and not in the lock") {
		t.Errorf("errors %q", errs)
	}
}

// TestStrictModes wants no rule to open a connection in mode locked, or to change
// an image in mode verify.
func TestStrictModes(t *testing.T) {
	old := "nginx:main@" + digestOf("old")
	for mode, asked := range map[string]int{"locked": 0, "verify": 1} {
		r := &fixed{}
		_, _, got := pin(t, Config{Mode: mode, Rules: []Rule{{Tags: []string{"main"}, Mode: "update"}}}, &lock.Lock{}, r, pod(old))
		if got[0] != old || len(r.asked) != asked {
			t.Errorf("%s: %s, asked %q", mode, short(got[0]), r.asked)
		}
	}
}

// TestUpdateIsForAll wants an image that one rule updates to be updated for all
// who follow its tag, in one run, with one question.
func TestUpdateIsForAll(t *testing.T) {
	in := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: 'a:1'}]}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: b}\nspec: {template: {spec: {containers: [{image: 'a:1'}]}}}\n"
	for _, held := range []string{"", digestOf("old")} {
		l := &lock.Lock{Images: map[string]string{}}
		if held != "" {
			l.Images["index.docker.io/library/a:1"] = held
		}
		r := &fixed{}
		_, _, got := pin(t, Config{Rules: []Rule{{Kinds: []string{"Job"}, Mode: "update"}}}, l, r, in)
		if got[0] != got[1] || len(r.asked) != 1 {
			t.Errorf("images %q, asked %q", got, r.asked)
		}
	}
}

// TestTagRules wants a rule about tags not to speak of what has none.
func TestTagRules(t *testing.T) {
	r := &fixed{}
	pin(t, Config{Rules: []Rule{{Tags: []string{"latest"}, Mode: "verify"}}}, &lock.Lock{}, r, pod("nginx@"+digestOf("x")))
	if len(r.asked) != 0 {
		t.Errorf("asked %q", r.asked)
	}
}

// TestRowsWithForms wants the tag dropped where an importer refuses both, and a
// package left alone whose registry another program chooses.
func TestRowsWithForms(t *testing.T) {
	_, _, got := pin(t, Config{}, &lock.Lock{}, &fixed{}, `apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: a}
spec: {source: {registry: {url: "docker://quay.io/a/b:1"}}}
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: b}
spec: {package: "upbound/provider-aws:v1"}
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: c}
spec: {package: "xpkg.upbound.io/upbound/provider-aws:v1"}
`)
	want := []string{"quay.io/a/b@" + digestOf("quay.io/a/b:1"), "upbound/provider-aws:v1", "xpkg.upbound.io/upbound/provider-aws:v1@" + digestOf("xpkg.upbound.io/upbound/provider-aws:v1")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got)\n%s", diff)
	}
}

// TestSameImageTwoModes wants what one rule says of an image not to leak into
// another use of it.
func TestSameImageTwoModes(t *testing.T) {
	in := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: 'a:1'}]}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: b}\nspec: {template: {spec: {containers: [{image: 'a:1'}]}}}\n"
	list, _, got := pin(t, Config{Rules: []Rule{{Kinds: []string{"Pod"}, Mode: "locked"}}}, &lock.Lock{}, &fixed{}, in)
	if got[0] != "a:1" || !strings.HasPrefix(got[1], "a:1@") || len(list.Findings(manifest.Error)) != 1 {
		t.Errorf("images %q, %q", got, list.Findings(manifest.Error))
	}
}

// kinds answers with media types and platforms.
type kinds struct {
	fixed
	mediaType types.MediaType
	platforms []string
	err       error
}

func (k *kinds) Resolve(ctx context.Context, ref name.Reference) (Image, error) {
	i, err := k.fixed.Resolve(ctx, ref)
	i.MediaType = k.mediaType
	return i, err
}

func (k *kinds) Platforms(context.Context, name.Digest) ([]string, error) { return k.platforms, k.err }

// TestImageWarnings wants a warning, once, of what is wrong with an image.
func TestImageWarnings(t *testing.T) {
	for title, tt := range map[string]struct {
		r    *kinds
		want []string
	}{
		"index":         {&kinds{mediaType: types.OCIImageIndex, platforms: []string{"linux/amd64", "linux/arm64/v8"}}, nil},
		"single":        {&kinds{mediaType: types.OCIManifestSchema1, platforms: []string{"linux/amd64"}}, []string{"warning : a:1: has no linux/arm64 (it has linux/amd64)", "warning : a:1 is built for a single platform, which nodes of another cannot run"}},
		"schema 1":      {&kinds{mediaType: types.DockerManifestSchema1Signed}, []string{"warning : a:1: is in the old format schema 1, which containerd 2.1 no longer pulls (push it again)"}},
		"not known":     {&kinds{mediaType: types.OCIImageIndex, err: errors.New("boom")}, []string{"warning : a:1: its platforms are not known: boom"}},
		"other variant": {&kinds{mediaType: types.OCIImageIndex, platforms: []string{"linux/amd64", "linux/arm/v7"}}, []string{"warning : a:1: has no linux/arm64 (it has linux/amd64, linux/arm/v7)"}},
	} {
		t.Run(title, func(t *testing.T) {
			list, _, _ := pin(t, Config{Platforms: []string{"linux/amd64", "linux/arm64"}}, &lock.Lock{}, tt.r, pod("a:1", "a:1", "docker.io/library/a:1"))
			if diff := cmp.Diff(tt.want, lines(list)); diff != "" {
				t.Errorf("results (-want +got)\n%s", diff)
			}
		})
	}
}

// A hanging registry never answers; others do at once.
type hanging struct {
	fixed
	host string
}

func (h *hanging) Resolve(ctx context.Context, ref name.Reference) (Image, error) {
	if ref.Context().RegistryStr() == h.host {
		<-ctx.Done()
		return Image{}, ctx.Err()
	}
	return h.fixed.Resolve(ctx, ref)
}

// TestDeadline wants an end after the deadline, an error that names it, and the
// images of other registries asked for meanwhile, also where those of the one
// that hangs take all workers.
func TestDeadline(t *testing.T) {
	r := &hanging{host: "dead.example.com"}
	var images []string
	for i := range 20 {
		images = append(images, fmt.Sprintf("dead.example.com/a%d:1", i))
	}
	cfg := Config{Jobs: 2, Network: NetworkConfig{Deadline: 1}}
	list, _, _ := pin(t, cfg, &lock.Lock{}, r, pod(append(images, "alive:1")...))
	errs := list.Findings(manifest.Error)
	if len(errs) != 20 || !strings.Contains(errs[0], "no answer before the deadline of 1 s (raise digests.network.deadline)") {
		t.Errorf("%d errors, the first %q", len(errs), errs[:1])
	}
	if len(r.asked) != 1 {
		t.Errorf("asked %q", r.asked)
	}
}

// TestProgress wants each answer to be counted.
func TestProgress(t *testing.T) {
	list, err := manifest.ReadFiles([]manifest.Input{{Data: []byte(pod("a:1", "a:1", "b:1", "c:1@"+digestOf("c")))}})
	if err != nil {
		t.Fatal(err)
	}
	var calls, last atomic.Int64
	Pin(t.Context(), list, Config{Mode: "missing"}, map[string]*lock.Lock{"": {}}, Options{Resolver: &fixed{}, Progress: func(done, total int) {
		calls.Add(1)
		last.Store(max(last.Load(), int64(done*100+total)))
	}})
	if calls.Load() != 3 || last.Load() != 202 {
		t.Errorf("%d calls, the last %d", calls.Load(), last.Load())
	}
}
