// Package kustomize makes belay a transformer for programs that build with
// kustomize's API.
package kustomize

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/manifest"
)

// A Transformer hydrates the resources of a ResMap. It is a
// [resmap.Transformer].
type Transformer struct {
	// Context ends a run; nil means context.Background().
	//
	// resmap.Transformer has no parameter for it.
	Context context.Context
	// Config says what is done. Get one from fn.ParseConfig.
	Config fn.Config
	// Resolver finds digests; nil where what no lock among the resources holds
	// is an error.
	Resolver digest.Resolver
	// Report is told of every finding; nil to be told of errors alone, by the
	// error of Transform.
	Report func(manifest.Result)
}

var _ resmap.Transformer = (*Transformer)(nil)

// Transform hydrates the resources. When it fails they stay as they were.
func (t *Transformer) Transform(m resmap.ResMap) error {
	list, err := read(m)
	if err != nil {
		return err
	}
	ctx := t.Context
	if ctx == nil {
		ctx = context.Background()
	}
	fn.Process(ctx, list, t.Config, fn.Options{Resolver: t.Resolver})
	if t.Report != nil {
		for _, r := range list.Results {
			t.Report(r)
		}
	}
	if list.Failed() {
		return errors.New(strings.Join(list.Findings(manifest.Error), "\n"))
	}
	return write(m, list)
}

// read gives the resources as a list with one source for each.
func read(m resmap.ResMap) (*manifest.List, error) {
	var inputs []manifest.Input
	for _, r := range m.Resources() {
		data, err := r.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.CurId(), err)
		}
		inputs = append(inputs, manifest.Input{Data: data, Stream: true})
	}
	return manifest.ReadFiles(inputs)
}

// write puts what changed back into the resources.
func write(m resmap.ResMap, list *manifest.List) error {
	nodes := make([]*yaml.RNode, m.Size())
	for i, r := range m.Resources() {
		if !list.Sources[i].Changed() {
			continue
		}
		data, err := list.Sources[i].Bytes()
		if err != nil {
			return fmt.Errorf("writing %s: %w", r.CurId(), err)
		}
		if nodes[i], err = yaml.Parse(string(data)); err != nil {
			return fmt.Errorf("writing %s: %w", r.CurId(), err)
		}
	}
	for i, r := range m.Resources() {
		if nodes[i] != nil {
			r.SetYNode(nodes[i].YNode())
		}
	}
	return nil
}
