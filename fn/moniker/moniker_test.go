package moniker

import (
	"strings"
	"testing"

	"github.com/belay-krm/belay/fn/manifest"
)

// annotate gives the text after Annotate, and the list.
func annotate(t *testing.T, cfg Config, text string) (*manifest.List, string) {
	t.Helper()
	list, err := manifest.ReadFiles([]manifest.Input{{Path: "in.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	Annotate(list, cfg)
	out, err := list.Sources[0].Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return list, string(out)
}

var shop = Config{Application: "shop", ManagedBy: "belay", Labels: true, TemplateLabels: true}

const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n%sspec:\n%s  template:\n%s    spec:\n      containers: [{name: a}]\n"

func deploy(meta, spec, template string) string {
	return strings.NewReplacer("%s", "").Replace(strings.Replace(strings.Replace(strings.Replace(deployment, "%s", meta, 1), "%s", spec, 1), "%s", template, 1))
}

// TestAnnotate looks at single fields of what comes out, and wants a second run
// to change nothing.
func TestAnnotate(t *testing.T) {
	version := "  annotations: {artifact.spinnaker.io/name: c, artifact.spinnaker.io/version: v012}\n"
	tests := map[string]struct {
		cfg   func(*Config)
		in    string
		want  map[string]string // field path: value; "" for none
		notes int
	}{
		"everything": {
			cfg: func(c *Config) { c.Stack, c.Detail = "prod", "eu" },
			in:  deploy("", "", ""),
			want: map[string]string{
				"metadata.annotations[moniker.spinnaker.io/application]":               "shop",
				"metadata.annotations[moniker.spinnaker.io/cluster]":                   "deployment web",
				"metadata.annotations[moniker.spinnaker.io/stack]":                     "prod",
				"metadata.annotations[moniker.spinnaker.io/detail]":                    "eu",
				"metadata.annotations[moniker.spinnaker.io/sequence]":                  "",
				"metadata.labels[app.kubernetes.io/name]":                              "shop",
				"metadata.labels[app.kubernetes.io/managed-by]":                        "belay",
				"spec.template.metadata.annotations[moniker.spinnaker.io/application]": "shop",
				"spec.template.metadata.labels[app.kubernetes.io/name]":                "shop",
			},
		},
		"what is there wins": {
			in: deploy("  annotations: {moniker.spinnaker.io/application: own, moniker.spinnaker.io/cluster: x}\n  labels: {app.kubernetes.io/name: own, app.kubernetes.io/managed-by: Helm}\n", "", ""),
			want: map[string]string{
				"metadata.annotations[moniker.spinnaker.io/application]": "own",
				"metadata.annotations[moniker.spinnaker.io/cluster]":     "x",
				"metadata.labels[app.kubernetes.io/name]":                "own",
				"metadata.labels[app.kubernetes.io/managed-by]":          "belay",
			},
		},
		"a version": {
			in: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c-v012\n" + version,
			want: map[string]string{
				"metadata.annotations[moniker.spinnaker.io/cluster]":  "configMap c",
				"metadata.annotations[moniker.spinnaker.io/sequence]": "12",
				"metadata.labels[moniker.spinnaker.io/sequence]":      "12",
			},
		},
		"a cluster of one's own": {
			cfg:  func(c *Config) { c.Cluster = "shop-prod" },
			in:   deploy("", "", ""),
			want: map[string]string{"metadata.annotations[moniker.spinnaker.io/cluster]": "shop-prod"},
		},
		"custom kind": {
			in:   "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}\nspec: {template: {spec: {containers: []}}}\n",
			want: map[string]string{"metadata.annotations[moniker.spinnaker.io/cluster]": "Rollout.argoproj.io r", "spec.template.metadata.labels[app.kubernetes.io/name]": "shop"},
		},
		"no labels": {
			cfg:  func(c *Config) { c.Labels = false },
			in:   deploy("", "", ""),
			want: map[string]string{"metadata.labels": "", "spec.template.metadata.labels": "", "spec.template.metadata.annotations[moniker.spinnaker.io/cluster]": "deployment web"},
		},
		"no template labels": {
			cfg:  func(c *Config) { c.TemplateLabels = false },
			in:   deploy("", "", ""),
			want: map[string]string{"metadata.labels[app.kubernetes.io/name]": "shop", "spec.template.metadata.labels": ""},
		},
		"own selector": {
			in: deploy("", "  selector: {matchLabels: {app.kubernetes.io/managed-by: Helm, app.kubernetes.io/name: web}}\n", "    metadata: {labels: {app.kubernetes.io/managed-by: Helm, app.kubernetes.io/name: web}}\n"),
			want: map[string]string{
				"spec.template.metadata.labels[app.kubernetes.io/managed-by]": "Helm",
				"spec.template.metadata.labels[app.kubernetes.io/name]":       "web",
				"spec.selector.matchLabels[app.kubernetes.io/managed-by]":     "Helm",
				"metadata.labels[app.kubernetes.io/managed-by]":               "belay",
			},
			notes: 1,
		},
		"a Service would choose more pods": {
			in:    deploy("", "", "") + "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app.kubernetes.io/name: shop}}\n",
			want:  map[string]string{"spec.template.metadata.labels[app.kubernetes.io/name]": "", "metadata.labels[app.kubernetes.io/name]": "shop"},
			notes: 1,
		},
		"two labels together would": {
			in:    deploy("", "", "") + "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app.kubernetes.io/name: shop, app.kubernetes.io/managed-by: belay}}\n",
			want:  map[string]string{"spec.template.metadata.labels[app.kubernetes.io/name]": "shop", "spec.template.metadata.labels[app.kubernetes.io/managed-by]": ""},
			notes: 1,
		},
		"an expression would choose fewer": {
			in:    deploy("", "", "") + "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: n}\nspec: {podSelector: {matchExpressions: [{key: app.kubernetes.io/managed-by, operator: DoesNotExist}]}}\n",
			want:  map[string]string{"spec.template.metadata.labels[app.kubernetes.io/managed-by]": ""},
			notes: 1,
		},
		"a ServiceMonitor chooses Services": {
			in:    "apiVersion: v1\nkind: Service\nmetadata: {name: s, labels: {app.kubernetes.io/managed-by: Helm}}\n---\napiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\nspec: {selector: {matchLabels: {app.kubernetes.io/managed-by: Helm}}}\n",
			want:  map[string]string{"metadata.labels[app.kubernetes.io/managed-by]": "Helm"},
			notes: 1,
		},
		"an application of one's own, in quotes": {
			in: deploy("  annotations: {moniker.spinnaker.io/application: '\"own\"'}\n", "", ""),
			want: map[string]string{
				"metadata.annotations[moniker.spinnaker.io/application]":               `"own"`,
				"metadata.labels[app.kubernetes.io/name]":                              "own",
				"spec.template.metadata.annotations[moniker.spinnaker.io/application]": "own",
			},
		},
		"an application that is no label": {
			in:    deploy("  annotations: {moniker.spinnaker.io/application: a b}\n", "", ""),
			want:  map[string]string{"metadata.labels[app.kubernetes.io/name]": "", "metadata.labels[app.kubernetes.io/managed-by]": "belay"},
			notes: 1,
		},
		"suffix": {
			cfg:  func(c *Config) { c.ManagedBy, c.ManagedBySuffix = "spinnaker", "eu" },
			in:   deploy("", "", ""),
			want: map[string]string{"metadata.labels[app.kubernetes.io/managed-by]": "spinnaker-eu"},
		},
		"derived": {
			cfg: func(c *Config) { c.Application, c.Derive = "", true },
			in:  strings.Replace(deploy("", "", ""), "name: web", "name: shop-prod-blue-v003", 1),
			want: map[string]string{
				"metadata.annotations[moniker.spinnaker.io/application]": "shop",
				"metadata.annotations[moniker.spinnaker.io/cluster]":     "deployment shop-prod-blue",
				"metadata.annotations[moniker.spinnaker.io/sequence]":    "3",
				"metadata.annotations[moniker.spinnaker.io/stack]":       "",
				"metadata.labels[moniker.spinnaker.io/sequence]":         "3",
				"metadata.labels[app.kubernetes.io/name]":                "shop",
			},
		},
		"not derived where it is given": {
			cfg:  func(c *Config) { c.Derive = true },
			in:   strings.Replace(deploy("", "", ""), "name: web", "name: other-prod", 1),
			want: map[string]string{"metadata.annotations[moniker.spinnaker.io/application]": "shop"},
		},
		"derived from a system name": {
			cfg:  func(c *Config) { c.Application, c.Derive = "", true },
			in:   "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:node-v002'}\n",
			want: map[string]string{"metadata.annotations[moniker.spinnaker.io/application]": "system", "metadata.annotations[moniker.spinnaker.io/cluster]": "clusterRole system:node", "metadata.annotations[moniker.spinnaker.io/sequence]": "2"},
		},
		"a CronJob's pods": {
			in:   "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: n}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a}]}}}}}\n",
			want: map[string]string{"spec.jobTemplate.spec.template.metadata.annotations[moniker.spinnaker.io/cluster]": "cronJob n"},
		},
		"ignored": {in: deploy("  annotations: {caching.spinnaker.io/ignore: \"true\"}\n", "", ""), want: map[string]string{"metadata.labels": ""}},
		"local":   {in: deploy("  annotations: {config.kubernetes.io/local-config: \"true\"}\n", "", ""), want: map[string]string{"metadata.labels": ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := shop
			if tt.cfg != nil {
				tt.cfg(&cfg)
			}
			list, out := annotate(t, cfg, tt.in)
			for path, want := range tt.want {
				if got := list.Objects[0].Find(path).Value(); got != want || want == "" && list.Objects[0].Find(path) != nil {
					t.Errorf("%s is %q, want %q\n%s", path, got, want, out)
				}
			}
			if len(list.Results) != tt.notes {
				t.Errorf("%d notes, want %d: %v", len(list.Results), tt.notes, list.Findings(manifest.Info))
			}
			if _, again := annotate(t, cfg, out); again != out {
				t.Errorf("a second run changed\n%s\nto\n%s", out, again)
			}
		})
	}
}

// TestOperators goes through the operators of label selectors.
func TestOperators(t *testing.T) {
	for _, tt := range []struct {
		operator string
		values   []string
		labels   map[string]string
		want     bool
	}{
		{"In", []string{"a"}, map[string]string{"k": "a"}, true},
		{"In", []string{"a"}, map[string]string{"k": "b"}, false},
		{"In", []string{"a"}, nil, false},
		{"NotIn", []string{"a"}, map[string]string{"k": "a"}, false},
		{"NotIn", []string{"a"}, map[string]string{"k": "b"}, true},
		{"NotIn", []string{"a"}, nil, true},
		{"Exists", nil, map[string]string{"k": "x"}, true},
		{"Exists", nil, nil, false},
		{"DoesNotExist", nil, map[string]string{"k": "x"}, false},
		{"DoesNotExist", nil, nil, true},
	} {
		if got := (selector{rules: []rule{{"k", tt.operator, tt.values}}}).matches(tt.labels); got != tt.want {
			t.Errorf("%+v: got %t", tt, got)
		}
	}
}

func TestValidate(t *testing.T) {
	for value, ok := range map[string]bool{"shop": true, "a.b_c-d": true, "": true, "a b": false, "-a": false, strings.Repeat("a", 64): false} {
		cfg := Config{Application: value, ManagedBy: "belay", Labels: true}
		if err := cfg.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", value, err)
		}
	}
}
