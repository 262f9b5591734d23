package kpt

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	sdk "github.com/kptdev/krm-functions-sdk/go/fn"

	"github.com/belay-krm/belay/fn/digest"
)

// fixed resolves every tag but "missing" to one digest.
type fixed struct{}

const hash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (fixed) Resolve(_ context.Context, ref name.Reference) (digest.Image, error) {
	if ref.Identifier() == "missing" {
		return digest.Image{}, &digest.Error{Class: digest.NotFound, Err: errors.New("no such tag")}
	}
	h, err := v1.NewHash(hash)
	return digest.Image{Digest: h}, err
}

func (fixed) Platforms(context.Context, name.Digest) ([]string, error) { return nil, nil }

const in = `apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: c
  data: {a: b}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web
  spec:
    containers:
    - name: a
      image: nginx:1.27 # pinned
      envFrom:
      - configMapRef: {name: c}
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: config
  data: {moniker.application: shop}
`

func TestProcessor(t *testing.T) {
	out, err := sdk.Run(Processor(t.Context(), fixed{}), []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"image: nginx:1.27@" + hash + " # pinned", "name: c-52c59dccc2", "configMapRef: {name: c-52c59dccc2}", "moniker.spinnaker.io/application: shop"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

func TestProcessorFails(t *testing.T) {
	out, err := sdk.Run(Processor(t.Context(), fixed{}), []byte(strings.Replace(in, "nginx:1.27", "nginx:missing", 1)))
	if err == nil {
		t.Error("no error")
	}
	for _, want := range []string{"image: nginx:missing #", "name: c\n", "message: 'nginx:missing: no such tag'", "severity: error", "path: spec.containers[0].image", "class: not found"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}
