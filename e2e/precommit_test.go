package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPreCommit runs the hooks in a scratch repository, from a copy of the
// working tree, as pre-commit would from a release.
func TestPreCommit(t *testing.T) {
	need(t, "pre-commit", "apt-get install pre-commit, or see https://pre-commit.com/#install")
	dir := t.TempDir()
	rev := copyProject(t, filepath.Join(dir, "belay"))
	repo := filepath.Join(dir, "repo")
	write(t, repo, map[string]string{
		".pre-commit-config.yaml": "repos:\n- repo: ../belay\n  rev: " + rev + "\n  hooks:\n  - id: belay-hydrate\n    args: [deploy]\n  - id: belay-check\n    args: [deploy]\n",
		"deploy/belay.yaml":       "apiVersion: fn.belay.dev/v1alpha1\nkind: Belay\nspec:\n  digests:\n    mode: \"off\"\n",
		"deploy/app.yaml":         app("example.com/app:1"),
	})
	git(t, repo, "init", "-q")
	git(t, repo, "add", ".")
	env := []string{"PRE_COMMIT_HOME=" + filepath.Join(dir, "cache")}
	check := sh(t, repo, "", env, "pre-commit", "run", "belay-check", "--all-files")
	if check.code == 0 {
		t.Errorf("check passed before anything was hydrated:\n%s%s", check.stdout, check.stderr)
	}
	contains(t, "check", check.stdout, "ConfigMap app-config: is not versioned by its content")
	hydrate := sh(t, repo, "", env, "pre-commit", "run", "belay-hydrate", "--all-files")
	contains(t, "hydrate", hydrate.stdout, "files were modified by this hook")
	contains(t, "app.yaml", read(t, filepath.Join(repo, "deploy", "app.yaml")), "app-config-m94kct8bh7")
	git(t, repo, "add", ".")
	if c := sh(t, repo, "", env, "pre-commit", "run", "--all-files"); c.code != 0 {
		t.Errorf("the hooks fail on what they made:\n%s%s", c.stdout, c.stderr)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := must(t, dir, "", append([]string{"git", "-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
	return strings.TrimSpace(c.stdout)
}

// copyProject commits the files of the working tree to a repository of its own,
// and gives the commit. The modules that builds do not need stay out.
func copyProject(t *testing.T, to string) string {
	t.Helper()
	out, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatalf("listing the project's files: %v", err)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.HasPrefix(path, "e2e/") || strings.HasPrefix(path, "tools/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("..", path))
		if os.IsNotExist(err) {
			continue // deleted, but not in the index yet
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, map[string]string{path: string(data)})
	}
	git(t, to, "init", "-q")
	git(t, to, "add", ".")
	git(t, to, "commit", "-q", "-m", "copy")
	return git(t, to, "rev-parse", "HEAD")
}
