// Package traffic gives the pods of a workload the labels that its load
// balancers select, as Spinnaker does when it deploys.
//
// The annotation traffic.spinnaker.io/load-balancers names Services of the
// package and namespace. Labels that are there with the same value are fine, so
// that a second run changes nothing; what contradicts is an error, since no pod
// could be selected.
// https://spinnaker.io/docs/reference/providers/kubernetes-v2/#traffic
package traffic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// Annotation lists the load balancers of a workload, as a JSON list of "kind name".
const Annotation = "traffic.spinnaker.io/load-balancers"

const step = "attaching load balancers"

// receives are the kinds that can be attached.
// https://github.com/spinnaker/clouddriver/tree/master/clouddriver-kubernetes/src/main/java/com/netflix/spinnaker/clouddriver/kubernetes/op/handler
var receives = map[string]bool{
	"/Pod": true, "apps/ReplicaSet": true, "apps/DaemonSet": true, "apps/StatefulSet": true,
	"apps/Deployment": true, "batch/Job": true, "batch/CronJob": true,
}

// Options are what Attach is given.
type Options struct {
	// Skip, if not nil, chooses objects that are left alone.
	Skip func(*manifest.Object) bool
	// DefaultNamespace is the one that an absent namespace stands for.
	DefaultNamespace string
}

// Attach sets the labels that the annotations ask for. Findings are added to
// list.Results.
func Attach(list *manifest.List, opt Options) {
	a := attacher{list: list, opt: opt}
	for _, o := range list.Objects {
		asks := o.Root().Lookup("metadata", "annotations").Get(Annotation) != nil
		if asks && !o.IsLocal() && !o.IsIgnored() && (opt.Skip == nil || !opt.Skip(o)) {
			a.attach(o)
		}
	}
}

// An attacher is one run of Attach.
type attacher struct {
	list     *manifest.List
	opt      Options
	services map[serviceKey]*manifest.Object
}

type serviceKey struct{ pkg, namespace, name string }

// attach attaches one workload to all of its load balancers.
func (a *attacher) attach(o *manifest.Object) {
	if !receives[o.ID.Group()+"/"+o.ID.Kind] {
		a.fail(o, fmt.Errorf("a %s has no pods of its own (the annotation is for Pod, ReplicaSet, DaemonSet, StatefulSet, Deployment, Job and CronJob)", o.ID.Kind))
		return
	}
	balancers, err := parse(o.Annotation(Annotation))
	if err != nil {
		a.fail(o, err)
		return
	}
	for _, name := range balancers {
		service, err := a.find(o, name)
		if err != nil {
			a.fail(o, err)
			continue
		}
		a.label(o, service)
	}
}

// parse reads the list of an annotation.
func parse(text string) ([]string, error) {
	var out []string
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf(`%q is not a JSON list of strings (write '["service my-service"]')`, text)
	}
	return out, nil
}

// find gives the Service that "kind name" means.
func (a *attacher) find(o *manifest.Object, balancer string) (*manifest.Object, error) {
	parts := strings.Fields(balancer)
	if len(parts) != 2 || balancer != parts[0]+" "+parts[1] {
		return nil, fmt.Errorf(`%q is not a kind and a name with a blank between (write "service my-service")`, balancer)
	}
	if !strings.EqualFold(parts[0], "service") {
		return nil, fmt.Errorf("%q: kind %s balances no load (name a Service)", balancer, parts[0])
	}
	a.index()
	service := a.services[serviceKey{o.Package, cmp.Or(o.ID.Namespace, a.opt.DefaultNamespace), parts[1]}]
	if service == nil {
		where := ""
		if o.ID.Namespace != "" {
			where = " in the namespace " + o.ID.Namespace
		}
		return nil, fmt.Errorf("%q is not in the package%s (add the Service, or take it out of the annotation)", balancer, where)
	}
	if service.Root().Lookup("spec", "selector").Len() == 0 {
		return nil, fmt.Errorf("%q selects no pods: its selector is empty (give it one, or take it out of the annotation)", balancer)
	}
	return service, nil
}

// index finds the Services of the list, once.
func (a *attacher) index() {
	if a.services != nil {
		return
	}
	a.services = map[serviceKey]*manifest.Object{}
	others := []func(*manifest.Object) []string{
		func(o *manifest.Object) []string { return []string{o.ID.Name} },
		unversioned,
		// What kustomize called it before it put a prefix there.
		func(o *manifest.Object) []string {
			return strings.Split(o.Annotation(manifest.PreviousNamesAnnotation), ",")
		},
	}
	for _, names := range others { // the name that it has comes first
		for _, o := range a.list.Objects {
			if o.ID.Kind != "Service" || o.ID.APIVersion != "v1" || o.IsLocal() {
				continue
			}
			for _, name := range names(o) {
				k := serviceKey{o.Package, cmp.Or(o.ID.Namespace, a.opt.DefaultNamespace), name}
				if a.services[k] == nil {
					a.services[k] = o
				}
			}
		}
	}
}

// unversioned gives the name that a version is a version of.
func unversioned(o *manifest.Object) []string {
	if o.Annotation(manifest.ArtifactVersionAnnotation) == "" || o.Annotation(manifest.RetainedAnnotation) != "" {
		return nil
	}
	return []string{o.Annotation(manifest.ArtifactNameAnnotation)}
}

// label gives the pods of a workload the labels that a Service selects.
func (a *attacher) label(o, service *manifest.Object) {
	holder := o.PodTemplate()
	if holder == nil {
		holder = o.Root() // a Pod
		if o.ID.Kind != "Pod" {
			a.fail(o, errors.New("has no pod template to label (give it one, or take the annotation away)"))
			return
		}
	}
	for k, v := range service.Root().Lookup("spec", "selector").Pairs() {
		have := holder.Lookup("metadata", "labels").Get(k.Value())
		switch {
		case have == nil:
			if err := o.SetField(holder, v.Value(), "metadata", "labels", k.Value()); err != nil {
				a.fail(o, err)
				return
			}
		case have.Value() != v.Value():
			a.fail(o, fmt.Errorf("the label %s is %q, and %s selects %q (change one of them)", k.Value(), have.Value(), service.ID, v.Value()))
		}
	}
}

func (a *attacher) fail(o *manifest.Object, err error) {
	field := "metadata.annotations[" + Annotation + "]"
	a.list.Report(manifest.Result{Severity: manifest.Error, Step: step, Object: o, Field: field, Line: o.Line(o.Find(field)), Message: err.Error()})
}
