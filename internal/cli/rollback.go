package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/version"
)

// A rollback puts one object back as it was.
type rollback struct {
	past
	to, label string
	force     bool

	id    string            // of the commit
	old   *manifest.List    // the tree as it was
	files map[string][]byte // what will be written, by path
	notes []string
}

func newRollback(env Env) *cobra.Command {
	r := &rollback{past: past{env: env}, files: map[string][]byte{}}
	cmd := &cobra.Command{
		Use:   "rollback KIND/NAME [DIR] (--to REV | --version LABEL)",
		Short: "Put one workload back as it was at a git revision",
		Long: `Rollback writes the bytes that a workload had at a git revision below DIR (the
working directory, if none is given), and every ConfigMap and Secret version that
it named then and that is not there any more; nothing else. It reads git, and
asks nobody. What it writes is for you to look at and to commit.`,
		Args: r.args,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&r.to, "to", "", "git `REV` at which the workload was as it should be")
	cmd.Flags().StringVar(&r.label, "version", "", "`LABEL` of a version, such as v003: the newest revision that named one")
	cmd.Flags().StringVarP(&r.namespace, "namespace", "n", "", "`NAMESPACE` of the workload, where its name alone does not say which is meant")
	cmd.Flags().BoolVar(&r.force, "force", false, "write over changes that are not committed")
	return cmd
}

func (r *rollback) run(ctx context.Context) error {
	if (r.to == "") == (r.label == "") {
		return usagef("belay rollback: say --to REV, or --version LABEL")
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	now, err := r.find(r.present())
	if err != nil {
		return err
	}
	then, err := r.then(ctx, now)
	if err != nil {
		return err
	}
	if err := errors.Join(r.replace(now, then), r.restoreVersions(ctx, then)); err != nil {
		return err
	}
	if len(r.files) == 0 {
		r.say(then, "nothing was written")
		return nil
	}
	if err := r.refuseDirty(ctx); err != nil {
		return err
	}
	var changes []change
	for _, path := range slices.Sorted(maps.Keys(r.files)) {
		changes = append(changes, change{path: path, data: r.files[path], root: r.dir})
	}
	if err := writeAll(changes); err != nil {
		return err
	}
	r.say(then, strings.Join(slices.Concat(r.versionsOf(then), shortDigests(r.imagesOf(then))), " "))
	for _, c := range changes {
		_, _ = fmt.Fprintf(r.env.Stderr, "belay: wrote %s\n", c.path)
	}
	_, _ = fmt.Fprintf(r.env.Stderr, "belay: look at it, run belay hydrate, which brings the lock in step, and commit\n")
	return nil
}

func (r *rollback) say(o *manifest.Object, what string) {
	for _, n := range r.notes {
		_, _ = fmt.Fprintf(r.env.Stderr, "belay: warning: %s\n", n)
	}
	_, _ = fmt.Fprintf(r.env.Stderr, "belay: %s is as it was at %s: %s\n", o.ID, short(r.id), what)
}

// then gives the object as it was, and chooses the package that it belongs to.
func (r *rollback) then(ctx context.Context, now *manifest.Object) (*manifest.Object, error) {
	rev := r.to
	if r.label != "" {
		var err error
		if rev, err = r.revisionOf(ctx, now); err != nil {
			return nil, err
		}
	}
	var err error
	if r.id, err = r.repo.resolve(ctx, rev); err != nil {
		return nil, err
	}
	list, broken, err := r.repo.tree(ctx, r.id, "")
	if err != nil {
		return nil, err
	}
	r.old = list
	o, err := r.findNear(r.old.Objects, now)
	switch {
	case err != nil:
		return nil, err
	case o == nil && broken != nil:
		return nil, fmt.Errorf("%s: was not found at %s, where some files cannot be read: %w", &r.past, rev, broken)
	case o == nil:
		return nil, fmt.Errorf("%s: was not there at %s (belay history %s/%s lists its revisions)", &r.past, rev, r.kind, r.name)
	case o.Document() == "":
		return nil, fmt.Errorf("%s: is an item of a List at %s, and cannot be put back byte by byte", &r.past, rev)
	}
	r.choose(o.File.Path)
	return o, nil
}

// revisionOf gives the newest commit at which the object named a version.
func (r *rollback) revisionOf(ctx context.Context, now *manifest.Object) (string, error) {
	all, err := r.revisions(ctx)
	if err != nil {
		return "", err
	}
	for _, rev := range all {
		if !slices.ContainsFunc(rev.Versions, func(v string) bool { return strings.HasSuffix(v, "-"+r.label) }) {
			continue
		}
		list, _, err := r.repo.tree(ctx, rev.Commit, "")
		if err != nil {
			return "", err
		}
		o, err := r.findNear(list.Objects, now)
		if err != nil || o == nil {
			continue
		}
		for _, ref := range r.table.References(o) {
			if t := r.target(list.Objects, o, ref); t != nil {
				if label, ok := version.IsVersion(t); ok && label == r.label {
					return rev.Commit, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s: named no version %s in any commit (belay history %s/%s lists its revisions)", &r.past, r.label, r.kind, r.name)
}

// replace gives the object its old bytes.
func (r *rollback) replace(now, then *manifest.Object) error {
	if now == nil {
		if isThere(then.File.Path) {
			return fmt.Errorf("%s: was removed from %s, which is still there (put it back with git)", &r.past, then.File.Path)
		}
		r.files[then.File.Path] = []byte(ended(then.Document()))
		return nil
	}
	from, to, ok := now.DocumentRange()
	if !ok {
		return fmt.Errorf("%s: is an item of a List in %s, and cannot be replaced byte by byte", &r.past, now.File.Path)
	}
	text, err := os.ReadFile(now.File.Path)
	if err != nil {
		return plain(err)
	}
	old := then.Document()
	if bytes.Contains(text, []byte("\r\n")) && !strings.Contains(old, "\r\n") {
		old = strings.ReplaceAll(old, "\n", "\r\n") // git writes it so, or somebody did
	}
	if to < len(text) {
		old = ended(old) // another document follows
	}
	if strings.HasPrefix(string(text[from:to]), "---") && !strings.HasPrefix(old, "---") {
		old = "---\n" + old
	}
	if string(text[from:to]) == old {
		return nil
	}
	return r.put(now, slices.Concat(text[:from], []byte(old), text[to:]))
}

// put takes a file with an object replaced, if it holds as many objects as
// before.
func (r *rollback) put(o *manifest.Object, data []byte) error {
	before := 0
	for _, other := range r.present() {
		if other.File.Path == o.File.Path {
			before++
		}
	}
	list, err := manifest.ReadFiles([]manifest.Input{{Path: o.File.Path, Data: data, Stream: true}})
	if err != nil || len(list.Objects) != before {
		return fmt.Errorf("%s: cannot be replaced in %s: the documents would run together", &r.past, o.File.Path)
	}
	r.files[o.File.Path] = data
	return nil
}

func ended(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// restoreVersions puts back the versions that the object named and that are
// gone. What has no version is not put back: it is what it is now for all who use
// it.
func (r *rollback) restoreVersions(ctx context.Context, then *manifest.Object) error {
	var errs []error
	done := map[string]bool{}
	old, present := r.inPackage(r.old.Objects), r.inPackage(r.present())
	for _, ref := range r.table.References(then) {
		id := ref.Kind + "/" + ref.Name()
		if ref.Group != "" || ref.Kind != "ConfigMap" && ref.Kind != "Secret" || done[id] {
			continue
		}
		done[id] = true
		before, is := r.target(old, then, ref), r.target(present, then, ref)
		if before == nil && is == nil {
			var err error
			before, err = r.search(ctx, then, ref)
			errs = append(errs, err)
		}
		switch {
		case before == nil && is == nil:
			r.notes = append(r.notes, fmt.Sprintf("%s: is in no commit of %s, so that it must come from elsewhere", id, r.dir))
		case before == nil:
		case is != nil:
			errs = append(errs, sameContent(before, is))
		case isVersion(before):
			errs = append(errs, r.restore(before))
		default:
			r.notes = append(r.notes, fmt.Sprintf("%s: is not there any more, and has no versions (put it back with git, if it should be)", id))
		}
	}
	return errors.Join(errs...)
}

func isVersion(o *manifest.Object) bool {
	_, ok := version.IsVersion(o)
	return ok
}

// target gives the object that a reference means, or that a controller makes
// the Secret of that it means; nil where it is not there.
func (r *rollback) target(objects []*manifest.Object, from *manifest.Object, ref manifest.Reference) *manifest.Object {
	ns := ref.Namespace
	if ns == "" {
		ns = from.ID.Namespace
	}
	for _, o := range objects {
		if o.IsLocal() || r.namespaceOf(o.ID.Namespace) != r.namespaceOf(ns) {
			continue
		}
		if o.ID.Kind == ref.Kind && o.ID.Group() == ref.Group && o.ID.Name == ref.Name() || ref.Kind == "Secret" && ref.Group == "" && version.Provides(o) == ref.Name() {
			return o
		}
	}
	return nil
}

// search looks for a version in all commits; nil where there is none.
func (r *rollback) search(ctx context.Context, from *manifest.Object, ref manifest.Reference) (*manifest.Object, error) {
	commits, err := r.repo.commits(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range commits {
		list, _, err := r.repo.tree(ctx, c.id, ref.Name())
		if err != nil {
			return nil, err
		}
		if o := r.target(r.inPackage(list.Objects), from, ref); o != nil && isVersion(o) {
			return o, nil
		}
	}
	return nil, nil
}

// sameContent wants what is there under the name of a version to be what was.
func sameContent(before, is *manifest.Object) error {
	if !isVersion(before) {
		return nil
	}
	a, errA := version.Hash(before)
	b, errB := version.Hash(is)
	if errA == nil && errB == nil && a == b {
		return nil
	}
	return fmt.Errorf("%s: is there with another content than then (a version must not be edited: see %s)", is.ID, is.File.Path)
}

// restore puts a version into the file that it was in, where that is gone, or
// into one of its own.
func (r *rollback) restore(o *manifest.Object) error {
	text := o.Document()
	if text == "" {
		return fmt.Errorf("%s: was an item of a List, and cannot be put back byte by byte", o.ID)
	}
	path := o.File.Path
	if isThere(path) {
		path = filepath.Join(r.pack.dir, version.FileOf(o))
	}
	before, planned := r.files[path]
	if !planned && isThere(path) {
		data, err := os.ReadFile(path)
		if err != nil {
			return plain(err)
		}
		before = data
	}
	if len(before) > 0 {
		text = ended(string(before)) + "---\n" + text
	}
	r.files[path] = []byte(ended(text))
	return nil
}

// refuseDirty refuses to write over what is in no commit.
func (r *rollback) refuseDirty(ctx context.Context) error {
	if r.force {
		return nil
	}
	dirty, err := r.repo.dirty(ctx, slices.Sorted(maps.Keys(r.files)))
	if err == nil && len(dirty) > 0 {
		err = fmt.Errorf("%s: has changes that are not committed (commit them, or say --force)", strings.Join(dirty, ", "))
	}
	return err
}
