package version

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// Annotations by which kustomize remembers what objects were called and which
// prefixes they got, until it fixes references at the end of a build.
// https://github.com/kubernetes-sigs/kustomize/blob/master/api/internal/utils/annotations.go
const (
	prefixes = "internal.config.kubernetes.io/prefixes"
	suffixes = "internal.config.kubernetes.io/suffixes"
)

// A key is what a reference says of its target.
type key struct{ pkg, group, kind, namespace, name string }

// An index finds the object that a reference means.
type index struct {
	current  map[key]*manifest.Object // by the name it has
	subjects map[*manifest.Object]*subject
	bases    map[key][]*subject // by the unversioned name
	secrets  map[key]*subject   // by the Secret that a controller makes of them
	previous map[key][]*subject // by the names it had before kustomize changed them
}

// makeIndex indexes the objects of the kinds that have versions.
func (r *renamer) makeIndex() *index {
	x := &index{
		current: make(map[key]*manifest.Object, len(r.subjects)), subjects: make(map[*manifest.Object]*subject, len(r.subjects)),
		bases: map[key][]*subject{}, previous: map[key][]*subject{},
		secrets: map[key]*subject{},
	}
	kinds := map[string]bool{}
	for _, s := range r.subjects {
		kinds[s.object.ID.Kind] = true
	}
	for _, o := range r.list.Objects {
		if kinds[o.ID.Kind] && !o.IsLocal() {
			x.current[r.keyOf(o, o.ID.Name)] = o
		}
	}
	for _, s := range r.subjects {
		x.subjects[s.object] = s
		if s.secret != "" {
			r.provide(x, s)
		}
		if s.label != "" && (!s.frozen || s.group.head == nil) {
			k := r.keyOf(s.object, s.base.Name)
			x.bases[k] = append(x.bases[k], s)
		}
		if names := s.object.Annotation(manifest.PreviousNamesAnnotation); names != "" {
			for name := range strings.SplitSeq(names, ",") { // one for each layer, often the same
				k := r.keyOf(s.object, name)
				if !slices.Contains(x.previous[k], s) {
					x.previous[k] = append(x.previous[k], s)
				}
			}
		}
	}
	return x
}

// provide indexes a subject by the Secret that is made of it. Two that make one
// Secret are an error.
func (r *renamer) provide(x *index, s *subject) {
	names := []string{s.secret, s.secret + "-" + s.label}
	if s.frozen && s.group.head != nil {
		names = names[1:] // the head is what the unversioned name means
	}
	for _, name := range names {
		k := key{s.object.Package, "", "Secret", r.namespace(s.object.ID.Namespace), name}
		if other := x.secrets[k]; other != nil && other.label == "" && s.label == "" {
			r.fail(s, fmt.Errorf("makes the Secret %s, as does %s (a reference could mean either)", name, other.object.ID))
			return
		}
		x.secrets[k] = s
	}
}

func (r *renamer) keyOf(o *manifest.Object, name string) key {
	return key{o.Package, o.ID.Group(), o.ID.Kind, r.namespace(o.ID.Namespace), name}
}

// namespace gives the namespace that objects are deployed to; an absent one
// matches an absent one, or the default of the configuration.
func (r *renamer) namespace(ns string) string {
	if ns == "" {
		return r.cfg.DefaultNamespace
	}
	return ns
}

// connect finds the subject of every reference of the list.
func (r *renamer) connect() {
	if len(r.subjects) == 0 {
		return
	}
	r.readPins()
	table := manifest.NewRefTable(r.cfg.Rows()...)
	r.index = r.makeIndex()
	for i, o := range r.list.Objects {
		if o.IsLocal() {
			continue
		}
		var edges []edge
		for _, ref := range table.References(o) {
			r.seen = append(r.seen, ref.Node)
			s, err := r.target(o, ref)
			if own := r.index.subjects[o]; own == nil || !own.frozen {
				s, err = r.meantNow(o, ref, s, err)
			}
			if err != nil {
				r.report(o, manifest.Error, o.Path(ref.Node), err.Error())
			}
			if s == nil || s.object == o {
				continue
			}
			s.referred = true
			edges = append(edges, edge{ref, s, ref.Name()})
		}
		if s := r.index.subjects[o]; s != nil {
			s.refs = edges
		} else if len(edges) > 0 {
			r.referrers = append(r.referrers, referrer{o, i, edges})
		}
	}
}

// meantNow gives the subject that a reference means by now: the version that is
// current in place of the one that was, or the one that the configuration pins.
func (r *renamer) meantNow(o *manifest.Object, ref manifest.Reference, s *subject, err error) (*subject, error) {
	if err != nil {
		return nil, err
	}
	if s == nil {
		if s, err = r.missing(o, ref); s == nil || err != nil {
			return nil, err
		}
	}
	if g := s.group; s.frozen && g.head != nil {
		if r.follows(o, g, s.label) {
			s = g.head
		} else if ref.List == nil {
			r.report(o, manifest.Warning, o.Path(ref.Node), fmt.Sprintf("%s is not the current version of %s: a rollback, which stays (write %s to follow that again)", ref.Name(), g.head.object.ID, g.base.Name))
		}
	}
	if ref.List != nil {
		return s, nil // a list has all versions
	}
	return r.pinned(s)
}

// follows tells whether an object that names a version is to follow the current
// one: where it names the one that was current, now or when it was hydrated last. Any
// other is a rollback.
func (r *renamer) follows(o *manifest.Object, g *group, label string) bool {
	if o.PodTemplate() == nil {
		return slices.Contains(g.current, label) || slices.Contains(g.committed, label)
	}
	name := g.base
	name.Name += "-" + label
	for _, l := range []*lock.Lock{r.locks[g.pkg], r.opt.Committed} {
		for _, t := range l.Newest(lock.BaseOf(o.ID, o.ID.Name)) {
			if slices.Contains(t.Names, name) {
				return !slices.Contains(t.Pins, name)
			}
		}
	}
	return slices.Contains(g.current, label)
}

// missing gives the head of the versions that a reference names one of which is
// not there; nil where it names none. What is not to follow the current version is
// an error where versions are kept, and a warning elsewhere: it may be in the cluster.
func (r *renamer) missing(o *manifest.Object, ref manifest.Reference) (*subject, error) {
	at := strings.LastIndexByte(ref.Name(), '-')
	if at <= 0 {
		return nil, nil
	}
	name, label := ref.Name()[:at], ref.Name()[at+1:]
	ns := ref.Namespace
	if ns == "" {
		ns = o.ID.Namespace
	}
	base := r.canonical(o.Package, lock.BaseOf(manifest.ID{APIVersion: ref.Group + "/", Kind: ref.Kind, Namespace: ns}, name))
	g := r.groups[groupKey{o.Package, base}]
	if g == nil || g.head == nil || !r.wasMade(g, label) {
		return nil, nil
	}
	if ref.List != nil {
		return nil, nil // it may be read, and is not there
	}
	if r.follows(o, g, label) || r.moved(g, label) {
		return g.head, nil
	}
	err := fmt.Errorf("%s is a version of %s %s that is not there (restore it with git or belay rollback, or write %s to follow the current one)", ref.Name(), ref.Kind, name, name)
	if r.keeping[g.pkg] {
		return nil, err
	}
	r.report(o, manifest.Warning, o.Path(ref.Node), err.Error())
	return nil, nil
}

// wasMade tells whether the lock speaks of a version of a group.
func (r *renamer) wasMade(g *group, label string) bool {
	h := r.locks[g.pkg].Versions[g.base]
	_, known := h.ByLabel(label)
	number, isNumber := lock.ParseLabel(label)
	return known || h != nil && isNumber && number <= h.Last || r.moved(g, label)
}

// moved tells whether a version is one of the same name in another namespace,
// where there is no source any more.
func (r *renamer) moved(g *group, label string) bool {
	for b, h := range r.locks[g.pkg].Versions {
		if _, known := h.ByLabel(label); known && b.Kind == g.base.Kind && b.Name == g.base.Name && b != g.base {
			if other := r.groups[groupKey{g.pkg, b}]; other == nil || other.head == nil {
				return true
			}
		}
	}
	return false
}

// pinned gives the version that the configuration points references at, in
// place of s.
func (r *renamer) pinned(s *subject) (*subject, error) {
	i := slices.IndexFunc(r.pins, func(p pin) bool { return r.isPinned(p.base, s) })
	if i < 0 {
		return s, nil
	}
	there := r.versionsOf(s)
	for _, other := range there {
		if other.label == r.pins[i].label {
			return other, nil
		}
	}
	return nil, fmt.Errorf("%s is pinned to %s, which is not in the package (belay rollback brings a version back; the objects that are there are %s)", s.base, r.pins[i].label, namesOf(there))
}

// readPins reads the pins, and names those that pin nothing, as it does with the
// originals to be kept.
func (r *renamer) readPins() {
	for i, text := range r.cfg.KeepOriginal {
		b, ok := lock.ParseBase(text)
		if ok && !slices.ContainsFunc(r.subjects, func(s *subject) bool { return r.isPinned(b, s) }) {
			r.report(nil, manifest.Warning, "", fmt.Sprintf("versions.keepOriginal[%d]: %s: no such object gets versions here", i, b))
		}
	}
	for i, text := range r.cfg.Pins {
		p, err := parsePin(text)
		if err != nil {
			continue // Validate reported it
		}
		r.pins = append(r.pins, p)
		if !slices.ContainsFunc(r.subjects, func(s *subject) bool { return r.isPinned(p.base, s) }) {
			r.report(nil, manifest.Warning, "", fmt.Sprintf("versions.pins[%d]: %s: no such object gets versions here", i, p.base))
		}
	}
}

// isPinned tells whether the base of a pin is that of a subject.
func (r *renamer) isPinned(base lock.Base, s *subject) bool {
	return base.Kind == s.base.Kind && base.Name == s.base.Name && r.namespace(base.Namespace) == r.namespace(s.base.Namespace)
}

// versionsOf gives the versions of the base of a subject that are in its package.
func (r *renamer) versionsOf(s *subject) []*subject {
	var of []*subject
	for _, other := range r.subjects {
		if other.base == s.base && other.object.Package == s.object.Package {
			of = append(of, other)
		}
	}
	return of
}

// A referrer is an object without versions of its own that refers to subjects.
type referrer struct {
	object *manifest.Object
	index  int
	refs   []edge
}

// target gives the subject that a reference means; nil for none. The name that
// an object has counts first, then the base of versions, then the names that
// objects had before kustomize changed them.
func (r *renamer) target(o *manifest.Object, ref manifest.Reference) (*subject, error) {
	x := r.index
	ns := ref.Namespace
	if ns == "" {
		ns = o.ID.Namespace
	}
	k := key{o.Package, ref.Group, ref.Kind, r.namespace(ns), ref.Name()}
	if found, ok := x.current[k]; ok {
		return x.subjects[found], nil
	}
	if s := x.secrets[k]; s != nil {
		return s, nil
	}
	if of := x.bases[k]; len(of) > 0 {
		return r.currentOf(of)
	}
	of := x.previous[k]
	if len(of) > 1 {
		same := slices.DeleteFunc(slices.Clone(of), func(s *subject) bool {
			return s.object.Annotation(prefixes) != o.Annotation(prefixes) || s.object.Annotation(suffixes) != o.Annotation(suffixes)
		})
		if len(same) > 0 {
			of = same
		}
	}
	switch len(of) {
	case 0:
		return nil, nil
	case 1:
		return of[0], nil
	}
	return nil, fmt.Errorf("%s was the name of %s before kustomize changed it (refer to the new name)", ref.Name(), namesOf(of))
}

// currentOf gives the version that the base name of several stands for: the
// one that became current last, or the highest.
func (r *renamer) currentOf(of []*subject) (*subject, error) {
	if len(of) == 1 {
		return of[0], nil
	}
	best, most, ties := of[0], -1, false
	for _, s := range of {
		rank := -1
		if number, ok := lock.ParseLabel(s.label); ok {
			rank = number
		}
		if v, ok := r.locks[s.object.Package].Versions[s.base].ByLabel(s.label); ok {
			rank = 1<<20 + v.Used
		}
		if rank == most {
			ties = true
		}
		if rank > most {
			best, most, ties = s, rank, false
		}
	}
	if ties || most < 0 {
		return nil, fmt.Errorf("%s could be any of %s (refer to one of them, or remove the others)", best.base.Name, namesOf(of))
	}
	return best, nil
}

func namesOf(of []*subject) string {
	names := make([]string, len(of))
	for i, s := range of {
		names[i] = s.object.ID.Name
	}
	return strings.Join(names, " and ")
}
