package lock

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-krm/belay/fn/manifest"
)

// lockText gives a lock object with this data.
func lockText(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: belay.lock\n  annotations: {config.kubernetes.io/local-config: \"true\"}\ndata:\n" + data
}

func read(t *testing.T, text string) *manifest.List {
	t.Helper()
	list, err := manifest.ReadFiles([]manifest.Input{{Path: File, Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestRoundTrip wants a lock that is written to be read as what it was, and to
// stay as it is when it is written again.
func TestRoundTrip(t *testing.T) {
	l := &Lock{Images: map[string]string{"index.docker.io/library/nginx:1": "sha256:a", "host:5000/x:2": "sha256:b"}}
	base := Base{Kind: "ConfigMap", Namespace: "prod", Name: "c"}
	other := Base{Kind: "Rollout.argoproj.io", Name: "r"}
	for _, u := range []struct {
		base    Base
		number  int
		content string
	}{{base, 0, "sha256:0"}, {base, 1, "sha256:1"}, {base, 0, "sha256:0"}, {other, 999, "sha256:9"}, {other, 1000, "sha256:10"}} {
		if err := l.Use(u.base, u.number, u.content, u.base.Name+"-"+Label(u.number)); err != nil {
			t.Fatal(err)
		}
	}
	list := &manifest.List{}
	if err := l.Write(list, "", File); err != nil {
		t.Fatal(err)
	}
	text, err := list.Sources[0].Bytes()
	if err != nil {
		t.Fatal(err)
	}
	const want = `  images: |
    host:5000/x:2: sha256:b
    index.docker.io/library/nginx:1: sha256:a
  versions: |
    ConfigMap/prod/c: {last: v001}
    ConfigMap/prod/c@v000: {content: sha256:0, name: c-v000, used: 3}
    ConfigMap/prod/c@v001: {content: sha256:1, name: c-v001, used: 2}
    Rollout.argoproj.io/r: {last: v1000}
    Rollout.argoproj.io/r@v1000: {content: sha256:10, name: r-v1000, used: 2}
    Rollout.argoproj.io/r@v999: {content: sha256:9, name: r-v999, used: 1}
`
	if !strings.HasSuffix(string(text), want) {
		t.Errorf("written:\n%s\nwant at the end:\n%s", text, want)
	}
	again := read(t, string(text))
	got, err := Find(again, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.Images, got.Images); diff != "" {
		t.Errorf("images (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(l.Versions, got.Versions); diff != "" {
		t.Errorf("versions (-want +got)\n%s", diff)
	}
	if err := got.Write(again, "", File); err != nil || again.Sources[0].Changed() {
		t.Errorf("writing it again changed it: %v", err)
	}
}

func TestUse(t *testing.T) {
	b := Base{Kind: "ConfigMap", Name: "c"}
	l := &Lock{}
	use := func(number int, content string) error { return l.Use(b, number, content, "c-"+Label(number)) }
	for _, err := range []error{use(3, "A"), use(5, "B")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := use(3, "C"); err == nil || !strings.Contains(err.Error(), "v003 is known with another content") {
		t.Errorf("a number was given twice: %v", err)
	}
	h := l.Versions[b]
	if v, ok := h.ByContent("A"); !ok || v.Number != 3 || h.Last != 5 {
		t.Errorf("history is %+v", h)
	}
	if _, ok := h.ByNumber(4); ok {
		t.Error("v004 was never given")
	}
	var none *History
	if _, ok := none.ByContent("A"); ok {
		t.Error("no history knows a content")
	}
}

// TestFindErrors wants a lock that cannot be read to be an error, never an
// empty lock.
func TestFindErrors(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"images":        {lockText("  images: \"a: [\"\n"), "data.images: yaml"},
		"versions":      {lockText("  versions: \"a: [\"\n"), "data.versions: yaml"},
		"twice":         {lockText("  versions: |\n    ConfigMap/c@v000: {content: a}\n    ConfigMap/c@v000: {content: b}\n"), "ConfigMap/c@v000 is there twice, as a and as b"},
		"image twice":   {lockText("  images: |\n    a/b:1: sha256:a\n    a/b:1: sha256:b\n"), "a/b:1 is there twice, as sha256:a and as sha256:b"},
		"no mapping":    {lockText("  images: |\n    - a\n"), "data.images: is not a mapping"},
		"key":           {lockText("  versions: |\n    nonsense: {last: v000}\n"), "nonsense: is not Kind/namespace/name"},
		"version":       {lockText("  versions: |\n    ConfigMap/c@v1: {content: a}\n"), `"v1" is not a version such as v000`},
		"two locks":     {lockText("  images: \"\"\n") + "---\n" + lockText("  images: \"\"\n"), "two objects named belay.lock"},
		"no high water": {lockText("  versions: |\n    ConfigMap/c: {}\n"), `"" is not a version`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Find(read(t, tt.text), ""); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestLabel(t *testing.T) {
	for label, want := range map[string]int{"v000": 0, "v042": 42, "v999": 999, "v1000": 1000} {
		if got, ok := ParseLabel(label); !ok || got != want || Label(want) != label {
			t.Errorf("%s is %d, %t", label, got, ok)
		}
	}
	for _, label := range []string{"", "v", "v1", "v01", "v0001", "000", "v-01", "vabc", "v000x", "7f9d2k8c9m"} {
		if got, ok := ParseLabel(label); ok {
			t.Errorf("%q is %d", label, got)
		}
	}
}
