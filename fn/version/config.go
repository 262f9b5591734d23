package version

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// A Config says what is versioned, and how. Its zero value is not valid;
// fn.ParseConfig gives the defaults.
type Config struct {
	// Naming is hash, sequence or off.
	Naming string `json:"naming" enum:"hash,sequence,off" default:"hash" doc:"hash: app-config-7f9d2k8c9m, which needs no history; sequence: app-config-v000, v001, … as Spinnaker does, kept in the lock; off: nothing is versioned"`
	// Hash is belay or kustomize.
	Hash string `json:"hash" enum:"belay,kustomize" default:"belay" doc:"what hash naming appends: belay: a hash of what the API server makes of the content; kustomize: what the generators of kustomize append to a ConfigMap or Secret, so that a move from kustomize rolls nothing"`
	// Source is rename or keep.
	Source string `json:"source" enum:"rename,keep" default:"rename" doc:"rename: a version is the object itself, under a new name; keep: the object stays under its own name, is not deployed any more, and each version is a file of its own in versions/"`
	// KeepOriginal are objects that are deployed under their own names too.
	KeepOriginal []string `json:"keepOriginal" doc:"objects, such as ConfigMap/prod/app-config, that are deployed under their own names besides their versions, for those who read them from outside of the package"`
	// Immutable marks versions as immutable.
	Immutable bool `json:"immutable" default:"true" doc:"mark versions with immutable: true"`
	// Unreferenced is keep or version.
	Unreferenced string `json:"unreferenced" enum:"keep,version" default:"keep" doc:"what happens to a ConfigMap or Secret that nothing in the package refers to: keep its name, or version it too"`
	// Audit is warn, error or off.
	Audit string `json:"audit" enum:"warn,error,off" default:"warn" doc:"what happens where a field that no rule covers still mentions the old name of a version: a warning, an error, or nothing; # belay:ignore on the line silences one"`
	// DefaultNamespace is the namespace that an absent one stands for.
	DefaultNamespace string `json:"defaultNamespace" doc:"the namespace that objects without one are deployed to, so that app-config without a namespace and app-config in that one are the same"`
	// Kinds are versioned besides ConfigMap and Secret.
	Kinds []string `json:"kinds" doc:"more kinds to version, such as Pod or ReplicaSet.apps, as Spinnaker does"`
	// Select says which objects are versioned; all of their kinds when empty.
	Select []Selector `json:"select" doc:"which objects are versioned: those that match one of these; all when absent (strategy.spinnaker.io/versioned on an object comes first)"`
	// Pins point references at versions that are not current.
	Pins []string `json:"pins" doc:"versions that references are pointed at in place of the current one, such as ConfigMap/prod/app-config=v003; the version must be in the package"`
	// NameReference are references that belay does not know.
	NameReference []NameReference `json:"nameReference" doc:"more fields that name versioned objects, in the syntax of nameReference of kustomize"`
	// Configurations are files with a nameReference.
	Configurations []string `json:"configurations" doc:"paths of files with a nameReference, such as kustomize reads: beside this file; of a function, below the working directory"`
}

// A Selector matches objects; what is empty matches any.
type Selector struct {
	Kind   string `json:"kind" doc:"kind; any when absent"`
	Name   string `json:"name" doc:"pattern of names, such as *-config; any when absent"`
	Labels string `json:"labels" doc:"label selector; any when absent"`
}

// ready gives what tells whether an object is chosen, by its unversioned name.
func (s Selector) ready() func(o *manifest.Object, name string) bool {
	selects, err := manifest.SelectLabels(s.Labels)
	return func(o *manifest.Object, name string) bool {
		return err == nil && // Validate reported it
			(s.Kind == "" || s.Kind == o.ID.Kind) && (s.Name == "" || manifest.MatchesAny([]string{s.Name}, name)) && selects(o)
	}
}

// A pin points references to base at the version with a label.
type pin struct {
	base  lock.Base
	label string
}

// parsePin reads Kind/namespace/name=label.
func parsePin(s string) (pin, error) {
	object, label, ok := strings.Cut(s, "=")
	base, isBase := lock.ParseBase(object)
	if !ok || !isBase || label == "" || base.Kind == "" || base.Name == "" {
		return pin{}, fmt.Errorf("%q: must be Kind/namespace/name=version, such as ConfigMap/prod/app-config=v003", s)
	}
	return pin{base, label}, nil
}

// A NameReference says which fields name the objects of a kind.
// https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/configurations/
type NameReference struct {
	Group      string      `json:"group" doc:"API group of what is named; that of ConfigMap and Secret is absent"`
	Version    string      `json:"version" doc:"API version of what is named; it says nothing"`
	Kind       string      `json:"kind" doc:"kind of what is named"`
	FieldSpecs []FieldSpec `json:"fieldSpecs" doc:"the fields that name it"`
}

// A FieldSpec is a field of some kinds of objects.
// https://kubectl.docs.kubernetes.io/references/kustomize/builtins/#field-spec
type FieldSpec struct {
	Group   string `json:"group" doc:"API group of the objects with the field; any when absent"`
	Version string `json:"version" doc:"API version of the objects with the field; any when absent"`
	Kind    string `json:"kind" doc:"kind of the objects with the field; any when absent"`
	Path    string `json:"path" doc:"keys from the root of the object, such as spec/secretName; lists are entered, * is any key, ** any number of them, and a slash in a key is written \\/"`
	Create  bool   `json:"create" doc:"it says nothing: belay makes no references"`
}

// Validate checks kinds and paths.
func (c Config) Validate() error {
	var errs []error
	for i, k := range c.Kinds {
		if k == "" || strings.ContainsAny(k, " /:") {
			errs = append(errs, fmt.Errorf("versions.kinds[%d]: %q is not a kind (write Kind or Kind.group)", i, k))
		}
	}
	for i, s := range c.Select {
		if _, err := manifest.SelectLabels(s.Labels); err != nil {
			errs = append(errs, fmt.Errorf("versions.select[%d].labels: %w", i, err))
		}
		if _, err := path.Match(s.Name, ""); err != nil {
			errs = append(errs, fmt.Errorf("versions.select[%d].name: %q: not a pattern", i, s.Name))
		}
		if s == (Selector{}) {
			errs = append(errs, fmt.Errorf("versions.select[%d]: says nothing: give it a kind, name or labels", i))
		}
	}
	for i, p := range c.Pins {
		if _, err := parsePin(p); err != nil {
			errs = append(errs, fmt.Errorf("versions.pins[%d]: %w", i, err))
		}
	}
	for i, k := range c.KeepOriginal {
		if b, ok := lock.ParseBase(k); !ok || b.Kind == "" || b.Name == "" {
			errs = append(errs, fmt.Errorf("versions.keepOriginal[%d]: %q: must be Kind/namespace/name, such as ConfigMap/prod/app-config", i, k))
		}
	}
	for i, n := range c.NameReference {
		at := fmt.Sprintf("versions.nameReference[%d]", i)
		if n.Kind == "" {
			errs = append(errs, fmt.Errorf("%s.kind: the kind of what is named is missing", at))
		}
		for j, f := range n.FieldSpecs {
			if slices.Contains(manifest.SplitPath(f.Path), "") {
				errs = append(errs, fmt.Errorf("%s.fieldSpecs[%d].path: %q: must be keys separated by /, such as spec/secretName", at, j, f.Path))
			}
		}
	}
	return errors.Join(errs...)
}

// Rows gives the references that the configuration names.
func (c Config) Rows() []manifest.KindRef {
	var out []manifest.KindRef
	for _, n := range c.NameReference {
		for _, f := range n.FieldSpecs {
			r := manifest.KindRef{Group: f.Group, Version: f.Version, Path: manifest.SplitPath(f.Path), TargetGroup: n.Group, TargetKind: n.Kind, Slash: true}
			if f.Group == "" {
				r.Group = "*"
			}
			if f.Kind != "" {
				r.Kinds = []string{f.Kind}
			}
			out = append(out, r)
		}
	}
	return out
}
