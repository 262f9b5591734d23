// Package strategy reads the annotations by which Spinnaker is told how to
// deploy an object, checks them, and says the same in the language of another
// deployer.
//
// Spinnaker's precedence is recreate, replace, server-side-apply, apply.
// https://spinnaker.io/docs/reference/providers/kubernetes-v2/#strategy
package strategy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// The annotations that say how an object is deployed.
const (
	Recreate        = "strategy.spinnaker.io/recreate"
	Replace         = "strategy.spinnaker.io/replace"
	ServerSideApply = "strategy.spinnaker.io/server-side-apply"
	SourceCapacity  = manifest.SourceCapacityAnnotation
	History         = manifest.HistoryAnnotation
)

const step = "reading strategies"

// A Config says which deployer the strategies are for. Its zero value is not
// valid; fn.ParseConfig gives the defaults.
type Config struct {
	Deployer string `json:"deployer" enum:"none,argocd,flux,kapp" default:"none" doc:"who deploys what belay writes: Spinnaker's strategy annotations are also written as that deployer's own"`
}

// A verdict is how an object is deployed.
type verdict uint8

const (
	apply verdict = iota
	serverSide
	replace
	recreate
)

// Translate checks the strategies of all objects, and writes them in the
// annotations of the deployer. Findings are added to list.Results.
func Translate(list *manifest.List, cfg Config) {
	for _, o := range list.Objects {
		if o.IsLocal() || o.IsIgnored() {
			continue
		}
		t := translator{list: list, object: o}
		v := t.verdict()
		t.write(cfg.Deployer, v)
		if v == apply {
			t.missLeft(cfg.Deployer)
		}
	}
}

// Check reports values that the annotations of Spinnaker do not have, and names
// that are none of its annotations.
func Check(list *manifest.List) {
	for _, o := range list.Objects {
		if o.IsLocal() || o.IsIgnored() {
			continue
		}
		t := translator{list: list, object: o}
		for k := range o.Root().Lookup("metadata", "annotations").Pairs() {
			t.check(k.Value(), o.Annotation(k.Value()))
		}
	}
}

// scaled are the kinds whose number of replicas can be carried over.
var scaled = []string{"Deployment", "ReplicaSet", "StatefulSet"}

// Carry gives the objects that ask for it the number of replicas that they have
// in the previous output. previous gives an object of it, and nil where there is
// none.
// Objects that skip chooses are left alone.
func Carry(list *manifest.List, previous func(*manifest.Object) *manifest.Object, skip func(*manifest.Object) bool) {
	for _, o := range list.Objects {
		if o.Annotation(SourceCapacity) != "true" || o.IsLocal() || o.IsIgnored() || skip(o) {
			continue
		}
		t := translator{list: list, object: o}
		if o.ID.Group() != "apps" || !slices.Contains(scaled, o.ID.Kind) {
			t.report(manifest.Warning, SourceCapacity, "says nothing for a "+o.ID.Kind+" (it is for Deployment, ReplicaSet and StatefulSet)")
			continue
		}
		before := previous(o)
		if before == nil {
			t.report(manifest.Warning, SourceCapacity, "there is no previous output to take the number of replicas from: that of the manifest stays")
			continue
		}
		n, err := strconv.Atoi(before.Root().Lookup("spec", "replicas").Value())
		if err != nil {
			continue // it had none: an autoscaler decides
		}
		if err := o.SetField(o.Root(), n, "spec", "replicas"); err != nil {
			t.report(manifest.Error, "", err.Error())
		}
	}
}

// A translator deals with one object.
type translator struct {
	list   *manifest.List
	object *manifest.Object
}

// booleans are annotations that are true or false.
var booleans = []string{Recreate, Replace, SourceCapacity, manifest.VersionedAnnotation, manifest.CachingIgnoreAnnotation}

// known are all annotations that users write for Spinnaker.
var known = slices.Concat(booleans, []string{
	ServerSideApply, History, "traffic.spinnaker.io/load-balancers",
	"moniker.spinnaker.io/application", "moniker.spinnaker.io/cluster", "moniker.spinnaker.io/stack", "moniker.spinnaker.io/detail", "moniker.spinnaker.io/sequence",
	"artifact.spinnaker.io/type", manifest.ArtifactNameAnnotation, "artifact.spinnaker.io/location", manifest.ArtifactVersionAnnotation,
})

// Known gives all annotations of Spinnaker that belay knows, sorted.
func Known() []string { return slices.Sorted(slices.Values(known)) }

// check holds one annotation against what it may say.
func (t translator) check(key, value string) {
	prefix, _, _ := strings.Cut(key, "/")
	switch {
	case slices.Contains(booleans, key):
		// versioned is read, and refused, where objects get their versions.
		if value != "true" && value != "false" && key != manifest.VersionedAnnotation {
			t.report(manifest.Error, key, fmt.Sprintf("%q is neither true nor false (write one of them, in quotes)", value))
		}
	case key == History:
		if n, err := strconv.Atoi(value); err != nil || n < 1 {
			t.report(manifest.Error, key, fmt.Sprintf("%q is not the number of versions to keep, 1 or more", value))
		}
	case key == ServerSideApply:
		if value != "true" && value != "false" && value != "force-conflicts" {
			t.report(manifest.Error, key, fmt.Sprintf("%q is none of true, false and force-conflicts", value))
		}
	case slices.Contains([]string{"strategy.spinnaker.io", "traffic.spinnaker.io", "caching.spinnaker.io", "moniker.spinnaker.io", "artifact.spinnaker.io"}, prefix) && !slices.Contains(known, key):
		t.report(manifest.Warning, key, "is no annotation of Spinnaker's, and says nothing (the known ones are in docs/spinnaker.md)")
	}
}

// asked are the annotations that ask for a verdict, the strongest first.
var asked = []struct {
	key string
	v   verdict
}{{Recreate, recreate}, {Replace, replace}, {ServerSideApply, serverSide}}

// verdict gives the strategy that comes first, and reports those that it hides.
func (t translator) verdict() verdict {
	o := t.object
	var hidden []string
	v := apply
	for _, s := range asked {
		value := o.Annotation(s.key)
		if value != "true" && (s.key != ServerSideApply || value != "force-conflicts") {
			continue
		}
		hidden = append(hidden, s.key)
		v = max(v, s.v)
	}
	if len(hidden) > 1 {
		t.report(manifest.Warning, hidden[0], "comes before "+strings.Join(hidden[1:], " and ")+", which says nothing here (keep one of them)")
	}
	return v
}

// A translation is the annotation of a deployer that means a strategy.
type translation struct {
	key, value string
	list       bool   // the value is one of several, separated by commas
	note       string // what is not quite the same
}

// translations say for each deployer how it is told. A missing one is not
// needed, or cannot be said.
//
// Argo CD: https://argo-cd.readthedocs.io/en/stable/user-guide/sync-options/
// Flux: https://fluxcd.io/flux/components/kustomize/kustomizations/#controlling-the-apply-behavior-of-resources
// kapp: https://carvel.dev/kapp/docs/latest/apply/#kappk14sioupdate-strategy
var translations = map[string]map[verdict][]translation{
	"argocd": {
		recreate:   {{key: "argocd.argoproj.io/sync-options", value: "Force=true", list: true}, {key: "argocd.argoproj.io/sync-options", value: "Replace=true", list: true}},
		replace:    {{key: "argocd.argoproj.io/sync-options", value: "Replace=true", list: true}},
		serverSide: {{key: "argocd.argoproj.io/sync-options", value: "ServerSideApply=true", list: true}},
	},
	"flux": {
		recreate:   {{key: "kustomize.toolkit.fluxcd.io/force", value: "enabled", note: "Flux recreates the object only where a field changes that cannot be changed"}},
		replace:    {{key: "kustomize.toolkit.fluxcd.io/ssa", value: "Override", note: "Flux applies on the server, which has no limit for annotations either"}},
		serverSide: {{key: "kustomize.toolkit.fluxcd.io/ssa", value: "Override"}},
	},
	"kapp": {
		recreate:   {{key: "kapp.k14s.io/update-strategy", value: "always-replace"}},
		replace:    {{note: "kapp replaces by itself"}},
		serverSide: {{note: "kapp knows no server-side apply for single objects"}},
	},
}

// write says a strategy in the annotations of a deployer. One that says
// something else already stays.
func (t translator) write(deployer string, v verdict) {
	for _, tr := range translations[deployer][v] {
		if tr.note != "" {
			t.report(manifest.Info, "", tr.note)
		}
		have := t.object.Annotation(tr.key)
		switch {
		case tr.key == "" || have == tr.value:
		case have == "":
			t.object.SetAnnotation(tr.key, tr.value)
		case tr.list:
			t.addToList(tr, have)
		default:
			t.report(manifest.Warning, tr.key, fmt.Sprintf("is %q, where the strategy of Spinnaker would be %q (it stays)", have, tr.value))
		}
	}
}

// missLeft reports what a deployer is told although the strategy says false: an
// earlier run may have written it.
func (t translator) missLeft(deployer string) {
	for _, s := range asked {
		if t.object.Annotation(s.key) != "false" {
			continue
		}
		for _, tr := range translations[deployer][s.v] {
			options := strings.Split(strings.ReplaceAll(t.object.Annotation(tr.key), " ", ""), ",")
			if tr.key != "" && slices.Contains(options, tr.value) {
				t.report(manifest.Warning, tr.key, fmt.Sprintf("has %s, although %s is false (remove one of them)", tr.value, s.key))
			}
		}
	}
}

// addToList adds an option to a list of them, unless one of its name is there.
func (t translator) addToList(tr translation, have string) {
	name, _, _ := strings.Cut(tr.value, "=")
	if tr.value == "ServerSideApply=true" && strings.Contains(have, "Replace=true") {
		t.report(manifest.Warning, tr.key, "has Replace=true, before which the server-side apply of Spinnaker's strategy says nothing (remove one of them)")
	}
	for option := range strings.SplitSeq(have, ",") {
		option = strings.TrimSpace(option)
		if option == tr.value {
			return
		}
		if n, _, _ := strings.Cut(option, "="); n == name {
			t.report(manifest.Warning, tr.key, fmt.Sprintf("has %s, where the strategy of Spinnaker would be %s (it stays)", option, tr.value))
			return
		}
	}
	t.object.SetAnnotation(tr.key, have+","+tr.value)
}

func (t translator) report(s manifest.Severity, key, message string) {
	field := ""
	if key != "" {
		field = "metadata.annotations[" + key + "]"
	}
	t.list.Report(manifest.Result{Severity: s, Step: step, Object: t.object, Field: field, Line: t.object.Line(t.object.Find(field)), Message: message})
}
