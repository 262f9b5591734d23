package kustomize

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/manifest"
)

const hash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// fixed resolves every tag but "missing" to one digest.
type fixed struct{}

func (fixed) Resolve(_ context.Context, ref name.Reference) (digest.Image, error) {
	if ref.Identifier() == "missing" {
		return digest.Image{}, &digest.Error{Class: digest.NotFound, Err: errors.New("no such tag")}
	}
	h, err := v1.NewHash(hash)
	return digest.Image{Digest: h}, err
}

func (fixed) Platforms(context.Context, name.Digest) ([]string, error) { return nil, nil }

func resources(t *testing.T, text string) resmap.ResMap {
	t.Helper()
	m, err := resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory()).NewResMapFromBytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const app = `apiVersion: v1
kind: ConfigMap
metadata:
  name: c
data:
  a: b
---
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: a
    image: nginx:1.27
    envFrom:
    - configMapRef:
        name: c
`

func TestTransform(t *testing.T) {
	cfg, err := fn.ParseConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := resources(t, app)
	tr := &Transformer{Config: cfg, Resolver: fixed{}}
	if err := tr.Transform(m); err != nil {
		t.Fatal(err)
	}
	out, err := m.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"image: nginx:1.27@" + hash, "  name: c-52c59dccc2\n", "        name: c-52c59dccc2\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if err := tr.Transform(m); err != nil {
		t.Fatal(err)
	}
	if again, err := m.AsYaml(); err != nil || string(again) != string(out) {
		t.Errorf("a second run gave %v\n%s", err, again)
	}
}

func TestTransformFails(t *testing.T) {
	cfg, err := fn.ParseConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := resources(t, strings.Replace(app, "nginx:1.27", "nginx:missing", 1))
	before, err := m.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	tr := &Transformer{Context: t.Context(), Config: cfg, Resolver: fixed{}, Report: func(manifest.Result) { told++ }}
	if err := tr.Transform(m); err == nil || !strings.Contains(err.Error(), "Pod web: spec.containers[0].image: nginx:missing: no such tag") {
		t.Errorf("error is %v", err)
	}
	if after, err := m.AsYaml(); err != nil || string(after) != string(before) || told != 1 {
		t.Errorf("it failed, told %d findings, and changed the resources: %v\n%s", told, err, after)
	}
}
