// Package kpt makes belay a processor for programs that are built with the kpt
// function SDK. A program that only wants to run belay runs the binary, which
// keeps comments and order that the SDK does not.
package kpt

import (
	"context"
	"fmt"

	sdk "github.com/kptdev/krm-functions-sdk/go/fn"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/manifest"
)

// Processor gives a processor that hydrates the items of a ResourceList, as its
// functionConfig says. Digests come from r, which may be nil: then what no lock
// holds is an error. On failure the items stay as they are, the results say
// why, and the processor gives false.
func Processor(ctx context.Context, r digest.Resolver) sdk.ResourceListProcessor {
	return sdk.ResourceListProcessorFunc(func(rl *sdk.ResourceList) (bool, error) {
		return process(ctx, r, rl)
	})
}

func process(ctx context.Context, r digest.Resolver, rl *sdk.ResourceList) (bool, error) {
	in, err := rl.ToYAML()
	if err != nil {
		return false, fmt.Errorf("writing the ResourceList: %w", err)
	}
	list, err := manifest.Read(in)
	if err != nil {
		return false, err
	}
	cfg, err := fn.ParseConfig(list.FunctionConfig)
	if err != nil {
		return false, err
	}
	fn.Process(ctx, list, cfg, fn.Options{Resolver: r})
	for _, res := range list.Results {
		rl.Results = append(rl.Results, convert(res))
	}
	if list.Failed() {
		return false, nil
	}
	out, err := list.Output()
	if err != nil {
		return false, err
	}
	hydrated, err := sdk.ParseResourceList(out)
	if err != nil {
		return false, fmt.Errorf("reading the hydrated ResourceList: %w", err)
	}
	rl.Items = hydrated.Items
	return true, nil
}

// convert gives a result in the terms of the SDK.
func convert(r manifest.Result) *sdk.Result {
	out := &sdk.Result{Message: r.Message, Severity: sdk.Severity(r.Severity), Tags: map[string]string{"step": r.Step}}
	for k, v := range r.Tags {
		out.Tags[k] = v
	}
	if r.Object == nil {
		return out
	}
	id := r.Object.ID
	out.ResourceRef = &sdk.ResourceRef{APIVersion: id.APIVersion, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
	if r.Field != "" {
		out.Field = &sdk.Field{Path: r.Field}
		if r.Current != "" {
			out.Field.CurrentValue = r.Current
		}
	}
	if f := r.Object.File; f.Path != "" {
		out.File = &sdk.File{Path: f.Path, Index: f.Index}
	}
	return out
}
