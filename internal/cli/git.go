package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// A repo is a folder in a git repository. It is only read.
type repo struct {
	dir   string
	blobs map[string][]byte // that were read
}

func openRepo(ctx context.Context, dir string) (*repo, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, usageError{plain(err)}
	}
	r := &repo{dir: dir, blobs: map[string][]byte{}}
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("git is not installed, and the history is read with it")
	}
	_, err := r.git(ctx, nil, "rev-parse", "--show-toplevel")
	return r, err
}

// git runs git in the folder. It asks nobody and changes nothing.
func (r *repo) git(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.dir, "--no-optional-locks"}, args...)...)
	cmd.Stdin, cmd.Env = stdin, withoutRepository(os.Environ())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimPrefix(line, "fatal: "))
	}
	return out, nil
}

// withoutRepository leaves out the variables by which git tells its hooks which
// repository they belong to: they would be taken relative to the folder.
// https://git-scm.com/docs/githooks
func withoutRepository(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}, name)
	})
}

// resolve gives the commit that a revision stands for.
func (r *repo) resolve(ctx context.Context, rev string) (string, error) {
	out, err := r.git(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%s: there is no such revision", rev)
	}
	return strings.TrimSpace(string(out)), nil
}

// A commit is one revision of the tree.
type commit struct{ id, date, subject string }

// commits gives the commits that touched the folder, the newest first.
func (r *repo) commits(ctx context.Context) ([]commit, error) {
	out, err := r.git(ctx, nil, "log", "--first-parent", "--format=%H%x09%cs%x09%s", "--", ".")
	if err != nil {
		return nil, err
	}
	var all []commit
	for line := range strings.Lines(string(out)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(parts) == 3 {
			all = append(all, commit{parts[0], parts[1], parts[2]})
		}
	}
	return all, nil
}

// tree gives the objects below the folder at a commit, of the files that hold a
// text; hidden files and folders are left out. broken says what could not be read.
func (r *repo) tree(ctx context.Context, id, holds string) (list *manifest.List, broken, err error) {
	out, err := r.git(ctx, nil, "ls-tree", "-r", "-z", id, "--", ".")
	if err != nil {
		return nil, nil, err
	}
	type file struct{ path, blob string }
	var files []file
	var missing []string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		meta, path, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(meta)
		if len(fields) != 3 || fields[1] != "blob" || fields[0] == "120000" || !isManifestFile(path) || strings.Contains("/"+path, "/.") {
			continue
		}
		files = append(files, file{path, fields[2]})
		if _, ok := r.blobs[fields[2]]; !ok {
			missing = append(missing, fields[2])
		}
	}
	if err := r.fetch(ctx, missing); err != nil {
		return nil, nil, err
	}
	var inputs []manifest.Input
	for _, f := range files {
		if bytes.Contains(r.blobs[f.blob], []byte(holds)) {
			inputs = append(inputs, manifest.Input{Path: filepath.Join(r.dir, f.path), Data: r.blobs[f.blob]})
		}
	}
	list, broken = manifest.ReadFiles(inputs)
	if list == nil {
		return nil, nil, broken
	}
	return list, broken, nil
}

// committed gives a file of the folder as it is in the last commit; false where
// that cannot be told: outside of a repository, and while branches are merged.
func (r *repo) committed(ctx context.Context, name string) ([]byte, bool) {
	file := "HEAD:./" + name
	out, err := r.git(ctx, strings.NewReader(file+"\nMERGE_HEAD\n"), "cat-file", "--batch")
	head, rest, _ := bytes.Cut(out, []byte("\n"))
	fields := strings.Fields(string(head))
	if err != nil || len(fields) != 3 || fields[1] != "blob" {
		return nil, false
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil || size > len(rest) || strings.TrimSpace(string(rest[size:])) != "MERGE_HEAD missing" {
		return nil, false
	}
	return rest[:size], true
}

// fetch reads blobs.
func (r *repo) fetch(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	out, err := r.git(ctx, strings.NewReader(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch")
	if err != nil {
		return err
	}
	in := bufio.NewReader(bytes.NewReader(out))
	for range ids {
		head, err := in.ReadString('\n')
		fields := strings.Fields(head)
		if err != nil || len(fields) != 3 {
			return fmt.Errorf("git cat-file: %q is not understood", strings.TrimSpace(head))
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		data := make([]byte, size+1)
		if _, err := io.ReadFull(in, data); err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		r.blobs[fields[0]] = data[:size]
	}
	return nil
}

// dirty gives the files among paths that differ from the last commit, or that it
// does not know.
func (r *repo) dirty(ctx context.Context, paths []string) ([]string, error) {
	args := []string{"status", "--porcelain=v1", "-z", "--untracked-files=all", "--"}
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		args = append(args, abs)
	}
	out, err := r.git(ctx, nil, args...)
	if err != nil {
		return nil, err
	}
	var all []string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if len(entry) > 3 {
			all = append(all, entry[3:])
		}
	}
	return all, nil
}
