package version

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// Folder is where versions that are objects of their own have their files.
const Folder = "versions"

// hookAnnotation with the value Skip keeps Argo CD from deploying an object.
// https://argo-cd.readthedocs.io/en/stable/user-guide/resource_hooks/
const hookAnnotation = "argocd.argoproj.io/hook"

type groupKey struct {
	pkg  string
	base lock.Base
}

// A group are the objects of a package that are versions of one base, and the
// source of them.
type group struct {
	groupKey
	members []*subject
	// head is what the next version is made of; nil where only frozen versions
	// are left, and where several could be meant.
	head   *subject
	frozen []*subject
	// keeps is set where the head stays under its own name; original where it is
	// deployed besides its versions.
	keeps, original bool
	// current are the labels of the version that was current before this run, and
	// committed those of the version that was when the lock was committed.
	current, committed []string
	// most is how many versions the users of the base can go back to, and the
	// current one; 0 without users.
	most int
}

// labelled gives the members that are versions.
func (g *group) labelled() []*subject {
	return slices.DeleteFunc(slices.Clone(g.members), func(s *subject) bool { return s.label == "" })
}

// hasVersion tells whether a name is that of one of the versions.
func (g *group) hasVersion(name string) bool {
	return slices.ContainsFunc(g.members, func(s *subject) bool { return s.label != "" && name == s.base.Name+"-"+s.label })
}

// version gives the frozen version with a label; nil for none.
func (g *group) version(label string) *subject {
	i := slices.IndexFunc(g.frozen, func(s *subject) bool { return s.label == label })
	if i < 0 {
		return nil
	}
	return g.frozen[i]
}

// classify tells sources from versions that are not to be edited.
func (r *renamer) classify() {
	for _, s := range r.subjects {
		k := groupKey{s.object.Package, s.base}
		if r.groups[k] == nil {
			r.groups[k] = &group{groupKey: k}
			r.order = append(r.order, r.groups[k])
		}
		s.group = r.groups[k]
		s.group.members = append(s.group.members, s)
	}
	for _, g := range r.order {
		r.freeze(g)
		r.stats.Versionable -= len(g.frozen)
		if (g.keeps || len(g.frozen) > 0 || r.opt.Retain) && r.opt.Durable(g.pkg) {
			r.keeping[g.pkg] = true
		}
	}
}

// freeze finds the head of a group; versions beside an object without one, which
// is what people edit, are frozen.
func (r *renamer) freeze(g *group) {
	var free []*subject // versions that may be edited
	for _, s := range g.members {
		if s.label == "" && g.head == nil {
			g.head = s
		}
	}
	g.keeps = g.head != nil && !g.head.released && r.keeps(g.head)
	for _, s := range g.labelled() {
		if s.frozen = g.head != nil || IsFrozen(s.object); s.frozen {
			g.frozen = append(g.frozen, s)
		} else {
			free = append(free, s)
		}
	}
	if g.head == nil {
		r.lead(g, free)
	}
	g.original = g.head != nil && r.isOriginal(g.head)
	g.current = r.locks[g.pkg].Versions[g.base].Current()
	if c := r.opt.Committed; c != nil {
		g.committed = c.Versions[g.base].Current()
	}
	if len(g.current) == 0 && g.head != nil && g.head.label == "" {
		for _, s := range g.frozen {
			if s.object.Annotation(RetainedAnnotation) == "" {
				g.current = append(g.current, s.label)
			}
		}
	}
}

// lead takes one of the versions that may be edited for the head. Where sources
// are kept, it becomes one.
func (r *renamer) lead(g *group, free []*subject) {
	if len(free) == 0 {
		return
	}
	if !r.keeps(free[0]) {
		if len(free) == 1 {
			g.head = free[0]
		}
		return
	}
	head, err := r.currentOf(free)
	if err != nil {
		r.report(free[0].object, manifest.Error, "", err.Error())
		return
	}
	g.head, g.keeps = head, true
	for _, s := range free {
		if s != head {
			s.frozen = true
			g.frozen = append(g.frozen, s)
		}
	}
}

// keeps tells whether an object stays under its own name.
func (r *renamer) keeps(s *subject) bool { return r.cfg.Source == "keep" || r.isOriginal(s) }

// isOriginal tells whether an object is deployed under its own name too.
func (r *renamer) isOriginal(s *subject) bool {
	return s.object.Annotation(KeepOriginalAnnotation) == "true" || slices.ContainsFunc(r.cfg.KeepOriginal, func(text string) bool {
		b, ok := lock.ParseBase(text)
		return ok && r.isPinned(b, s)
	})
}

// IsFrozen tells whether an object is a version that is not to be edited: one
// that is retained, or that has a file of its own.
func IsFrozen(o *manifest.Object) bool {
	base, label := baseOf(o)
	if label == "" {
		return false
	}
	file := filepath.ToSlash(o.File.Path)
	return o.Annotation(RetainedAnnotation) == "true" || path.Base(path.Dir(file)) == Folder && path.Base(file) == fileName(base, o.ID.Name)
}

// fileName gives the name of the file of a version.
func fileName(base lock.Base, name string) string {
	parts := []string{strings.ToLower(base.Kind), base.Namespace, name + ".yaml"}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "_")
}

// FileOf gives the place of a version that is an object of its own, below the
// folder of its package.
func FileOf(o *manifest.Object) string {
	base, _ := baseOf(o)
	return path.Join(Folder, fileName(base, o.ID.Name))
}

// release lets go of a former source that gets no versions any more: it is
// deployed again, and who named its current version names it.
func (r *renamer) release(s *subject) {
	switch {
	case s.object.IsSource():
		r.unmark(s.object)
		s.released, s.forced = true, true
		r.subjects = append(r.subjects, s)
	case s.label != "":
		r.leftover = append(r.leftover, s)
	}
}

// takeLeftover takes in versions that are not chosen any more: those that belay
// keeps, and those of what was released.
func (r *renamer) takeLeftover() {
	released := map[groupKey]bool{}
	for _, s := range r.subjects {
		if s.released {
			released[groupKey{s.object.Package, s.base}] = true
		}
	}
	for _, s := range r.leftover {
		if IsFrozen(s.object) || released[groupKey{s.object.Package, s.base}] {
			s.forced = true
			s.provides(s.object)
			r.subjects = append(r.subjects, s)
		}
	}
	slices.SortStableFunc(r.subjects, func(a, b *subject) int { return cmp.Compare(a.index, b.index) })
}

// verify wants a frozen version to be what it was made as.
func (r *renamer) verify(s *subject) {
	s.state, s.name, s.version = named, s.object.ID.Name, s.object
	content, err := Hash(s.object)
	if err != nil {
		r.failFields(s, err)
		return
	}
	switch s.object.Annotation(ContentAnnotation) {
	case content:
		return
	case "": // Spinnaker made it
		s.object.SetAnnotation(ContentAnnotation, content)
		return
	}
	hint := "restore it from git, or remove it"
	if h := s.group.head; h != nil {
		hint = "restore it from git, and edit " + h.object.ID.String() + inFile(h.object)
	}
	r.fail(s, fmt.Errorf("was edited, and a version must not change (%s)", hint))
}

// carry finds the object that carries the version of s, or makes it, and gives
// the name of the version that was current.
func (r *renamer) carry(s *subject, to, label string) (from string) {
	twin := s.group.version(label)
	from = s.object.Name()
	if !s.group.keeps || s != s.group.head {
		s.version = s.object
		if s.object.IsSource() {
			r.unmark(s.object)
		}
		if twin != nil { // this object is that version now
			r.gone = append(r.gone, twin.object)
			s.group.frozen = slices.DeleteFunc(s.group.frozen, func(f *subject) bool { return f == twin })
		}
		return from
	}
	if s.label != "" {
		r.unversion(s)
	} else if len(s.group.current) == 1 {
		from = s.base.Name + "-" + s.group.current[0]
	}
	if twin != nil {
		s.version = twin.object
		follow(s.version, s.object)
	} else {
		r.snapshot(s, to)
	}
	r.mark(s)
	return from
}

// snapshot makes the object that carries a new version.
func (r *renamer) snapshot(s *subject, to string) {
	place := ""
	if s.object.File.Path != "" && r.opt.Path != nil {
		place = r.opt.Path(path.Join(Folder, fileName(lock.BaseOf(s.object.ID, s.base.Name), to)))
	}
	o, err := r.list.Copy(s.object, s.object.Package, place)
	if err != nil {
		s.version = s.object
		r.fail(s, err)
		return
	}
	s.version = o
	r.made[o] = true
	for _, key := range slices.Sorted(maps.Keys(ofSource)) {
		if o.Annotation(key) == ofSource[key] {
			o.RemoveAnnotation(key)
		}
	}
}

// ofSource are annotations of a source that its versions do not have.
var ofSource = map[string]string{
	manifest.SourceAnnotation: "true", manifest.LocalConfigAnnotation: "true", hookAnnotation: "Skip", KeepOriginalAnnotation: "true",
}

// mark says on a source that it is none of what is deployed; the original that
// is deployed too is left as it is.
func (r *renamer) mark(s *subject) {
	o := s.object
	if s.group.original {
		if o.IsSource() {
			r.unmark(o)
		}
		return
	}
	o.SetAnnotation(manifest.LocalConfigAnnotation, "true")
	if hook := o.Annotation(hookAnnotation); hook != "" && hook != "Skip" {
		r.report(o, manifest.Warning, "metadata.annotations["+hookAnnotation+"]", "makes Argo CD deploy this source besides its versions (remove the annotation)")
	} else {
		o.SetAnnotation(hookAnnotation, "Skip")
	}
	o.SetAnnotation(manifest.SourceAnnotation, "true")
}

// unmark makes a source something that is deployed.
func (r *renamer) unmark(o *manifest.Object) {
	for _, key := range []string{manifest.SourceAnnotation, manifest.LocalConfigAnnotation, hookAnnotation} {
		if o.Annotation(key) == ofSource[key] {
			o.RemoveAnnotation(key)
		}
	}
}

// unversion gives a version its unversioned name back, so that it becomes a
// source.
func (r *renamer) unversion(s *subject) {
	o := s.object
	for _, key := range []string{TypeAnnotation, NameAnnotation, LocationAnnotation, VersionAnnotation, ContentAnnotation} {
		o.RemoveAnnotation(key)
	}
	if r.cfg.Immutable {
		o.Remove(o.Root().Get("immutable"))
	}
	if n := o.Root().Lookup(s.secretAt...); s.secret != "" && n.Value() == s.secret+"-"+s.label {
		o.Set(n, s.secret)
	}
	o.Rename(s.base.Name)
}

// follow gives a version the labels and annotations that its source has by now.
func follow(version, source *manifest.Object) {
	for _, field := range []string{"labels", "annotations"} {
		have, want := version.Root().Lookup("metadata", field), source.Root().Lookup("metadata", field)
		for k, v := range want.Pairs() {
			key := k.Value()
			if h := have.Get(key); h != nil && h.Value() == v.Value() {
				continue
			}
			if field == "labels" {
				version.SetLabel(key, v.Value())
			} else if !isPrivate(key) && ofSource[key] != v.Value() {
				version.SetAnnotation(key, v.Value())
			}
		}
		var gone []*manifest.Node
		for k, v := range have.Pairs() {
			if want.Get(k.Value()) == nil && !isPrivate(k.Value()) && !isOurs(k.Value()) {
				gone = append(gone, v)
			}
		}
		for _, v := range gone {
			version.Remove(v)
		}
	}
}

// isPrivate tells whether an annotation says something of one object alone.
func isPrivate(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	switch prefix {
	case "internal.config.kubernetes.io", "config.kubernetes.io", "config.k8s.io", "fn.belay.dev", "artifact.spinnaker.io":
		return key != manifest.LocalConfigAnnotation
	}
	return false
}
