package strategy

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-krm/belay/fn/manifest"
)

func read(t *testing.T, text string) *manifest.List {
	t.Helper()
	list, err := manifest.ReadFiles([]manifest.Input{{Path: "in.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestTranslate wants each strategy in each deployer's words, and a second run to
// change nothing.
func TestTranslate(t *testing.T) {
	const options = "argocd.argoproj.io/sync-options"
	for name, tt := range map[string]struct {
		deployer, annotations string
		key, want             string
		findings              int
	}{
		"argocd recreate":              {"argocd", Recreate + `: "true"`, options, "Force=true,Replace=true", 0},
		"argocd replace beside others": {"argocd", Replace + `: "true", ` + options + `: "Prune=false, ServerSideApply=true"`, options, "Prune=false, ServerSideApply=true,Replace=true", 0},
		"argocd replace there":         {"argocd", Replace + `: "true", ` + options + `: " Replace=true "`, options, " Replace=true ", 0},
		"argocd replace refused":       {"argocd", Replace + `: "true", ` + options + `: Replace=false`, options, "Replace=false", 1},
		"argocd server side":           {"argocd", ServerSideApply + `: force-conflicts`, options, "ServerSideApply=true", 0},
		"argocd nothing":               {"argocd", ServerSideApply + `: "false"`, options, "", 0},
		"flux recreate":                {"flux", Recreate + `: "true"`, "kustomize.toolkit.fluxcd.io/force", "enabled", 1},
		"flux replace":                 {"flux", Replace + `: "true"`, "kustomize.toolkit.fluxcd.io/ssa", "Override", 1},
		"flux refused":                 {"flux", ServerSideApply + `: "true", kustomize.toolkit.fluxcd.io/ssa: Merge`, "kustomize.toolkit.fluxcd.io/ssa", "Merge", 1},
		"kapp recreate":                {"kapp", Recreate + `: "true"`, "kapp.k14s.io/update-strategy", "always-replace", 0},
		"kapp server side":             {"kapp", ServerSideApply + `: "true"`, "kapp.k14s.io/update-strategy", "", 1},
		"nobody":                       {"none", Recreate + `: "true"`, options, "", 0},
		"recreate first":               {"kapp", Recreate + `: "true", ` + Replace + `: "true", ` + ServerSideApply + `: "true"`, "kapp.k14s.io/update-strategy", "always-replace", 1},
		"said once":                    {"argocd", Recreate + `: "false", ` + Replace + `: "true", ` + ServerSideApply + `: "true", ` + options + `: Force=true`, options, "Force=true,Replace=true", 1},
		"replace before server side":   {"argocd", ServerSideApply + `: "true", ` + Replace + `: "true"`, options, "Replace=true", 1},
	} {
		t.Run(name, func(t *testing.T) {
			list := read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {"+tt.annotations+"}}\n")
			Translate(list, Config{Deployer: tt.deployer})
			if got := list.Objects[0].Annotation(tt.key); got != tt.want {
				t.Errorf("%s is %q, want %q", tt.key, got, tt.want)
			}
			if len(list.Results) != tt.findings {
				t.Errorf("%d findings, want %d: %v", len(list.Results), tt.findings, list.Results)
			}
			text, err := list.Sources[0].Bytes()
			if err != nil {
				t.Fatal(err)
			}
			again := read(t, string(text))
			if Translate(again, Config{Deployer: tt.deployer}); again.Sources[0].Changed() {
				t.Error("a second run changes something")
			}
		})
	}
}

// TestKnown wants each annotation once.
func TestKnown(t *testing.T) {
	all := Known()
	if len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Error("an annotation is there twice")
	}
	for _, key := range all {
		if prefix, name, ok := strings.Cut(key, "/"); !ok || name == "" || !strings.HasSuffix(prefix, ".spinnaker.io") {
			t.Errorf("%s is no annotation of Spinnaker's", key)
		}
	}
}
