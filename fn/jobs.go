package fn

import (
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/strategy"
)

// recreated are annotations that make a deployer delete a Job before it is
// applied again.
// https://spinnaker.io/docs/reference/providers/kubernetes-v2/#strategy
// https://argo-cd.readthedocs.io/en/stable/user-guide/resource_hooks/
// https://helm.sh/docs/topics/charts_hooks/
func recreated(o *manifest.Object) bool {
	return o.Annotation(strategy.Recreate) == "true" || o.Annotation(strategy.Replace) == "true" ||
		o.Annotation("argocd.argoproj.io/hook") != "" || o.Annotation("helm.sh/hook") != ""
}

// warnJobs names the Jobs whose pod template differs from that of the previous
// output: once a Job is applied, its template cannot be changed.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-template
func warnJobs(list *manifest.List, previous func(*manifest.Object) *manifest.Object) {
	for _, o := range list.Objects {
		if o.ID.Kind != "Job" || o.ID.Group() != "batch" || o.ID.Name == "" || o.Name() != o.ID.Name || o.IsLocal() || o.IsIgnored() || recreated(o) {
			continue
		}
		if templateChanged(o, previous) {
			list.Report(manifest.Result{
				Severity: manifest.Warning, Step: "hydrating", Object: o, Field: "spec.template",
				Line:    o.Line(o.Root().Lookup("spec", "template")),
				Message: "changes, which a Job that was applied already does not allow (set strategy.spinnaker.io/versioned or strategy.spinnaker.io/recreate: \"true\", or delete the Job first)",
			})
		}
	}
}

// templateChanged tells whether the pod template of an object differs from that
// of the previous output. Without previous that is the object as it was read.
func templateChanged(o *manifest.Object, previous func(*manifest.Object) *manifest.Object) bool {
	if previous == nil {
		return o.File.Path != "" && o.ChangedBelow("spec", "template")
	}
	before := previous(o)
	return before != nil && !manifest.Equal(before.Root().Lookup("spec", "template"), o.Root().Lookup("spec", "template"))
}
