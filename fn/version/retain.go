package version

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// defaultLimit is how many old pod templates a workload keeps that does not say
// it. https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/deployment-v1/#DeploymentSpec
const defaultLimit = 10

// wanted are the labels of the versions of each group that must not go.
type wanted map[*group]map[string]bool

func (w wanted) add(g *group, label string) {
	if w[g] == nil {
		w[g] = map[string]bool{}
	}
	w[g][label] = true
}

// retain drops the versions that no rollback can need: a controller goes back to
// the pod templates that it keeps, K of them and the current one. What those
// name stays, and of each base the K+1 versions that were used last.
func (r *renamer) retain() {
	if len(r.keeping) == 0 {
		return
	}
	r.countUsers()
	edges := map[*manifest.Object][]edge{}
	for o, refs := range r.live {
		edges[o] = refs
	}
	for _, pkg := range slices.Sorted(maps.Keys(r.keeping)) {
		r.noteTemplates(pkg, edges)
	}
	w := r.needed()
	for _, g := range r.order {
		if r.keeping[g.pkg] {
			r.prune(g, w)
		}
	}
	r.list.Remove(r.stats.Dropped...)
	r.forget()
}

// limitOf gives how many old pod templates an object keeps.
func limitOf(o *manifest.Object) int {
	if n, err := strconv.Atoi(o.Root().Lookup("spec", "revisionHistoryLimit").Value()); err == nil && n >= 0 {
		return n
	}
	return defaultLimit
}

// live yields what refers to versions and is deployed under its own name now.
func (r *renamer) live(yield func(*manifest.Object, []edge) bool) {
	for _, f := range r.referrers {
		if !yield(f.object, f.refs) {
			return
		}
	}
	for _, s := range r.subjects {
		if !s.frozen && !yield(s.object, s.refs) {
			return
		}
	}
}

// countUsers finds out how many versions the users of each base can go back to.
func (r *renamer) countUsers() {
	for o, refs := range r.live {
		for _, e := range refs {
			if e.ref.List == nil {
				e.to.group.most = max(e.to.group.most, limitOf(o)+1)
			}
		}
	}
}

// noteTemplates takes the pod templates of a package into its lock. edges are the
// references of each object.
func (r *renamer) noteTemplates(pkg string, edges map[*manifest.Object][]edge) {
	l, there := r.locks[pkg], map[lock.Base]bool{}
	for _, o := range r.list.Objects {
		template := o.PodTemplate()
		if o.Package != pkg || template == nil || o.IsLocal() || r.made[o] || r.isVersioned(o) {
			continue
		}
		workload := lock.BaseOf(o.ID, o.ID.Name)
		there[workload] = true
		t := lock.Template{Print: fingerprint(template)}
		for _, e := range edges[o] {
			if e.ref.List != nil || e.to.labelNow() == "" || e.to.state != named {
				continue
			}
			t.Names = append(t.Names, e.to.versionName())
			if e.to.frozen {
				t.Pins = append(t.Pins, e.to.versionName())
			}
		}
		t.Names, t.Pins = sorted(t.Names), sorted(t.Pins)
		l.UseTemplate(workload, t, limitOf(o)+1)
		r.missNames(o, l.Templates[workload])
	}
	if !r.opt.Partial {
		l.KeepTemplates(func(w lock.Base) bool { return there[w] })
	}
}

// versionName gives the version of a subject by its full name.
func (s *subject) versionName() lock.Base {
	b := s.base
	b.Name = s.name
	return b
}

func sorted(bases []lock.Base) []lock.Base {
	slices.SortFunc(bases, func(a, b lock.Base) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(bases)
}

// isVersioned tells whether an object has versions, or is one.
func (r *renamer) isVersioned(o *manifest.Object) bool {
	if r.index == nil {
		return false
	}
	s := r.index.subjects[o]
	return s != nil && !s.released
}

// missNames warns of the versions that a workload can go back to and that are
// gone: a run that nobody committed may have dropped them.
func (r *renamer) missNames(o *manifest.Object, templates []lock.Template) {
	told := map[lock.Base]bool{}
	for _, t := range templates {
		for _, n := range t.Names {
			if told[n] || r.isThere(o.Package, n) {
				continue
			}
			told[n] = true
			r.report(o, manifest.Warning, "", fmt.Sprintf("can go back to a pod template that names %s, which is not there (restore it with git)", n))
		}
	}
}

// isThere tells whether a version is at hand, or was dropped because somebody
// asked for fewer.
func (r *renamer) isThere(pkg string, name lock.Base) bool {
	base := name
	base.Name = name.Name[:max(0, strings.LastIndexByte(name.Name, '-'))]
	if g := r.groups[groupKey{pkg, base}]; g != nil {
		_, strict := r.asked(g)
		return strict || slices.ContainsFunc(g.members, func(s *subject) bool { return s.name == name.Name })
	}
	return r.opt.Partial
}

// fingerprint tells pod templates apart, but for what belay writes on them.
func fingerprint(template *manifest.Node) string {
	// A decoded tree has nothing that fails to encode.
	data, err := json.Marshal(plainValue(template, nil))
	if err != nil {
		panic("belay: internal error: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:10]
}

// needed finds the versions that must not go.
func (r *renamer) needed() wanted {
	w := wanted{}
	for _, refs := range r.live {
		for _, e := range refs {
			if e.ref.List == nil {
				w.add(e.to.group, e.to.labelNow())
			}
		}
	}
	type versionIn struct {
		pkg  string
		name lock.Base
	}
	named := map[versionIn]bool{}
	for pkg := range r.keeping {
		for _, all := range r.locks[pkg].Templates {
			for _, t := range all {
				for _, b := range t.Names {
					named[versionIn{pkg, b}] = true
				}
			}
		}
	}
	for _, g := range r.order {
		count, strict := r.count(g)
		for _, s := range g.members {
			if !s.frozen || named[versionIn{g.pkg, s.versionName()}] && !strict {
				w.add(g, s.labelNow())
			}
		}
		if g.head != nil {
			w.newest(g, r.locks[g.pkg], count)
		}
	}
	r.follow(w)
	return w
}

// runs tells whether an object runs pods. Old versions of those are not kept
// unless somebody asks: deployed, they would run again.
func runs(o *manifest.Object) bool { return isCore(o, "Pod") || o.PodTemplate() != nil }

// labelNow gives the label of the version that s has by now; "" for none.
func (s *subject) labelNow() string {
	if s.name == "" || s.name == s.base.Name {
		return ""
	}
	return s.name[len(s.base.Name)+1:]
}

// asked gives how many of the newest versions of a group are kept. strict is set
// where no more than these are, whatever old templates name.
func (r *renamer) asked(g *group) (count int, strict bool) {
	count = g.most
	if count == 0 {
		count = defaultLimit + 1
	}
	wish := 0
	if g.head != nil {
		wish = g.head.history
	}
	switch {
	case runs(g.members[0].object):
		return wish, true
	case wish == 0:
		return count, false
	}
	return wish, wish < count
}

// count gives what asked gives, and warns of annotations that ask for little.
func (r *renamer) count(g *group) (count int, strict bool) {
	count, strict = r.asked(g)
	if strict && r.keeping[g.pkg] && !runs(g.members[0].object) {
		r.report(g.head.object, manifest.Warning, "metadata.annotations["+HistoryAnnotation+"]",
			fmt.Sprintf("fewer than the %d versions that the workloads which use it can go back to (kubectl rollout undo may find one gone)", cmp.Or(g.most, defaultLimit+1)))
	}
	return count, strict
}

// newest wants the versions that became current last.
func (w wanted) newest(g *group, l *lock.Lock, count int) {
	h := l.Versions[g.base]
	if h == nil {
		return
	}
	all := slices.DeleteFunc(slices.Clone(h.Versions), func(v lock.Version) bool {
		return v.Label != g.head.labelNow() && !l.IsReleased(g.base, v.Label)
	})
	slices.SortStableFunc(all, func(a, b lock.Version) int { return cmp.Compare(b.Used, a.Used) })
	for _, v := range all[:min(count, len(all))] {
		w.add(g, v.Label)
	}
}

// follow wants what is named by versions that are kept.
func (r *renamer) follow(w wanted) {
	for more := true; more; {
		more = false
		for _, s := range r.subjects {
			if !s.frozen || !w[s.group][s.label] {
				continue
			}
			for _, e := range s.refs {
				if e.ref.List == nil && !w[e.to.group][e.to.labelNow()] {
					w.add(e.to.group, e.to.labelNow())
					more = true
				}
			}
		}
	}
}

// prune drops the versions of a group that are not wanted, and marks those that
// are not current.
func (r *renamer) prune(g *group, w wanted) {
	h := r.locks[g.pkg].Versions[g.base]
	for _, s := range g.frozen {
		switch {
		case g.head != nil && s.object == g.head.version || s.state == failed:
		case w[g][s.label] || r.opt.Partial:
			s.object.SetAnnotation(RetainedAnnotation, "true")
			if v, ok := h.ByLabel(s.label); ok {
				s.object.SetAnnotation(UsedAnnotation, strconv.Itoa(v.Used))
			}
		default:
			s.state, s.name = dropped, ""
			r.stats.Dropped = append(r.stats.Dropped, s.object)
			r.report(s.object, manifest.Info, "", "is dropped: no workload can go back to it any more")
		}
	}
	if !r.opt.Partial {
		r.locks[g.pkg].Keep(g.base, func(label string) bool { return w[g][label] })
	}
}

// forget lets the locks forget the versions of which nothing is left.
func (r *renamer) forget() {
	if r.opt.Partial {
		return
	}
	for pkg := range r.keeping {
		l := r.locks[pkg]
		for b := range l.Versions {
			if r.groups[groupKey{pkg, b}] == nil {
				l.Keep(b, func(string) bool { return false })
			}
		}
	}
}

// byRecency orders versions at hand for a lock that does not know them: what is
// not retained is current, and comes last.
func byRecency(a, b *subject) int {
	rank := func(s *subject) (retained, used, number int) {
		used, _ = strconv.Atoi(s.object.Annotation(UsedAnnotation))
		number, _ = lock.ParseLabel(s.label)
		if s.object.Annotation(RetainedAnnotation) == "" {
			retained = 1
		}
		return retained, used, number
	}
	ar, au, an := rank(a)
	br, bu, bn := rank(b)
	return cmp.Or(cmp.Compare(ar, br), cmp.Compare(au, bu), cmp.Compare(an, bn), cmp.Compare(a.label, b.label))
}
