package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn/manifest"
)

// A past finds an object in the history of a folder.
type past struct {
	env       Env
	dir       string
	kind      string // as the user wrote it: Kind or Kind.group
	name      string
	namespace string // "" for any
	format    string

	repo  *repo
	job   *job
	pack  *pack // of the object
	table *manifest.RefTable
}

// args reads KIND/NAME [DIR].
func (p *past) args(cmd *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usagef("%s: name the object as KIND/NAME, and the folder if it is another", cmd.CommandPath())
	}
	var ok bool
	if p.kind, p.name, ok = strings.Cut(args[0], "/"); !ok || p.kind == "" || p.name == "" {
		return usagef("%s: %q must be KIND/NAME, such as Deployment/web", cmd.CommandPath(), args[0])
	}
	p.dir = "."
	if len(args) == 2 {
		p.dir = args[1]
	}
	return nil
}

func (p *past) String() string {
	if p.namespace == "" {
		return p.kind + " " + p.name
	}
	return p.kind + " " + p.namespace + "/" + p.name
}

// is tells whether an object is the one that the user named.
func (p *past) is(o *manifest.Object) bool {
	kind, group, withGroup := strings.Cut(p.kind, ".")
	return strings.EqualFold(o.ID.Kind, kind) && (!withGroup || o.ID.Group() == group) && o.ID.Name == p.name &&
		(p.namespace == "" || o.ID.Namespace == p.namespace) && !o.IsLocal()
}

// find gives the object of a list; nil where it is not there.
func (p *past) find(objects []*manifest.Object) (*manifest.Object, error) {
	var found []*manifest.Object
	for _, o := range objects {
		if p.is(o) {
			found = append(found, o)
		}
	}
	switch {
	case len(found) == 0:
		return nil, nil
	case len(found) == 1:
		return found[0], nil
	}
	var where []string
	for _, o := range found {
		where = append(where, o.ID.String()+" in "+o.File.Path)
	}
	return nil, fmt.Errorf("%s could be any of %s (say the namespace with -n, or name the folder)", p, strings.Join(where, ", "))
}

// findNear gives the object of a list as find does; of several in different
// files, that in the file where another state of it is.
func (p *past) findNear(objects []*manifest.Object, near *manifest.Object) (*manifest.Object, error) {
	if near != nil {
		for _, o := range objects {
			if p.is(o) && o.ID == near.ID && o.File.Path == near.File.Path {
				return o, nil
			}
		}
	}
	return p.find(objects)
}

// open makes ready what a past needs. The folder may hold no objects any more.
func (p *past) open(ctx context.Context) error {
	var err error
	if p.repo, err = openRepo(ctx, p.dir); err != nil {
		return err
	}
	p.job = &job{env: p.env, paths: []string{p.dir}}
	if err := p.job.read(); err != nil && len(p.job.packs) == 0 {
		return err
	}
	p.choose(p.dir)
	if o, err := p.find(p.present()); err == nil && o != nil {
		p.choose(o.File.Path)
	}
	return nil
}

// present gives the objects that are there now.
func (p *past) present() []*manifest.Object {
	var out []*manifest.Object
	for _, pk := range p.job.packs {
		if pk.list != nil {
			out = append(out, pk.list.Objects...)
		}
	}
	return out
}

// choose takes the package that a path belongs to.
func (p *past) choose(path string) {
	p.pack = p.packOf(path)
	p.table = manifest.NewRefTable(p.pack.config.Versions.Rows()...)
}

// packOf gives the package with the longest folder around a path.
func (p *past) packOf(path string) *pack {
	best := p.job.packs[0]
	for _, pk := range p.job.packs[1:] {
		rel, err := filepath.Rel(pk.dir, path)
		if err == nil && filepath.IsLocal(rel) && len(pk.dir) >= len(best.dir) {
			best = pk
		}
	}
	return best
}

// inPackage gives the objects of the package.
func (p *past) inPackage(objects []*manifest.Object) []*manifest.Object {
	var out []*manifest.Object
	for _, o := range objects {
		if p.packOf(o.File.Path) == p.pack {
			out = append(out, o)
		}
	}
	return out
}

// namespaceOf gives the namespace that objects are deployed to.
func (p *past) namespaceOf(ns string) string {
	return cmp.Or(ns, p.pack.config.Versions.DefaultNamespace)
}

// A revision is one state of the object.
type revision struct {
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Subject string `json:"subject"`
	// Images and Versions are what the object names; nil where it is not there.
	Images   []string `json:"images"`
	Versions []string `json:"versions"`
	Deleted  bool     `json:"deleted,omitempty"`
}

// revisions gives the commits that changed the object, the newest first. A
// commit at which it cannot be told, since a file cannot be read, is passed over.
func (p *past) revisions(ctx context.Context) ([]revision, error) {
	commits, err := p.repo.commits(ctx)
	if err != nil {
		return nil, err
	}
	var out []revision
	var last *manifest.Object
	for _, c := range slices.Backward(commits) {
		list, broken, err := p.repo.tree(ctx, c.id, p.name)
		if err != nil {
			return nil, err
		}
		o, err := p.findNear(list.Objects, last)
		if err != nil {
			return nil, fmt.Errorf("at %s: %w", short(c.id), err)
		}
		if o == nil && (last == nil || broken != nil) || o != nil && last != nil && sameState(o, last) {
			continue
		}
		last = o
		r := revision{Commit: c.id, Date: c.date, Subject: c.subject, Deleted: o == nil}
		if o != nil {
			r.Images, r.Versions = p.imagesOf(o), p.versionsOf(o)
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	return out, nil
}

// sameState tells whether an object did not change: its text, or of an item of a
// List what it means.
func sameState(a, b *manifest.Object) bool {
	if a.Document() != "" && b.Document() != "" {
		return a.Document() == b.Document()
	}
	return manifest.Equal(a.Root(), b.Root())
}

func short(id string) string { return id[:min(len(id), 12)] }

func (p *past) imagesOf(o *manifest.Object) []string {
	out := []string{}
	for _, f := range manifest.NewImageTable().Images(o) {
		out = append(out, f.Text())
	}
	return out
}

// versionsOf gives the ConfigMaps and Secrets that an object names.
func (p *past) versionsOf(o *manifest.Object) []string {
	out := []string{}
	for _, ref := range p.table.References(o) {
		if ref.Group == "" && (ref.Kind == "ConfigMap" || ref.Kind == "Secret") {
			out = append(out, ref.Kind+"/"+ref.Name())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func newHistory(env Env) *cobra.Command {
	p := &past{env: env}
	cmd := &cobra.Command{
		Use:   "history KIND/NAME [DIR]",
		Short: "List the revisions of a workload: commit, date, images and versions",
		Long: `History lists the commits that changed an object below DIR (the working
directory, if none is given), the newest first, with the images and the
ConfigMaps and Secrets that it named then. It reads git, and asks nobody.`,
		Args: p.args,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.history(cmd.Context()) },
	}
	cmd.Flags().StringVarP(&p.namespace, "namespace", "n", "", "`NAMESPACE` of the object, where its name alone does not say which is meant")
	cmd.Flags().StringVar(&p.format, "format", "text", "how to print: text or json")
	return cmd
}

func (p *past) history(ctx context.Context) error {
	if p.format != "text" && p.format != "json" {
		return usagef("--format %s: must be text or json", p.format)
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	all, err := p.revisions(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: is in no commit of %s", p, p.dir)
	}
	if p.format == "json" {
		return writeJSON(p.env.Stdout, all)
	}
	w := tabwriter.NewWriter(p.env.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range all {
		what := strings.Join(slices.Concat(r.Versions, shortDigests(r.Images)), " ")
		if r.Deleted {
			what = "deleted"
		}
		// A tabwriter gives its errors when it is flushed.
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", short(r.Commit), r.Date, r.Subject, what)
	}
	return w.Flush()
}

// shortDigests cuts digests to what tells them apart for a person.
func shortDigests(images []string) []string {
	out := make([]string, len(images))
	for i, s := range images {
		name, digest, ok := strings.Cut(s, "@")
		out[i] = s
		if ok {
			out[i] = name + "@" + digest[:min(len(digest), len("sha256:")+12)]
		}
	}
	return out
}
