package e2e_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kustomizeFiles is a base with a generated and a plain ConfigMap, and an
// overlay with a prefix that runs belay as a transformer.
func kustomizeFiles(image, transformers string) map[string]string {
	return map[string]string{
		"base/kustomization.yaml":    "resources: [app.yaml]\nconfigMapGenerator:\n- name: generated\n  literals: [A=b, \"HTML=<a&b>\"]\n  files: [bin.dat]\nsecretGenerator:\n- name: secret\n  literals: [A=b]\n",
		"base/bin.dat":               "\x00\xff",
		"base/app.yaml":              strings.Replace(app(image), "        envFrom:\n", "        envFrom:\n        - secretRef:\n            name: secret\n        - configMapRef:\n            name: generated\n", 1),
		"overlay/kustomization.yaml": "namePrefix: pre-\nnamespace: prod\nresources: [../base]\n" + transformers,
		"overlay/belay.yaml": `apiVersion: fn.belay.dev/v1alpha1
kind: Belay
metadata:
  name: belay
  annotations:
    config.kubernetes.io/function: |
      exec: {path: belay}
`,
	}
}

// checkBuilt wants a pinned image, and references that name the ConfigMaps that
// are there.
func checkBuilt(t *testing.T, out, pinned string) {
	t.Helper()
	contains(t, "build", out, pinned)
	names := regexp.MustCompile(`(?m)^  name: (pre-(?:generated|secret|app-config)-[a-z0-9]{10})$`).FindAllStringSubmatch(out, -1)
	if len(names) != 3 {
		t.Fatalf("found %d versioned ConfigMaps and Secrets, want 3:\n%s", len(names), out)
	}
	for _, n := range names {
		if !strings.Contains(out, "            name: "+n[1]+"\n") {
			t.Errorf("nothing refers to %s:\n%s", n[1], out)
		}
	}
}

// TestKustomizeHash wants hash: kustomize to give the names that the generators
// of kustomize give.
func TestKustomizeHash(t *testing.T) {
	dir := t.TempDir()
	files := kustomizeFiles("nginx@sha256:"+strings.Repeat("a", 64), "")
	write(t, dir, files)
	names := regexp.MustCompile(`(?m)^  name: (pre-(?:generated|secret)-[a-z0-9]{10})$`)
	want := names.FindAllString(must(t, dir, "", "kustomize", "build", "overlay").stdout, -1)
	files["base/kustomization.yaml"] += "generatorOptions: {disableNameSuffixHash: true}\n"
	write(t, dir, files)
	plain := must(t, dir, "", "kustomize", "build", "overlay")
	got := names.FindAllString(must(t, dir, plain.stdout, "belay", "hydrate", "-", "--set", "versions.hash=kustomize").stdout, -1)
	if len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("names are %q, and kustomize's %q", got, want)
	}
}

// TestKustomizeTransformer runs belay inside of kustomize build.
func TestKustomizeTransformer(t *testing.T) {
	reg := startRegistry(t, "", "")
	digest := reg.push(t, true)
	image := reg.host + "/team/app:1.0"
	dir := t.TempDir()
	write(t, dir, kustomizeFiles(image, "transformers: [belay.yaml]\n"))
	build := []string{"kustomize", "build", "--enable-alpha-plugins", "--enable-exec", "overlay"}
	first := must(t, dir, "", build...)
	checkBuilt(t, first.stdout, image+"@"+digest)
	if strings.Contains(first.stdout, "belay.lock") {
		t.Errorf("the lock was deployed:\n%s", first.stdout)
	}
	if second := must(t, dir, "", build...); second.stdout != first.stdout {
		t.Errorf("a second build gave\n%s\nafter\n%s", second.stdout, first.stdout)
	}
	// kustomize skips functions in silence without --enable-exec: check tells.
	skipped := must(t, dir, "", "kustomize", "build", "--enable-alpha-plugins", "overlay")
	if c := sh(t, dir, skipped.stdout, nil, "belay", "check", "-"); c.code != 1 {
		t.Errorf("check of what nobody hydrated gave exit code %d\n%s", c.code, c.stdout)
	}
	must(t, dir, first.stdout, "belay", "check", "-")
}

// TestKustomizePipe sends what kustomize builds through belay.
func TestKustomizePipe(t *testing.T) {
	reg := startRegistry(t, "", "")
	digest := reg.push(t, false)
	image := reg.host + "/team/app:1.0"
	dir := t.TempDir()
	write(t, dir, kustomizeFiles(image, ""))
	built := must(t, dir, "", "kustomize", "build", "overlay")
	out := must(t, dir, built.stdout, "belay", "hydrate", "-")
	contains(t, "stream", out.stdout, image+"@"+digest, "name: pre-app-config-m94kct8bh7\n")
	checkBuilt(t, out.stdout, image+"@"+digest) // what kustomize hashed itself keeps its name
	reg.stop()
	must(t, dir, out.stdout, "belay", "check", "-")
	again := must(t, dir, out.stdout, "belay", "hydrate", "-")
	if again.stdout != out.stdout {
		t.Errorf("a second run changed\n%s\nto\n%s", out.stdout, again.stdout)
	}
}

// TestKustomizeFailure wants no output when a tag is not there.
func TestKustomizeFailure(t *testing.T) {
	reg := startRegistry(t, "", "")
	dir := t.TempDir()
	write(t, dir, kustomizeFiles(reg.host+"/team/app:none", "transformers: [belay.yaml]\n"))
	c := sh(t, dir, "", nil, "kustomize", "build", "--enable-alpha-plugins", "--enable-exec", "overlay")
	if c.code == 0 || c.stdout != "" {
		t.Errorf("exit code %d, output\n%s", c.code, c.stdout)
	}
	contains(t, "stderr", c.stderr, "team/app:none: no such tag")
}

// TestKustomizeKeep wants a build to hold the versions, whether or not sources are
// kept, and the originals that are asked for.
func TestKustomizeKeep(t *testing.T) {
	for _, source := range []string{"rename", "keep"} {
		dir := t.TempDir()
		files := kustomizeFiles("nginx@sha256:"+strings.Repeat("a", 64), "transformers: [belay.yaml]\n")
		files["overlay/belay.yaml"] += "spec:\n  versions:\n    source: " + source + "\n    keepOriginal: [ConfigMap/prod/pre-original]\n"
		files["base/app.yaml"] += "        - configMapRef:\n            name: original\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: original\ndata: {A: b}\n"
		write(t, dir, files)
		build := []string{"kustomize", "build", "--enable-alpha-plugins", "--enable-exec", "overlay"}
		out := must(t, dir, "", build...).stdout
		names := regexp.MustCompile(`(?m)^  name: (pre-(?:original|app-config).*)$`).FindAllStringSubmatch(out, -1)
		var got []string
		for _, n := range names {
			got = append(got, n[1])
		}
		slices.Sort(got)
		if want := []string{"pre-app-config-m94kct8bh7", "pre-original", "pre-original-449fmcg5md"}; !slices.Equal(got, want) {
			t.Errorf("%s: the build holds %q, want %q:\n%s", source, got, want, out)
		}
		if second := must(t, dir, "", build...).stdout; second != out {
			t.Errorf("%s: a second build gave\n%s\nafter\n%s", source, second, out)
		}
	}
}
