package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// configs gives n ConfigMaps with a Deployment for each that names it: as plain
// objects, and as what kustomize needs to generate the ConfigMaps.
func configs(n int) (plain, deployments, kustomization string) {
	var p, d, k strings.Builder
	k.WriteString("resources: [deployments.yaml]\nconfigMapGenerator:\n")
	for i := range n {
		fmt.Fprintf(&p, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-%d\ndata:\n  KEY: \"value-%d\"\n---\n", i, i)
		fmt.Fprintf(&k, "- name: config-%d\n  literals: [KEY=value-%d]\n", i, i)
		fmt.Fprintf(&d, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-%d\nspec:\n  template:\n    spec:\n      containers:\n      - name: app\n        image: auto\n        envFrom:\n        - configMapRef:\n            name: config-%d\n---\n", i, i)
	}
	return p.String() + d.String(), d.String(), k.String()
}

// BenchmarkKustomize holds belay, whole processes, against kustomize's
// generators on the same objects: go test -run "^$" -bench Kustomize -benchtime 1x.
func BenchmarkKustomize(b *testing.B) {
	for _, n := range []int{1000, 3000} {
		dir := b.TempDir()
		plain, deployments, kustomization := configs(n)
		write(b, dir, map[string]string{"plain.yaml": plain, "deployments.yaml": deployments, "kustomization.yaml": kustomization})
		b.Run(fmt.Sprintf("belay-%d", n), func(b *testing.B) {
			for b.Loop() {
				runQuiet(b, dir, "sh", "-c", "belay hydrate - --set digests.mode=off < plain.yaml > out.yaml")
			}
		})
		b.Run(fmt.Sprintf("kustomize-%d", n), func(b *testing.B) {
			for b.Loop() {
				runQuiet(b, dir, "kustomize", "build", ".", "-o", filepath.Join(dir, "out.yaml"))
			}
		})
	}
}

func runQuiet(b *testing.B, dir string, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
