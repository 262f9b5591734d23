package manifest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// namesTarget gives, for the types that name a ConfigMap or a Secret, the kind
// and the field of the name.
var namesTarget = map[string]struct{ kind, field string }{
	"ConfigMapEnvSource":    {"ConfigMap", "name"},
	"ConfigMapKeySelector":  {"ConfigMap", "name"},
	"ConfigMapProjection":   {"ConfigMap", "name"},
	"ConfigMapVolumeSource": {"ConfigMap", "name"},
	"LocalObjectReference":  {"Secret", "name"},
	"SecretEnvSource":       {"Secret", "name"},
	"SecretKeySelector":     {"Secret", "name"},
	"SecretProjection":      {"Secret", "name"},
	"SecretReference":       {"Secret", "name"},
	"SecretVolumeSource":    {"Secret", "secretName"},
}

// schemaRefs walks a schema and gives the fields that name a ConfigMap or a
// Secret, as "Kind path".
func schemaRefs(s *openapi.ResourceSchema, path string, found map[string]bool) {
	for name, p := range s.Schema.Properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		ref := p.Ref.String()
		if p.Items != nil && p.Items.Schema != nil {
			ref = p.Items.Schema.Ref.String()
		}
		kind := ref[strings.LastIndex(ref, ".")+1:]
		if target, ok := namesTarget[kind]; ok {
			found[target.kind+" "+at+"."+target.field] = true
		}
		if name == "secretName" || name == "configMapName" {
			found[map[string]string{"secretName": "Secret", "configMapName": "ConfigMap"}[name]+" "+at] = true
		}
		field := s.Field(name)
		if field != nil && p.Items != nil {
			field = field.Elements()
		}
		if field != nil && strings.Count(at, ".") < 8 {
			schemaRefs(field, at, found)
		}
	}
}

// tableRefs gives the rows of the table in the form of schemaRefs.
func tableRefs(t *RefTable) map[string]bool {
	out := map[string]bool{}
	write := func(prefix string, r refRow) {
		out[r.kind+" "+prefix+strings.Join(r.path, ".")] = true
	}
	for list := range imageKeys {
		for _, r := range t.containers {
			write(list+".", r)
		}
	}
	for _, r := range t.pods {
		write("", r)
	}
	return out
}

// TestReferenceTable holds the table against the OpenAPI schema of Kubernetes
// that kyaml carries: every field of PodSpec that names a ConfigMap or a Secret
// has a row, and every row a field.
func TestReferenceTable(t *testing.T) {
	pod := openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: "v1", Kind: "Pod"})
	if pod == nil {
		t.Fatal("kyaml has no schema of Pod")
	}
	fields := map[string]bool{}
	schemaRefs(pod.Field("spec"), "", fields)
	got := slices.Sorted(maps.Keys(tableRefs(NewRefTable())))
	want := slices.Sorted(maps.Keys(fields))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table differs from the schema (-schema +table)\n%s", diff)
	}
	// The comparison must notice a row that is missing.
	short := NewRefTable()
	short.pods = short.pods[1:]
	if cmp.Equal(want, slices.Sorted(maps.Keys(tableRefs(short)))) {
		t.Error("a missing row went unnoticed")
	}
}

// TestImages finds images wherever they stand, in the order of the text.
func TestImages(t *testing.T) {
	tests := map[string]struct {
		in   string
		want []string
	}{
		"every list":         {"apiVersion: v1\nkind: Pod\nspec:\n  initContainers: [{image: a}]\n  containers: [{image: b}, {name: none}, {image: {repository: c}}]\n  ephemeralContainers: [{image: d}]\n  volumes: [{image: {reference: e}}, {rbd: {image: disk}}, {emptyDir: {}}]\n", []string{"a", "b", "d", "e"}},
		"CronJob":            {"apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{image: a}]}}}}}\n", []string{"a"}},
		"PodTemplate":        {"apiVersion: v1\nkind: PodTemplate\ntemplate: {spec: {containers: [{image: a}]}}\n", []string{"a"}},
		"custom kind, twice": {"apiVersion: x.example/v1\nkind: Y\nspec:\n- {a: {containers: [{image: a}]}}\n- [{b: {containers: [{image: b}]}}]\n", []string{"a", "b"}},
		"Tekton":             {"apiVersion: tekton.dev/v1\nkind: Task\nspec: {steps: [{image: a}], sidecars: [{image: b}], stepTemplate: {image: c}}\n", []string{"a", "b", "c"}},
		"Argo":               {"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {templates: [{container: {image: a}}, {script: {image: b}, sidecars: [{image: c}]}]}\n", []string{"a", "b", "c"}},
		"Prometheus":         {"apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nspec: {image: a, containers: [{image: b}]}\n", []string{"a", "b"}},
		"not Prometheus":     {"apiVersion: example.com/v1\nkind: Prometheus\nspec: {image: a}\n", nil},
		"schema":             {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {containers: [{image: a}]}\n", nil},
		"Kyverno":            {"apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nspec: {containers: [{image: '!*:latest'}]}\n", nil},
		"Gatekeeper":         {"apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: X\nspec: {containers: [{image: a}]}\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, err := ReadFiles([]Input{{Data: []byte(tt.in)}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range NewImageTable().Images(l.Objects[0]) {
				got = append(got, f.Text())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("images (-want +got)\n%s", diff)
			}
		})
	}
}
