package version

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

const step = "versioning"

// maxName is the length that the API server allows for a name.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names
const maxName = 253

// Stats says what Rename did.
type Stats struct {
	// Versionable counts the objects of a kind that gets versions; Versioned
	// those of them that carry one now.
	Versionable, Versioned int
	// References counts the references that were rewritten.
	References int
	// Renames and Rewrites are the changes, in input order. An object that is the
	// source of a new version keeps its name, and is among Renames too.
	Renames  []Renamed
	Rewrites []Rewritten
	// Dropped are the versions that were removed, since nothing needs them.
	Dropped []*manifest.Object
}

// A Renamed is an object that got a new name.
type Renamed struct {
	Object   *manifest.Object
	From, To string
	index    int
}

// A Rewritten is a reference that got a new name.
type Rewritten struct {
	Object   *manifest.Object
	Field    string
	From, To string
	index    int
}

// Options are what Rename is given besides its configuration.
type Options struct {
	// Durable tells whether what is added to a package, such as its lock, is kept
	// until the next run.
	Durable func(pkg string) bool
	// Path gives the place of a version that is an object of its own, from its
	// file name; nil where objects have no places.
	Path func(file string) string
	// Retain is set where previous versions are at hand, so that they are kept as
	// long as a rollback may need them. Otherwise only packages that hold such
	// versions keep them.
	Retain bool
	// Partial is set when the list does not hold all users of its versions: then
	// none is dropped.
	Partial bool
	// Committed is the lock as it was deployed last; nil for the lock itself.
	Committed *lock.Lock
}

// Rename gives the objects of the list their versions. locks holds the lock of
// each package, which learns the numbers of sequence naming, and where versions
// are kept their recency. Findings are added to list.Results.
func Rename(list *manifest.List, cfg Config, locks map[string]*lock.Lock, opt Options) Stats {
	if cfg.Naming == "off" {
		return Stats{}
	}
	r := &renamer{
		list: list, cfg: cfg, locks: locks, opt: opt, started: map[string]bool{}, kinds: map[string]bool{"ConfigMap": true, "Secret": true},
		groups: map[groupKey]*group{}, keeping: map[string]bool{}, made: map[*manifest.Object]bool{},
	}
	for _, k := range cfg.Kinds {
		r.kinds[k] = true
	}
	r.choose()
	r.classify()
	r.connect()
	if opt.Committed != nil {
		for pkg := range r.keeping {
			locks[pkg].Rebase(opt.Committed)
		}
	}
	r.settle()
	r.recall()
	for _, s := range r.subjects {
		r.visit(s, nil)
	}
	list.Remove(r.gone...)
	for _, f := range r.referrers {
		r.rewrite(f.object, f.index, f.refs, false)
	}
	r.retain()
	for _, f := range r.referrers {
		r.rewrite(f.object, f.index, f.refs, true)
	}
	r.refuseTwins()
	r.audit()
	slices.SortStableFunc(r.stats.Rewrites, func(a, b Rewritten) int { return cmp.Compare(a.index, b.index) })
	slices.SortStableFunc(r.stats.Renames, func(a, b Renamed) int { return cmp.Compare(a.index, b.index) })
	r.stats.References = len(r.stats.Rewrites)
	return r.stats
}

// A renamer is one run of Rename.
type renamer struct {
	list      *manifest.List
	cfg       Config
	locks     map[string]*lock.Lock
	opt       Options
	kinds     map[string]bool
	subjects  []*subject
	leftover  []*subject // versions that are not chosen
	groups    map[groupKey]*group
	order     []*group        // in input order
	keeping   map[string]bool // packages that keep versions
	made      map[*manifest.Object]bool
	gone      []*manifest.Object // versions that their heads are by now
	index     *index
	pins      []pin
	referrers []referrer
	seen      []*manifest.Node // fields that the table knows
	started   map[string]bool  // packages whose new lock was warned of
	stats     Stats
}

// settle drops the subjects that nothing refers to.
func (r *renamer) settle() {
	r.subjects = slices.DeleteFunc(r.subjects, func(s *subject) bool {
		if s.referred || s.forced || r.cfg.Unreferenced == "version" {
			return false
		}
		s.state = failed
		if len(s.refs) > 0 {
			r.referrers = append(r.referrers, referrer{s.object, s.index, s.refs})
		}
		r.report(s.object, manifest.Info, "", "is not versioned: nothing in the package refers to it (versions.unreferenced: version changes that)")
		return true
	})
}

// recall takes into the locks the versions at hand that they do not know, so
// that a lock that was lost is made anew: the current one last, as the newest.
func (r *renamer) recall() {
	for _, g := range r.order {
		if r.cfg.Naming != "sequence" && !r.keeping[g.pkg] {
			continue
		}
		for _, s := range slices.SortedStableFunc(slices.Values(g.labelled()), byRecency) {
			r.remember(s)
		}
	}
}

// remember takes a version at hand into the lock.
func (r *renamer) remember(s *subject) {
	l := r.locks[s.object.Package]
	_, isNumber := lock.ParseLabel(s.label)
	content := s.object.Annotation(ContentAnnotation)
	if content == "" && isNumber {
		// Spinnaker wrote it. What is wrong with its content is said later.
		content, _ = Hash(s.object)
	}
	v, known := l.Versions[s.base].ByLabel(s.label)
	if known && v.Content == content || !isNumber && !r.keeping[s.object.Package] || content == "" {
		return
	}
	if pkg := s.object.Package; l.IsNew() && !r.started[pkg] && (isNumber || s.frozen) {
		r.started[pkg] = true
		message := "there is no lock: it is made anew from the versions at hand"
		if isNumber {
			message += ", and numbers of others may be given again"
		}
		r.report(nil, manifest.Warning, "", message)
	}
	if err := l.Recall(s.base, s.label, content, s.object.ID.Name); err != nil {
		r.fail(s, err)
	}
}

// visit names a subject after those that it refers to. way holds the subjects
// that led here.
func (r *renamer) visit(s *subject, way []*subject) {
	switch s.state {
	case named, failed, dropped:
		return
	case visiting:
		at := slices.Index(way, s)
		var names []string
		for _, w := range append(way[at:], s) {
			names = append(names, w.object.ID.String())
		}
		r.fail(s, fmt.Errorf("refers to itself: %s (set %s: \"false\" on one of them)", strings.Join(names, " -> "), VersionedAnnotation))
		return
	case waiting:
	}
	if s.frozen {
		r.verify(s)
		return
	}
	s.state = visiting
	for _, e := range s.refs {
		r.visit(e.to, append(way, s))
	}
	r.rewrite(s.object, s.index, s.refs, false)
	r.rewrite(s.object, s.index, s.refs, true)
	if s.state == visiting {
		r.name(s)
	}
}

// name gives a subject its version.
func (r *renamer) name(s *subject) {
	if s.released {
		s.state, s.name = named, s.base.Name
		return
	}
	content, err := Hash(s.object)
	if err != nil {
		r.failFields(s, err)
		return
	}
	label, err := r.label(s, content)
	if err != nil {
		r.fail(s, err)
		return
	}
	to := s.base.Name + "-" + label
	if len(to) > maxName {
		r.fail(s, fmt.Errorf("the name %s has %d characters, and %d are allowed (shorten it by %d)", to, len(to), maxName, len(to)-maxName))
		return
	}
	s.state, s.name = named, to
	r.stats.Versioned++
	from := r.carry(s, to, label)
	r.annotate(s, content, label)
	r.renameSecret(s)
	if s.version.Name() != to {
		s.version.Rename(to)
	}
	if from != to {
		r.stats.Renames = append(r.stats.Renames, Renamed{s.object, from, to, s.index})
	}
}

// label gives the version of a content: the hash's own, or a number.
func (r *renamer) label(s *subject, content string) (string, error) {
	pkg := s.object.Package
	if r.cfg.Naming == "hash" {
		label := suffix(content)
		if r.cfg.Hash == "kustomize" {
			label = cmp.Or(kustomizeSuffix(s.object), label)
		}
		if !r.keeping[pkg] {
			return label, nil
		}
		return label, r.use(s, label, content)
	}
	label, err := r.number(s, content)
	if err != nil || label == s.label && !r.keeping[pkg] {
		return label, err // as it was: no news for the lock
	}
	return label, r.use(s, label, content)
}

func (r *renamer) use(s *subject, label, content string) error {
	return r.locks[s.object.Package].Use(s.base, label, content, s.base.Name+"-"+label)
}

// number gives the number that the lock knows for a content, or the next one.
func (r *renamer) number(s *subject, content string) (string, error) {
	pkg := s.object.Package
	l := r.locks[pkg]
	h := l.Versions[s.base]
	if v, ok := h.ByContent(content); ok {
		return v.Label, nil
	}
	if !r.opt.Durable(pkg) {
		return "", errors.New("a number cannot be given here, since the lock that remembers it would be lost (run belay hydrate on files, or with --lock on a stream; or set versions.naming: hash)")
	}
	if l.IsNew() {
		r.start(pkg)
	}
	return lock.Label(r.next(s, h)), nil
}

// next gives the number for new content: above all that were ever given. A
// number whose name is that of another object, or of its base, is passed over;
// a number only has to be unique.
func (r *renamer) next(s *subject, h *lock.History) int {
	number := 0
	if h != nil {
		number = h.Last + 1
	}
	for r.taken(s, s.base.Name+"-"+lock.Label(number)) {
		number++
	}
	return number
}

func (r *renamer) taken(s *subject, name string) bool {
	k := r.keyOf(s.object, name)
	o := r.index.current[k]
	return o != nil && o != s.object || len(r.index.bases[k]) > 0
}

// start warns once that a package gets its first lock.
func (r *renamer) start(pkg string) {
	if r.started[pkg] {
		return
	}
	r.started[pkg] = true
	r.report(nil, manifest.Warning, "", fmt.Sprintf("the numbers begin here: %s remembers them, commit it", lock.File))
}

// annotate says on a version which one of what it is.
func (r *renamer) annotate(s *subject, content, label string) {
	o := s.version
	o.SetAnnotation(TypeAnnotation, artifactType(o.ID))
	o.SetAnnotation(NameAnnotation, s.base.Name)
	o.SetAnnotation(LocationAnnotation, o.ID.Namespace)
	o.SetAnnotation(VersionAnnotation, label)
	o.SetAnnotation(ContentAnnotation, content)
	o.RemoveAnnotation(RetainedAnnotation)
	o.RemoveAnnotation(UsedAnnotation)
	if r.cfg.Immutable && (isCore(o, "ConfigMap") || isCore(o, "Secret")) {
		if err := o.SetField(o.Root(), true, "immutable"); err != nil {
			r.fail(s, err)
		}
	}
}

// rewrite makes the references of an object follow: those in lists where that is
// asked for, and the others where it is not.
func (r *renamer) rewrite(o *manifest.Object, at int, refs []edge, inLists bool) {
	var more []addition
	for i, e := range refs {
		if (e.ref.List != nil) != inLists || slices.ContainsFunc(refs[:i], func(before edge) bool { return before.ref.Node == e.ref.Node }) {
			continue // done with the first
		}
		names := r.namesFor(e, refs[i:])
		if len(names) == 0 {
			r.unlist(o, at, e, refs[i:])
			continue
		}
		if names[0] == e.from && len(names) == 1 {
			continue
		}
		field := o.Path(e.ref.Node)
		if o.IsIgnored() {
			r.report(o, manifest.Warning, field, fmt.Sprintf("refers to %s, which is %s now; the object is left alone because of %s", e.from, strings.Join(names, " and "), manifest.CachingIgnoreAnnotation))
			continue
		}
		if names[0] != e.from {
			o.Set(e.ref.Node, e.ref.Prefix+names[0])
			r.stats.Rewrites = append(r.stats.Rewrites, Rewritten{o, field, e.from, names[0], at})
		}
		more = append(more, addition{e, names[1:]})
	}
	for _, m := range more {
		r.add(o, at, m)
	}
}

// unlist takes the name of a version that was dropped out of a list. The last
// name stays: an empty list may mean all there are.
func (r *renamer) unlist(o *manifest.Object, at int, first edge, refs []edge) {
	edges := 0
	for _, e := range refs {
		if e.ref.Node != first.ref.Node {
			continue
		}
		edges++
		if e.to.state != dropped || e.from != e.to.object.ID.Name {
			return
		}
	}
	if first.ref.List.Len() < 2 || first.ref.Others || first.ref.Kinds > edges || o.IsIgnored() {
		return
	}
	r.stats.Rewrites = append(r.stats.Rewrites, Rewritten{o, o.Path(first.ref.Node), first.from, "(removed)", at})
	o.Remove(first.ref.Node)
}

// An addition are the names that a list needs besides that of a reference: one
// name in a rule for several kinds becomes more.
type addition struct {
	edge
	names []string
}

func (r *renamer) add(o *manifest.Object, at int, m addition) {
	for _, name := range m.names {
		if !lists(m.ref.List, name) {
			o.Append(m.ref.List, name)
			r.stats.Rewrites = append(r.stats.Rewrites, Rewritten{o, o.Path(m.ref.Node), m.from, m.from + " and " + name, at})
		}
	}
}

// namesFor gives the names that stand in place of that of a reference: those of
// all edges of its field, and the old one where it is also that of something that
// gets no version.
func (r *renamer) namesFor(first edge, refs []edge) []string {
	var names []string
	edges := 0
	for _, e := range refs {
		if e.ref.Node != first.ref.Node {
			continue
		}
		edges++
		for _, s := range r.meant(e) {
			if to := s.nameFor(e.ref); to != "" && !slices.Contains(names, to) {
				names = append(names, to)
			}
		}
	}
	if i := slices.Index(names, first.from); i > 0 && first.ref.List != nil {
		names[0], names[i] = names[i], names[0] // it stays where it is
	}
	if first.ref.List != nil && (first.ref.Others || first.ref.Kinds > edges) && !first.to.group.hasVersion(first.from) {
		names = append([]string{first.from}, slices.DeleteFunc(names, func(n string) bool { return n == first.from })...)
	}
	if first.ref.List == nil && len(names) > 1 {
		names = names[:1]
	}
	return names
}

// meant gives the versions that a reference names: one, and in a list those that
// are retained too, the newest first.
func (r *renamer) meant(e edge) []*subject {
	g := e.to.group
	isBase := g.head == nil && e.from == g.base.Name
	if e.ref.List == nil || e.to != g.head && !isBase {
		return []*subject{e.to}
	}
	retained := slices.DeleteFunc(slices.Clone(g.frozen), func(f *subject) bool {
		return f.state != named || g.head != nil && f.name == g.head.name
	})
	h := r.locks[g.pkg].Versions[g.base]
	slices.SortFunc(retained, func(a, b *subject) int {
		av, _ := h.ByLabel(a.label)
		bv, _ := h.ByLabel(b.label)
		return cmp.Or(cmp.Compare(bv.Used, av.Used), cmp.Compare(a.label, b.label))
	})
	if g.head == nil {
		return retained
	}
	return append([]*subject{g.head}, retained...)
}

func lists(list *manifest.Node, name string) bool {
	return slices.ContainsFunc(list.Elems(), func(n *manifest.Node) bool { return n.Value() == name })
}

// refuseTwins reports objects that would share a name after renaming.
func (r *renamer) refuseTwins() {
	kinds := map[string]bool{}
	for _, s := range r.subjects {
		kinds[s.object.ID.Kind] = true
	}
	versions := map[*manifest.Object]*subject{}
	for _, s := range r.subjects {
		versions[s.object] = s
	}
	first := map[key]*manifest.Object{}
	for _, o := range r.list.Objects {
		if !kinds[o.ID.Kind] || o.IsLocal() {
			continue
		}
		k := r.keyOf(o, o.Name())
		other := first[k]
		if other == nil {
			first[k] = o
			continue
		}
		if versions[o] == nil && versions[other] == nil && !r.made[o] && !r.made[other] || o.ID == other.ID {
			continue // not of this step's making
		}
		r.report(o, manifest.Error, "metadata.name", fmt.Sprintf("would be called %s, as would %s%s (remove one of them, or rename it)", o.Name(), other.ID, inFile(other)))
	}
}

func inFile(o *manifest.Object) string {
	if o.File.Path == "" {
		return ""
	}
	return " in " + o.File.Path
}

// failFields reports every field that keeps a subject from being hashed.
func (r *renamer) failFields(s *subject, err error) {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			r.failFields(s, e)
		}
		return
	}
	var f fieldError
	if errors.As(err, &f) {
		s.state = failed
		r.list.Report(manifest.Result{
			Severity: manifest.Error, Step: step, Object: s.object,
			Field: s.object.Path(f.node), Line: s.object.Line(f.node), Message: f.message,
		})
		return
	}
	r.fail(s, err)
}

// fail reports a subject that cannot be versioned.
func (r *renamer) fail(s *subject, err error) {
	s.state = failed
	r.report(s.object, manifest.Error, "", err.Error())
}

func (r *renamer) report(o *manifest.Object, severity manifest.Severity, field, message string) {
	res := manifest.Result{Severity: severity, Step: step, Object: o, Field: field, Message: message}
	if o != nil {
		res.Line = o.Line(o.Find(field))
	}
	r.list.Report(res)
}
