package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// notRun are the commands of the documents that no test runs, with the reason.
var notRun = map[string]string{
	"make demo":   "the test of internal/demo runs it",
	"make test":   "this is a part of it",
	"make golden": "rewrites the project's own files",
	"make lint":   "a step of its own in CI",
	"make fuzz":   "a step of its own in CI",
	"make bench":  "takes minutes, and says nothing on a busy machine",
	"make check":  "lint and tests again",
	"go install github.com/belay-krm/belay@latest":              "needs a release",
	"kubectl get deployments,services -o yaml | belay status -": "needs a cluster; the script status of testdata/golden runs belay status",
	".ci/run": "runs this test",
}

// TestDocuments runs the shell commands of the README and CONTRIBUTING, block
// by block, where the folders that they name are.
func TestDocuments(t *testing.T) {
	need(t, "kpt", installKpt)
	reg := startRegistry(t, "", "")
	digest := reg.push(t, false)
	image := reg.host + "/team/app:1.0"
	blocks := 0
	for _, doc := range []string{"README.md", "CONTRIBUTING.md", "docs/images.md", "docs/versions.md", "docs/spinnaker.md"} {
		for _, block := range shellBlocks(read(t, filepath.Join("..", doc))) {
			var script []string
			for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
				if notRun[line] == "" {
					script = append(script, line)
				}
			}
			if len(script) == 0 {
				continue
			}
			blocks++
			dir := t.TempDir()
			files := kustomizeFiles(image, "transformers: [belay.yaml]\n")
			files["deploy/app.yaml"] = app(image)
			files["other/app.yaml"] = app(image)
			files["kbld.lock.yml"] = "apiVersion: kbld.k14s.io/v1alpha1\nkind: Config\noverrides:\n- {image: '" + image + "', newImage: '" + reg.host + "/team/app@" + digest + "'}\n"
			files["pkg/Kptfile"] = kptfile("pipeline:\n  mutators:\n  - exec: belay\n")
			files["pkg/app.yaml"] = app(image)
			if strings.Contains(block, "| belay hydrate -") {
				files["overlay/kustomization.yaml"] = strings.Replace(files["overlay/kustomization.yaml"], "transformers: [belay.yaml]\n", "", 1)
			}
			write(t, dir, files)
			if strings.Contains(block, "belay rollback") {
				commitTwice(t, dir)
			}
			must(t, dir, "", "sh", "-e", "-c", strings.Join(script, "\n"))
		}
	}
	if blocks < 5 {
		t.Errorf("%d blocks were run: are the fences still sh?", blocks)
	}
}

// commitTwice makes a repository of dir, with a commit before and one after a
// hydrate.
func commitTwice(t *testing.T, dir string) {
	t.Helper()
	must(t, dir, "", "sh", "-e", "-c", `git init -q && git config user.name a && git config user.email a@example.com
git add -A && git commit -q -m before && belay hydrate deploy && git add -A && git commit -q -m after`)
}

// shellBlocks gives the text of the fences for a shell.
func shellBlocks(markdown string) []string {
	var out []string
	for _, part := range strings.Split(markdown, "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		out = append(out, block)
	}
	return out
}

// TestExamples renders and builds the examples, with their image in a registry
// that is there.
func TestExamples(t *testing.T) {
	need(t, "kpt", installKpt)
	reg := startRegistry(t, "", "")
	digest := reg.push(t, true)
	local := func(path string) string {
		return strings.ReplaceAll(read(t, filepath.Join("..", "examples", path)), "registry.example.com/my-application:1.0.0", reg.host+"/team/app:1.0")
	}
	dir := t.TempDir()
	files := map[string]string{}
	for _, path := range []string{
		"kpt/Kptfile", "kpt/app.yaml", "kpt/belay.yaml",
		"kustomize/base/app.yaml", "kustomize/base/kustomization.yaml", "kustomize/overlay/belay.yaml", "kustomize/overlay/kustomization.yaml",
	} {
		files[path] = local(path)
	}
	write(t, dir, files)
	must(t, dir, "", "kpt", "fn", "render", "kpt", "--allow-exec")
	contains(t, "kpt", read(t, filepath.Join(dir, "kpt", "app.yaml")), "@"+digest, "name: app-config-v000", "moniker.spinnaker.io/application: shop")
	built := must(t, dir, "", "kustomize", "build", "--enable-alpha-plugins", "--enable-exec", "kustomize/overlay")
	contains(t, "kustomize", built.stdout, "@"+digest, "name: prod-app-config-")
	must(t, dir, built.stdout, "belay", "check", "-")
}
