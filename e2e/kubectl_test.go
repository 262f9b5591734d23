package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	schema "sigs.k8s.io/kustomize/kyaml/openapi/kubernetesapi/v1_21_2"
)

const installKubectl = "see https://kubernetes.io/docs/tasks/tools/#kubectl"

// An api answers what kubectl asks of an API server before it would apply
// something: which kinds there are, their schema, and that no object is there.
type api struct{ t *testing.T }

// kinds are the kinds that the api knows, by group and version.
var kinds = map[string][]string{
	"v1":                           {"ConfigMap", "Secret", "ServiceAccount", "Service", "Pod"},
	"apps/v1":                      {"Deployment", "StatefulSet", "DaemonSet"},
	"batch/v1":                     {"Job", "CronJob"},
	"rbac.authorization.k8s.io/v1": {"Role"},
	"networking.k8s.io/v1":         {"Ingress"},
}

func (a api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
	switch {
	case r.URL.Path == "/openapi/v2":
		w.Header().Set("Content-Type", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
		data, err := schema.Asset("kubernetesapi/v1_21_2/swagger.pb")
		if err != nil {
			a.t.Error(err)
		}
		_, _ = w.Write(data)
	case r.URL.Path == "/api":
		a.answer(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case r.URL.Path == "/apis":
		a.answer(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups()})
	case kinds[version] != nil:
		a.answer(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources(kinds[version])})
	default:
		w.WriteHeader(http.StatusNotFound)
		a.answer(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound})
	}
}

func (a api) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.t.Error(err)
	}
}

func groups() []any {
	var out []any
	for version := range kinds {
		if group, v, ok := strings.Cut(version, "/"); ok {
			gv := map[string]string{"groupVersion": version, "version": v}
			out = append(out, map[string]any{"name": group, "versions": []any{gv}, "preferredVersion": gv})
		}
	}
	return out
}

func resources(kinds []string) []any {
	var out []any
	for _, k := range kinds {
		plural := strings.ToLower(k) + "s"
		if strings.HasSuffix(k, "ss") {
			plural = strings.ToLower(k) + "es"
		}
		out = append(out, map[string]any{"name": plural, "namespaced": true, "kind": k, "verbs": []string{"get", "create", "patch"}})
	}
	return out
}

// TestKubectl wants kubectl to accept what belay writes, by the schema of
// Kubernetes: versions that are renamed and those that are files of their own, with
// retained ones, monikers and the lock.
func TestKubectl(t *testing.T) {
	need(t, "kubectl", installKubectl)
	server := httptest.NewServer(api{t})
	t.Cleanup(server.Close)
	const objects = `apiVersion: v1
kind: Secret
metadata: {name: db}
type: Opaque
stringData: {password: one}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [app-config], verbs: [get]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  defaultBackend: {service: {name: web, port: {number: 80}}}
  tls: [{hosts: [example.com], secretName: db}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 0 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: c
            image: example.com/c:1
            env: [{name: P, valueFrom: {secretKeyRef: {name: db, key: password}}}]
---
`
	for _, source := range []string{"rename", "keep"} {
		t.Run(source, func(t *testing.T) {
			dir := t.TempDir()
			manifests := strings.Replace(objects+app("example.com/app:1"), "spec:\n  template:\n    spec:", "spec:\n  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n    spec:", 1)
			write(t, dir, map[string]string{
				"deploy/app.yaml": manifests,
				"belay.yaml":      "apiVersion: fn.belay.dev/v1alpha1\nkind: Belay\nspec:\n  digests: {mode: \"off\"}\n  versions: {naming: sequence, source: " + source + "}\n  moniker: {application: shop}\n",
			})
			must(t, dir, "", "belay", "hydrate", "deploy", "--config", "belay.yaml")
			path := filepath.Join(dir, "deploy", "app.yaml")
			write(t, dir, map[string]string{"deploy/app.yaml": strings.Replace(read(t, path), "FOO: bar", "FOO: baz", 1)})
			must(t, dir, "", "belay", "hydrate", "deploy", "--config", "belay.yaml")

			env := []string{"KUBECONFIG=" + os.DevNull, "HOME=" + t.TempDir()}
			args := []string{"kubectl", "--server", server.URL, "apply", "--dry-run=client", "--validate=true", "-R", "-f"}
			c := sh(t, dir, "", env, append(args, "deploy")...)
			if c.code != 0 {
				t.Fatalf("kubectl: exit code %d\n%s%s", c.code, c.stdout, c.stderr)
			}
			contains(t, "what kubectl would do", c.stdout, "configmap/app-config-v001 created (dry run)", "deployment.apps/my-app created (dry run)", "ingress.networking.k8s.io/web created (dry run)")
			if source == "keep" {
				contains(t, "what kubectl would do", c.stdout, "configmap/app-config-v000 created (dry run)", "secret/db-v000 created (dry run)")
			}

			// The schema is in use: what is wrong is refused.
			write(t, dir, map[string]string{"wrong/app.yaml": strings.Replace(read(t, path), "immutable: true", "immutabel: true", 1) + "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nimmutable: 3\ndata: {k: [v]}\n"})
			if c := sh(t, dir, "", env, append(args, "wrong")...); c.code == 0 {
				t.Errorf("kubectl accepts anything:\n%s", c.stdout)
			}
		})
	}
}
