// Package status tells whether what runs in a cluster is as it was asked for: the
// stability of Spinnaker's Kubernetes provider, kind by kind.
//
// The rules are those of Spinnaker's documentation, with what it leaves out taken
// from kstatus: an update that the controller has not seen, a deadline that has
// passed, updates on request.
// https://spinnaker.io/docs/reference/providers/kubernetes-v2/#workloads
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
package status

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// A Status is what is known of one object.
type Status struct {
	// Known is false for a kind that has no rule.
	Known bool
	// Reason says why the object is not stable; "" for a stable one.
	Reason string
}

// Stable tells whether nothing is left to be done for the object.
func (s Status) Stable() bool { return s.Reason == "" }

// Of gives the status of a live object, as kubectl get -o yaml shows it.
func Of(o *manifest.Object) Status {
	rule := ruleOf(o.ID)
	if rule == nil && strings.HasSuffix(o.ID.Kind, "List") && o.Root().Get("items").IsSequence() {
		return Status{Known: true, Reason: "its items were not looked at (kubectl get -o yaml gives a List, which is read)"}
	}
	if rule == nil {
		return Status{}
	}
	root := o.Root()
	if !root.Lookup("metadata", "deletionTimestamp").IsNull() {
		return Status{Known: true, Reason: "it is being deleted"}
	}
	seen, wanted := number(root, "status", "observedGeneration"), number(root, "metadata", "generation")
	_, hasController := controlled[o.ID.Kind]
	if hasController && wanted.there && seen.n < wanted.n {
		return Status{Known: true, Reason: "its controller has not seen the last change yet"}
	}
	return Status{Known: true, Reason: rule(root)}
}

// controlled are the kinds whose controllers say which generation they have seen.
var controlled = map[string]struct{}{"Deployment": {}, "DaemonSet": {}, "StatefulSet": {}, "ReplicaSet": {}}

// ruleOf gives the rule of a kind; nil for none. A rule gives the reason why an
// object is not stable.
func ruleOf(id manifest.ID) func(root *manifest.Node) string {
	switch id.Group() + "/" + id.Kind {
	case "apps/Deployment", "extensions/Deployment":
		return deployment
	case "apps/DaemonSet", "extensions/DaemonSet":
		return daemonSet
	case "apps/StatefulSet":
		return statefulSet
	case "apps/ReplicaSet", "extensions/ReplicaSet":
		return replicaSet
	case "/Pod":
		return pod
	case "/Service":
		return service
	case "networking.k8s.io/Ingress", "extensions/Ingress":
		return ingress
	case "networking.k8s.io/NetworkPolicy", "extensions/NetworkPolicy", "/ConfigMap", "/Secret":
		return func(*manifest.Node) string { return "" }
	}
	return nil
}

// A count is a number in an object; absent ones are 0.
type count struct {
	n     int
	there bool
}

func number(root *manifest.Node, keys ...string) count {
	n, err := strconv.Atoi(root.Lookup(keys...).Value())
	return count{n, err == nil}
}

// replicas gives how many pods are asked for: 1 where nothing is said.
func replicas(root *manifest.Node) int {
	if c := number(root, "spec", "replicas"); c.there {
		return c.n
	}
	return 1
}

// equal gives the first of the fields of the status that is not the number of
// pods that are asked for.
func equal(root *manifest.Node, want int, fields ...string) string {
	for _, f := range fields {
		if have := number(root, "status", f).n; have != want {
			return fmt.Sprintf("%s is %d, and should be %d", f, have, want)
		}
	}
	return ""
}

func condition(root *manifest.Node, kind string) (status, reason string) {
	for _, c := range root.Lookup("status", "conditions").Elems() {
		if c.Get("type").Value() == kind {
			return c.Get("status").Value(), c.Get("reason").Value()
		}
	}
	return "", ""
}

func deployment(root *manifest.Node) string {
	if _, reason := condition(root, "Progressing"); reason == "ProgressDeadlineExceeded" {
		return "its progress deadline has passed"
	}
	want := replicas(root)
	if reason := equal(root, want, "updatedReplicas"); reason != "" {
		return reason
	}
	if have := number(root, "status", "replicas").n; have > want {
		return fmt.Sprintf("old pods are still there (%d)", have-want)
	}
	return equal(root, want, "availableReplicas", "readyReplicas")
}

// onDelete tells whether pods are replaced only when somebody deletes them.
func onDelete(root *manifest.Node) bool {
	return root.Lookup("spec", "updateStrategy", "type").Value() == "OnDelete"
}

func daemonSet(root *manifest.Node) string {
	want := number(root, "status", "desiredNumberScheduled")
	if !want.there {
		return "its controller has not counted its pods yet"
	}
	fields := []string{"currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"}
	for _, f := range fields {
		have := number(root, "status", f).n
		if have < want.n && (f != "updatedNumberScheduled" || !onDelete(root)) {
			return fmt.Sprintf("%s is %d, and should be %d", f, have, want.n)
		}
	}
	return ""
}

func statefulSet(root *manifest.Node) string {
	want := replicas(root)
	if reason := equal(root, want, "readyReplicas"); reason != "" {
		return reason
	}
	if onDelete(root) {
		return ""
	}
	if partition := number(root, "spec", "updateStrategy", "rollingUpdate", "partition").n; partition > 0 {
		if have := number(root, "status", "updatedReplicas").n; have < want-partition {
			return fmt.Sprintf("updatedReplicas is %d, and should be %d (partition %d)", have, want-partition, partition)
		}
		return ""
	}
	current, update := root.Lookup("status", "currentRevision").Value(), root.Lookup("status", "updateRevision").Value()
	if current != update {
		return fmt.Sprintf("currentRevision is %s, and updateRevision %s", current, update)
	}
	return equal(root, want, "currentReplicas")
}

func replicaSet(root *manifest.Node) string {
	if status, _ := condition(root, "ReplicaFailure"); status == "True" {
		return "pods cannot be made (ReplicaFailure)"
	}
	return equal(root, replicas(root), "fullyLabeledReplicas", "availableReplicas", "readyReplicas")
}

func pod(root *manifest.Node) string {
	phase := root.Lookup("status", "phase").Value()
	if phase == "Succeeded" {
		return ""
	}
	if scheduled, reason := condition(root, "PodScheduled"); scheduled == "False" {
		return "it is not scheduled (" + reason + ")"
	}
	ready, reason := condition(root, "Ready")
	switch {
	case phase != "Running":
		return "its phase is " + phase
	case ready != "True":
		return "it is not ready (" + reason + ")"
	}
	return ""
}

func service(root *manifest.Node) string {
	if root.Lookup("spec", "type").Value() != "LoadBalancer" {
		return ""
	}
	return ingress(root)
}

func ingress(root *manifest.Node) string {
	if root.Lookup("status", "loadBalancer", "ingress").Len() == 0 {
		return "no load balancer is bound to it yet"
	}
	return ""
}
