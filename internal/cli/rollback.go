package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/version"
)

// A rollback puts one object back as it was.
type rollback struct {
	past
	to, label string
	force     bool

	job *job
	old *manifest.List // the tree as it was
	id  string         // of the commit
}

func newRollback(env Env) *cobra.Command {
	r := &rollback{past: past{env: env}}
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
	now, err := r.now()
	if err != nil {
		return err
	}
	then, err := r.then(ctx)
	if err != nil {
		return err
	}
	changes, lost, err := r.changes(ctx, now, then)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		_, _ = fmt.Fprintf(r.env.Stderr, "belay: %s is as it was at %s: nothing was written\n", then.ID, short(r.id))
		return nil
	}
	if err := r.refuseDirty(ctx, changes); err != nil {
		return err
	}
	if err := writeAll(changes); err != nil {
		return err
	}
	r.say(then, changes, lost)
	return nil
}

// now gives the object as it is in the tree; nil where it was removed.
func (r *rollback) now() (*manifest.Object, error) {
	r.job = &job{env: r.env, paths: []string{r.dir}}
	if err := r.job.read(); err != nil {
		return nil, err
	}
	var all []*manifest.Object
	for _, p := range r.job.packs {
		all = append(all, p.list.Objects...)
	}
	return r.find(all)
}

// then gives the object as it was.
func (r *rollback) then(ctx context.Context) (*manifest.Object, error) {
	rev := r.to
	if r.label != "" {
		var err error
		if rev, err = r.revisionOf(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if r.id, err = r.repo.resolve(ctx, rev); err != nil {
		return nil, err
	}
	if r.old, err = r.repo.tree(ctx, r.id, ""); err != nil {
		return nil, err
	}
	o, err := r.find(r.old.Objects)
	if err == nil && o == nil {
		err = fmt.Errorf("%s: was not there at %s (belay history %s/%s lists its revisions)", &r.past, rev, r.kind, r.name)
	}
	if err == nil && o.Document() == "" {
		err = fmt.Errorf("%s: is an item of a List at %s, and cannot be put back byte by byte", &r.past, rev)
	}
	return o, err
}

// revisionOf gives the newest commit at which the object named a version.
func (r *rollback) revisionOf(ctx context.Context) (string, error) {
	all, err := r.revisions(ctx)
	if err != nil {
		return "", err
	}
	for _, rev := range all {
		if slices.ContainsFunc(rev.Versions, func(v string) bool { return strings.HasSuffix(v, "-"+r.label) }) {
			return rev.Commit, nil
		}
	}
	return "", fmt.Errorf("%s: named no version %s in any commit (belay history %s/%s lists its revisions)", &r.past, r.label, r.kind, r.name)
}

// changes gives the files to write: that of the object, and those of the
// versions that it named and that are gone. lost are the names that it referred
// to and that no commit holds.
func (r *rollback) changes(ctx context.Context, now, then *manifest.Object) (changes []change, lost []string, err error) {
	c, err := r.replace(now, then)
	if err != nil {
		return nil, nil, err
	}
	if c != nil {
		changes = append(changes, *c)
	}
	pack := r.packOf(now)
	var errs []error
	done := map[string]bool{}
	for _, ref := range r.referenceTable(pack).References(then) {
		id := ref.Kind + "/" + ref.Name()
		if ref.Kind == "" || done[id] {
			continue
		}
		done[id] = true
		before, is := r.target(r.old.Objects, then, ref), r.target(pack.list.Objects, then, ref)
		switch {
		case before == nil && is == nil && ref.Group == "" && (ref.Kind == "ConfigMap" || ref.Kind == "Secret"):
			found, err := r.search(ctx, then, ref)
			errs = append(errs, err)
			if found == nil {
				lost = append(lost, id)
				continue
			}
			before = found
		case before == nil:
			continue
		case is != nil:
			errs = append(errs, sameContent(before, is))
			continue
		}
		c, err := r.restore(pack, before)
		errs = append(errs, err)
		if err == nil {
			changes = append(changes, c)
		}
	}
	return changes, lost, errors.Join(errs...)
}

// packOf gives the package of an object; the first for one that was removed.
func (r *rollback) packOf(o *manifest.Object) *pack {
	for _, p := range r.job.packs {
		if o != nil && slices.Contains(p.list.Objects, o) {
			return p
		}
	}
	return r.job.packs[0]
}

func (r *rollback) referenceTable(p *pack) *manifest.RefTable {
	return manifest.NewRefTable(p.config.Versions.Rows()...)
}

// replace gives the file of the object with its old bytes; nil where it has
// them.
func (r *rollback) replace(now, then *manifest.Object) (*change, error) {
	if now == nil {
		if _, err := os.Lstat(then.File.Path); err == nil {
			return nil, fmt.Errorf("%s: was removed from %s, which is still there (put it back with git)", &r.past, then.File.Path)
		}
		return &change{path: then.File.Path, data: []byte(then.Document()), root: r.dir}, nil
	}
	from, to, ok := now.DocumentRange()
	if !ok {
		return nil, fmt.Errorf("%s: is an item of a List in %s, and cannot be replaced byte by byte", &r.past, now.File.Path)
	}
	text, err := os.ReadFile(now.File.Path)
	if err != nil {
		return nil, plain(err)
	}
	old := then.Document()
	if to < len(text) && !strings.HasSuffix(old, "\n") {
		old += "\n" // another document follows
	}
	if string(text[from:to]) == old {
		return nil, nil
	}
	return &change{path: now.File.Path, data: slices.Concat(text[:from], []byte(old), text[to:]), root: r.dir}, nil
}

// target gives the object that a reference means; nil where it is not there.
func (r *rollback) target(objects []*manifest.Object, from *manifest.Object, ref manifest.Reference) *manifest.Object {
	ns := ref.Namespace
	if ns == "" {
		ns = from.ID.Namespace
	}
	for _, o := range objects {
		if o.ID.Kind == ref.Kind && o.ID.Group() == ref.Group && o.ID.Name == ref.Name() && o.ID.Namespace == ns && !o.IsLocal() {
			return o
		}
	}
	return nil
}

// search looks for a version in the commits before. A name that never was in the
// tree is that of something outside of it: then nothing is found, and that is no
// error, unless the lock of that time says that it was a version.
func (r *rollback) search(ctx context.Context, from *manifest.Object, ref manifest.Reference) (*manifest.Object, error) {
	commits, err := r.repo.commits(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range commits {
		list, err := r.repo.tree(ctx, c.id, ref.Name())
		if err != nil {
			return nil, err
		}
		if o := r.target(list.Objects, from, ref); o != nil {
			return o, nil
		}
	}
	if l, err := lock.Find(r.old, ""); err == nil {
		for base, h := range l.Versions {
			if slices.ContainsFunc(h.Versions, func(v lock.Version) bool { return base.Kind == ref.Kind && v.Name == ref.Name() }) {
				return nil, fmt.Errorf("%s/%s: is a version that %s needs, and no commit holds it (roll back further, or write it anew)", ref.Kind, ref.Name(), from.ID)
			}
		}
	}
	return nil, nil
}

// sameContent wants what is there under a name to be what was.
func sameContent(before, is *manifest.Object) error {
	a, errA := version.Hash(before)
	b, errB := version.Hash(is)
	if errA == nil && errB == nil && a == b || before.Annotation(version.ContentAnnotation) == "" {
		return nil // what has no version is as it is now, for all who use it
	}
	return fmt.Errorf("%s: is there with another content than then (a version must not be edited: see %s)", is.ID, is.File.Path)
}

// restore gives the file for a version that is gone: the one that it was in, if
// that is not there now, or one of its own.
func (r *rollback) restore(p *pack, o *manifest.Object) (change, error) {
	text := o.Document()
	if text == "" {
		return change{}, fmt.Errorf("%s: was an item of a List, and cannot be put back byte by byte", o.ID)
	}
	path := o.File.Path
	if _, err := os.Lstat(path); err == nil {
		name := strings.ToLower(o.ID.Kind) + "_" + o.ID.Name + ".yaml"
		if o.ID.Namespace != "" {
			name = strings.ToLower(o.ID.Kind) + "_" + o.ID.Namespace + "_" + o.ID.Name + ".yaml"
		}
		path = filepath.Join(p.dir, "versions", name)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return change{path: path, data: []byte(text), root: r.dir}, nil
}

// refuseDirty refuses to write over what is in no commit.
func (r *rollback) refuseDirty(ctx context.Context, changes []change) error {
	if r.force {
		return nil
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.path
	}
	dirty, err := r.repo.dirty(ctx, paths)
	if err == nil && len(dirty) > 0 {
		err = fmt.Errorf("%s: has changes that are not committed (commit them, or say --force)", strings.Join(dirty, ", "))
	}
	return err
}

// say tells what was done.
func (r *rollback) say(o *manifest.Object, changes []change, lost []string) {
	for _, l := range lost {
		_, _ = fmt.Fprintf(r.env.Stderr, "belay: warning: %s: the workload refers to it, and it was never in this tree\n", l)
	}
	_, _ = fmt.Fprintf(r.env.Stderr, "belay: %s is as it was at %s: %s\n", o.ID, short(r.id), strings.Join(slices.Concat(r.versionsOf(o), shortDigests(r.imagesOf(o))), " "))
	for _, c := range changes {
		_, _ = fmt.Fprintf(r.env.Stderr, "belay: wrote %s\n", c.path)
	}
}
