package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const installKpt = "see https://kpt.dev/installation/kpt-cli/, or run: go install github.com/kptdev/kpt@v1.0.0-beta.60"

// app is a Deployment and its ConfigMap, with a comment to be kept.
func app(image string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: app-config
data:
  FOO: bar
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: my-app
spec:
  template:
    spec:
      containers:
      - name: app
        image: %s # the app
        envFrom:
        - configMapRef:
            name: app-config
`, image)
}

func kptfile(pipeline string) string {
	return "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n" + pipeline
}

// TestKptRender hydrates a package with its pipeline, twice, the second time
// with no registry to ask.
func TestKptRender(t *testing.T) {
	need(t, "kpt", installKpt)
	reg := startRegistry(t, "", "")
	digest := reg.push(t, true)
	image := reg.host + "/team/app:1.0"
	for name, pipeline := range map[string]string{
		"configMap":  "pipeline:\n  mutators:\n  - exec: belay\n    configMap:\n      versions.naming: sequence\n      moniker.application: shop\n",
		"configPath": "pipeline:\n  mutators:\n  - exec: belay\n    configPath: fn-config.yaml\n",
		"flat":       "pipeline:\n  mutators:\n  - exec: belay\n    configPath: flat.yaml\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			const flat = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\ndata:\n  versions.naming: sequence\n  moniker.application: shop\n"
			write(t, dir, map[string]string{
				"Kptfile":   kptfile(pipeline),
				"flat.yaml": flat,
				"app.yaml":  app(image),
				"fn-config.yaml": "apiVersion: fn.belay.dev/v1alpha1\nkind: Belay\nmetadata:\n  name: config\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n" +
					"spec:\n  versions:\n    naming: sequence\n  moniker:\n    application: shop\n",
			})
			must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
			first := read(t, filepath.Join(dir, "app.yaml"))
			contains(t, "app.yaml", first, "name: app-config-v000", image+"@"+digest+" # the app", "moniker.spinnaker.io/application: shop")
			if got := strings.Count(first, "app-config-v000"); got != 2 {
				t.Errorf("app-config-v000 stands %d times, want the object and its reference:\n%s", got, first)
			}
			contains(t, "lock", read(t, filepath.Join(dir, "belay.lock.yaml")), image+": "+digest, "ConfigMap/app-config@v000")

			if got := read(t, filepath.Join(dir, "flat.yaml")); name == "flat" && got != flat {
				t.Errorf("the configuration was annotated:\n%s", got)
			}

			before := tree(t, dir)
			must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
			if after := tree(t, dir); after != before {
				t.Errorf("a second render changed\n%s\nto\n%s", before, after)
			}
			write(t, dir, map[string]string{"app.yaml": strings.Replace(first, "FOO: bar", "FOO: baz", 1)})
			must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
			contains(t, "app.yaml after an edit", read(t, filepath.Join(dir, "app.yaml")), "name: app-config-v001", "name: app-config-v001\n", "sequence: \"1\"")
		})
	}
}

// TestKptNoRegistry renders a package that is pinned already while no registry
// is there to ask.
func TestKptNoRegistry(t *testing.T) {
	need(t, "kpt", installKpt)
	reg := startRegistry(t, "", "")
	reg.push(t, false)
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"Kptfile":  kptfile("pipeline:\n  mutators:\n  - exec: belay\n"),
		"app.yaml": app(reg.host + "/team/app:1.0"),
	})
	must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
	before := tree(t, dir)
	reg.stop()
	must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
	if after := tree(t, dir); after != before {
		t.Errorf("a second render changed\n%s\nto\n%s", before, after)
	}
}

// TestKptEval gives options as arguments.
func TestKptEval(t *testing.T) {
	need(t, "kpt", installKpt)
	reg := startRegistry(t, "", "")
	digest := reg.push(t, false)
	dir := t.TempDir()
	write(t, dir, map[string]string{"Kptfile": kptfile(""), "app.yaml": app(reg.host + "/team/app:1.0")})
	must(t, dir, "", "kpt", "fn", "eval", ".", "--exec", "belay", "--", "digests.mode=missing", "versions.naming=hash")
	contains(t, "app.yaml", read(t, filepath.Join(dir, "app.yaml")), "@"+digest, "name: app-config-m94kct8bh7\n")
	c := sh(t, dir, "", nil, "kpt", "fn", "eval", ".", "--exec", "belay", "--truncate-output=false", "--", "digests.mod=missing")
	if c.code == 0 {
		t.Error("an unknown option was accepted")
	}
	contains(t, "output", c.stdout+c.stderr, "data[digests.mod]: unknown option; did you mean digests.mode?")
}

// TestKptFailure wants a package as it was, and the finding in the results,
// when a tag is not there.
func TestKptFailure(t *testing.T) {
	need(t, "kpt", installKpt)
	reg := startRegistry(t, "", "")
	reg.push(t, false)
	dir, results := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{
		"Kptfile":    kptfile("pipeline:\n  mutators:\n  - exec: belay\n"),
		"app.yaml":   app(reg.host + "/team/app:2.0"),
		"other.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: fine\nspec:\n  containers:\n  - name: a\n    image: " + reg.host + "/team/app:1.0\n",
	})
	before := tree(t, dir)
	c := sh(t, dir, "", nil, "kpt", "fn", "render", ".", "--allow-exec", "--results-dir", results)
	if c.code == 0 {
		t.Error("kpt succeeded")
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the package changed from\n%s\nto\n%s", before, after)
	}
	want := reg.host + "/team/app:2.0: no such tag (check the tag, or set digests.mode: locked)"
	contains(t, "output", c.stdout+c.stderr, want)
	contains(t, "results.yaml", read(t, filepath.Join(results, "results.yaml")), want, "name: my-app", "path: app.yaml", "class: not found")
}

// TestKptSubPackage wants each package to have a lock of its own.
func TestKptSubPackage(t *testing.T) {
	need(t, "kpt", installKpt)
	reg := startRegistry(t, "", "")
	reg.push(t, false)
	dir := t.TempDir()
	pipeline := "pipeline:\n  mutators:\n  - exec: belay\n    configMap: {versions.naming: sequence}\n"
	write(t, dir, map[string]string{
		"Kptfile":      kptfile(pipeline),
		"app.yaml":     app(reg.host + "/team/app:1.0"),
		"sub/Kptfile":  kptfile(pipeline),
		"sub/app.yaml": strings.ReplaceAll(app(reg.host+"/team/app:1.0"), "FOO: bar", "FOO: sub"),
	})
	must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
	contains(t, "lock", read(t, filepath.Join(dir, "belay.lock.yaml")), "app-config-v000")
	contains(t, "lock of the sub-package", read(t, filepath.Join(dir, "sub", "belay.lock.yaml")), "app-config-v000")
	before := tree(t, dir)
	must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
	if after := tree(t, dir); after != before {
		t.Errorf("a second render changed\n%s\nto\n%s", before, after)
	}
}

// TestKptKeep keeps sources in a package and its sub-package: each edit is one new
// file, and kpt removes the file of a version that nothing needs any more.
func TestKptKeep(t *testing.T) {
	need(t, "kpt", installKpt)
	dir := t.TempDir()
	pipeline := "pipeline:\n  mutators:\n  - exec: belay\n    configMap: {digests.mode: \"off\", versions.naming: sequence, versions.source: keep}\n"
	manifests := strings.Replace(app("example.com/app:1"), "spec:\n  template:", "spec:\n  revisionHistoryLimit: 1\n  template:", 1)
	write(t, dir, map[string]string{
		"Kptfile": kptfile(pipeline), "app.yaml": manifests,
		"sub/Kptfile": kptfile(pipeline), "sub/app.yaml": strings.ReplaceAll(manifests, "FOO: bar", "FOO: sub"),
	})
	render := func() {
		t.Helper()
		must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
		before := tree(t, dir)
		must(t, dir, "", "kpt", "fn", "render", ".", "--allow-exec")
		if after := tree(t, dir); after != before {
			t.Errorf("a second render changed\n%s\nto\n%s", before, after)
		}
	}
	render()
	path := filepath.Join(dir, "app.yaml")
	for _, edit := range [][2]string{{"FOO: bar", "FOO: baz"}, {"FOO: baz", "FOO: third"}} {
		write(t, dir, map[string]string{"app.yaml": strings.Replace(read(t, path), edit[0], edit[1], 1)})
		render()
	}
	text := read(t, path)
	contains(t, "app.yaml", text, "name: app-config\n", "fn.belay.dev/source: \"true\"", "name: app-config-v002\n")
	got, err := filepath.Glob(filepath.Join(dir, "versions", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || filepath.Base(got[0]) != "configmap_app-config-v001.yaml" || filepath.Base(got[1]) != "configmap_app-config-v002.yaml" {
		t.Errorf("the versions are %v", got)
	}
	contains(t, "a version", read(t, got[0]), "FOO: baz", "fn.belay.dev/retained: \"true\"", "immutable: true")
	contains(t, "the version of the sub-package", read(t, filepath.Join(dir, "sub", "versions", "configmap_app-config-v000.yaml")), "FOO: sub")
}
