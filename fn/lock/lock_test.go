package lock

import (
	"fmt"
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
	hashed := Base{Kind: "Secret", Name: "s"}
	l.UseTemplate(Base{Kind: "Deployment.apps", Namespace: "prod", Name: "web"}, Template{Print: "aa", Names: []Base{{Kind: "ConfigMap", Namespace: "prod", Name: "c-v001"}, {Kind: "Secret", Name: "s-0123456789"}}, Pins: []Base{{Kind: "Secret", Name: "s-0123456789"}}}, 3)
	l.UseTemplate(Base{Kind: "Deployment.apps", Namespace: "prod", Name: "web"}, Template{Print: "00"}, 3)
	for _, u := range []struct {
		base           Base
		label, content string
	}{{base, "v000", "sha256:0"}, {base, "v001", "sha256:1"}, {base, "v000", "sha256:0"}, {other, "v999", "sha256:9"}, {other, "v1000", "sha256:10"}, {hashed, "0123456789", "sha256:h"}} {
		if err := l.Use(u.base, u.label, u.content, u.base.Name+"-"+u.label); err != nil {
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
    Secret/s@0123456789: {content: sha256:h, name: s-0123456789, used: 1}
  templates: |
    Deployment.apps/prod/web@00: {names: [], used: 2}
    Deployment.apps/prod/web@aa: {names: [ConfigMap/prod/c-v001, Secret/s-0123456789], pins: [Secret/s-0123456789], used: 1}
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
	if diff := cmp.Diff(l.Templates, got.Templates); diff != "" {
		t.Errorf("templates (-want +got)\n%s", diff)
	}
	if err := got.Write(again, "", File); err != nil || again.Sources[0].Changed() {
		t.Errorf("writing it again changed it: %v", err)
	}
}

func TestUse(t *testing.T) {
	b := Base{Kind: "ConfigMap", Name: "c"}
	l := &Lock{}
	use := func(number int, content string) error { return l.Use(b, Label(number), content, "c-"+Label(number)) }
	for _, err := range []error{use(3, "A"), use(5, "B")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := use(3, "C"); err == nil || !strings.Contains(err.Error(), "v003 is known with another content") {
		t.Errorf("a number was given twice: %v", err)
	}
	h := l.Versions[b]
	if v, ok := h.ByContent("A"); !ok || v.Label != "v003" || h.Last != 5 {
		t.Errorf("history is %+v", h)
	}
	if _, ok := h.ByLabel("v004"); ok {
		t.Error("v004 was never given")
	}
	var none *History
	if _, ok := none.ByContent("A"); ok {
		t.Error("no history knows a content")
	}
}

// TestUseTemplate wants the newest templates to be kept, each once, and a
// workload that names nothing any more to be forgotten.
func TestUseTemplate(t *testing.T) {
	w, v := Base{Kind: "Deployment.apps", Name: "web"}, []Base{{Kind: "ConfigMap", Name: "c-v000"}}
	l := &Lock{}
	prints := func() string {
		var out []string
		for _, t := range l.Templates[w] {
			out = append(out, fmt.Sprintf("%s:%d", t.Print, t.Used))
		}
		return strings.Join(out, " ")
	}
	for _, step := range []struct {
		print string
		names []Base
		most  int
		want  string
	}{
		{"a", nil, 3, ""},
		{"a", v, 3, "a:1"},
		{"a", v, 3, "a:1"},
		{"b", nil, 3, "a:1 b:2"},
		{"a", v, 3, "b:2 a:3"},
		{"c", nil, 3, "b:2 a:3 c:4"},
		{"d", nil, 3, "a:3 c:4 d:5"},
		{"c", nil, 2, ""}, // d and c name nothing
	} {
		if l.UseTemplate(w, Template{Print: step.print, Names: step.names}, step.most); prints() != step.want {
			t.Errorf("after %s: %q, want %q", step.print, prints(), step.want)
		}
	}
	if len(l.Templates) != 0 {
		t.Errorf("templates that name nothing are kept: %s", prints())
	}
}

// TestMergedRecency wants both branches' recency to count: the higher for one
// line, and none of two that became current at once.
func TestMergedRecency(t *testing.T) {
	l, err := Find(read(t, `apiVersion: v1
kind: ConfigMap
metadata:
  name: belay.lock
  annotations: {config.kubernetes.io/local-config: "true"}
data:
  versions: |
    ConfigMap/c@aaaaaaaaaa: {content: A, name: c-aaaaaaaaaa, used: 1}
    ConfigMap/c@aaaaaaaaaa: {content: A, name: c-aaaaaaaaaa, used: 3}
    ConfigMap/c@bbbbbbbbbb: {content: B, name: c-bbbbbbbbbb, used: 3}
  templates: |
    Deployment.apps/w@00: {names: [ConfigMap/c-aaaaaaaaaa], used: 1}
    Deployment.apps/w@00: {names: [ConfigMap/c-aaaaaaaaaa], used: 4}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	b := Base{Kind: "ConfigMap", Name: "c"}
	if diff := cmp.Diff([]string{"aaaaaaaaaa", "bbbbbbbbbb"}, l.Versions[b].Current()); diff != "" {
		t.Errorf("current (-want +got)\n%s", diff)
	}
	if got := l.Templates[Base{Kind: "Deployment.apps", Name: "w"}]; len(got) != 1 || got[0].Used != 4 {
		t.Errorf("templates: %+v", got)
	}
	if err := l.Use(b, "aaaaaaaaaa", "A", "c-aaaaaaaaaa"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"aaaaaaaaaa"}, l.Versions[b].Current()); diff != "" {
		t.Errorf("current after use (-want +got)\n%s", diff)
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
