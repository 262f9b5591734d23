package version

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// mixed are objects that refer to each other in many ways: versioned ones to
// versioned ones, one name for two kinds, two namespaces, versions old and new.
const mixed = `apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {k: v}
---
apiVersion: v1
kind: Secret
metadata: {name: a}
stringData: {k: v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: other}
data: {k: w}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b-v003, annotations: {artifact.spinnaker.io/name: b, artifact.spinnaker.io/version: v003}}
data: {k: old}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b-v004, annotations: {artifact.spinnaker.io/name: b, artifact.spinnaker.io/version: v004}}
data: {k: new}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: r, annotations: {strategy.spinnaker.io/versioned: "true"}}
spec: {template: {spec: {containers: [{name: c, envFrom: [{configMapRef: {name: a}}, {secretRef: {name: a}}, {configMapRef: {name: b}}]}]}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: r}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: other}
spec: {template: {spec: {containers: [{name: c, args: [--config=a], envFrom: [{configMapRef: {name: a}}, {secretRef: {name: a}}]}]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: x}
rules: [{apiGroups: [""], resources: [configmaps, secrets], resourceNames: [a, b-v003, c]}]
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: e, annotations: {strategy.spinnaker.io/versioned: "true"}}
spec: {target: {name: made}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, envFrom: [{secretRef: {name: made}}, {configMapRef: {name: b-v003}}]}]}
`

// TestOrder wants the order of the objects not to change what becomes of them,
// and a second run to change nothing.
func TestOrder(t *testing.T) {
	docs := strings.Split(strings.TrimSuffix(mixed, "\n"), "\n---\n")
	keep := func(c *Config) { c.Source = "keep" }
	keepNumbers := func(c *Config) { c.Source, c.Naming = "keep", "sequence" }
	for _, change := range []func(*Config){nil, sequence, keep, keepNumbers} {
		want, wantResults := hydrated(t, docs, change)
		for range 100 {
			shuffled := slices.Clone(docs)
			rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			got, results := hydrated(t, shuffled, change)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("another order gives (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(wantResults, results); diff != "" {
				t.Fatalf("another order finds (-want +got)\n%s", diff)
			}
		}
	}
}

// hydrated gives what becomes of each document, and what is said, sorted.
func hydrated(t *testing.T, docs []string, change func(*Config)) (texts, results []string) {
	t.Helper()
	l := &lock.Lock{}
	list := read(t, strings.Join(docs, "\n---\n")+"\n")
	rename(t, list, l, change)
	if list.Failed() {
		t.Fatalf("%q", list.Findings(manifest.Error))
	}
	out := joined(t, list)
	again := read(t, out)
	rename(t, again, l, change)
	if second := joined(t, again); second != out {
		t.Fatalf("a second run changes (-first +second)\n%s", cmp.Diff(out, second))
	}
	texts = strings.Split(strings.TrimSuffix(out, "\n"), "\n---\n")
	slices.Sort(texts)
	for _, r := range list.Results {
		results = append(results, r.String())
	}
	slices.Sort(results)
	return texts, results
}

// joined gives all that a list holds, files of versions included, as one text.
func joined(t *testing.T, list *manifest.List) string {
	t.Helper()
	var out []string
	for _, s := range list.Sources {
		text, err := s.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n")
}
