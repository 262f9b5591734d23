package fn

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/version"
)

// A world is a package that people edit and belay hydrates, and the cluster that
// it is deployed to after each run: controllers there keep the pod templates that
// kubectl rollout undo can go back to.
type world struct {
	t       *testing.T
	rand    *rand.Rand
	history string // what was done, for a failure
	naming  string
	output  bool // sources stay, and the result goes elsewhere

	bases     map[string]string    // content of each ConfigMap by name; absent: removed
	workloads map[string]*workload // by name; absent: removed
	max       int                  // max-version-history of the first base; 0 for none

	files map[string]string // what the last run left
	// clusters: the templates of each workload, the newest last; and the names of
	// the versions of each base by recency.
	templates map[string][]template
	used      map[string][]string
}

type workload struct {
	limit int // revisionHistoryLimit; -1 for none
	image int
	refs  map[string]string // base to the name that is written
}

// A template is a pod template, and the ConfigMaps that it names.
type template struct {
	text  string
	names []string
}

func (w *workload) keeps() int {
	if w.limit < 0 {
		return 11
	}
	return w.limit + 1
}

func (w *world) do(format string, a ...any) { w.history += fmt.Sprintf(format, a...) + "; " }

// edit does what a person may do between two deployments.
func (w *world) edit() {
	base := fmt.Sprintf("c%d", w.rand.IntN(2))
	name := fmt.Sprintf("w%d", w.rand.IntN(2))
	deployment := w.workloads[name]
	switch op := w.rand.IntN(20); {
	case op < 7:
		if _, there := w.bases[base]; there || w.rand.IntN(2) == 0 {
			w.bases[base] = string(rune('A' + w.rand.IntN(12)))
			w.do("%s is %s", base, w.bases[base])
		}
	case op == 7:
		delete(w.bases, base)
		w.do("%s goes", base)
	case op == 8 && deployment != nil:
		delete(w.workloads, name)
		w.do("%s goes", name)
	case deployment == nil:
		w.workloads[name] = &workload{limit: w.rand.IntN(5) - 1, refs: map[string]string{base: base}}
		w.do("%s comes with %d", name, w.workloads[name].limit)
	case op < 12:
		if _, there := deployment.refs[base]; there {
			delete(deployment.refs, base)
			w.do("%s drops %s", name, base)
		} else if _, there := w.bases[base]; there {
			deployment.refs[base] = base
			w.do("%s takes %s", name, base)
		}
	case op < 16:
		deployment.image = w.rand.IntN(4)
		w.do("%s has image %d", name, deployment.image)
	case op < 18:
		deployment.limit = w.rand.IntN(5) - 1
		w.do("%s keeps %d", name, deployment.limit)
	case !w.output:
		w.rollBack(deployment, base)
	}
}

// rollBack writes the name of a version that is there into a reference.
func (w *world) rollBack(d *workload, base string) {
	_, there := d.refs[base]
	if all := w.versions(base); there && len(all) > 0 {
		d.refs[base] = all[w.rand.IntN(len(all))]
		w.do("%s is named", d.refs[base])
	}
}

// sources gives the files as people have them.
func (w *world) sources() map[string]string {
	out := map[string]string{}
	for name, content := range w.bases {
		annotations := ""
		if w.max > 0 && name == "c0" {
			annotations = fmt.Sprintf("  annotations: {%s: \"%d\"}\n", version.HistoryAnnotation, w.max)
		}
		out[name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n" + annotations + "data:\n  k: " + content + "\n"
	}
	for name, d := range w.workloads {
		limit, env := "", ""
		if d.limit >= 0 {
			limit = fmt.Sprintf("  revisionHistoryLimit: %d\n", d.limit)
		}
		for _, base := range slices.Sorted(maps.Keys(d.refs)) {
			env += "        - configMapRef: {name: " + d.refs[base] + "}\n"
		}
		if env != "" {
			env = "        envFrom:\n" + env
		}
		out[name+".yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec:\n" + limit +
			fmt.Sprintf("  template:\n    spec:\n      containers:\n      - name: c\n        image: c:%d\n", d.image) + env
	}
	out["role.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules:\n" +
		"- {apiGroups: [\"\"], resources: [configmaps], resourceNames: [c0, c1, other], verbs: [get]}\n"
	return out
}

// hydrate runs belay on the package, and gives the objects that it left.
func (w *world) hydrate() *manifest.List {
	w.t.Helper()
	cfg, err := ParseConfig(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	cfg.Digests.Mode = "off"
	cfg.Versions.Naming, cfg.Versions.Source = w.naming, "keep"
	files := w.sources()
	opt := Options{}
	if w.output {
		cfg.Versions.Source, opt.Retain = "rename", true
	}
	for path, text := range w.files {
		if path == lock.File || strings.HasPrefix(path, version.Folder+"/") {
			files[path] = text
		} else if w.output {
			opt.Versions = append(opt.Versions, versionsIn(w.t, path, text)...)
		}
	}
	if !w.output {
		// People edit what belay wrote; its marks and the names that it gave stay.
		w.takeOver(files)
	}
	list := w.read(files)
	Process(context.Background(), list, cfg, opt)
	if list.Failed() {
		w.t.Fatalf("%s\n%s", w.history, strings.Join(list.Findings(manifest.Error), "\n"))
	}
	for _, warning := range list.Findings(manifest.Warning) {
		if w.max == 0 && strings.Contains(warning, "which is not there") {
			w.t.Fatalf("%s\n%s", w.history, warning)
		}
	}
	w.files = map[string]string{}
	for _, s := range list.Sources {
		if s.Removed() {
			continue
		}
		text, err := s.Bytes()
		if err != nil {
			w.t.Fatal(err)
		}
		w.files[s.Path] = string(text)
	}
	return w.read(w.files)
}

// takeOver writes into files, in place of a name that a person did not touch, what
// belay made of it.
func (w *world) takeOver(files map[string]string) {
	if role, ok := w.files["role.yaml"]; ok {
		for _, base := range slices.Sorted(maps.Keys(w.bases)) {
			if !strings.Contains(role, base) { // it was removed, and came back
				role = strings.Replace(role, "other", "other, "+base, 1)
			}
		}
		files["role.yaml"] = role
	}
	for path, text := range files {
		before := w.files[path]
		if _, rest, ok := strings.Cut(before, "\ndata:\n"); ok && strings.Contains(before, manifest.SourceAnnotation) && rest != "" {
			head, _, _ := strings.Cut(before, "\ndata:\n")
			_, data, _ := strings.Cut(text, "\ndata:\n")
			files[path] = head + "\ndata:\n" + data
		}
	}
}

func versionsIn(t *testing.T, path, text string) []*manifest.Object {
	list, err := manifest.ReadFiles([]manifest.Input{{Path: path, Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Objects, func(o *manifest.Object) bool {
		_, is := version.IsVersion(o)
		return !is
	})
}

func (w *world) read(files map[string]string) *manifest.List {
	var in []manifest.Input
	for _, path := range slices.Sorted(maps.Keys(files)) {
		in = append(in, manifest.Input{Path: path, Data: []byte(files[path])})
	}
	list, err := manifest.ReadFiles(in)
	if err != nil {
		w.t.Fatalf("%s\n%v", w.history, err)
	}
	return list
}

// versions gives the names of the versions of a base that are there.
func (w *world) versions(base string) []string {
	var out []string
	for path, text := range w.files {
		for _, o := range versionsIn(w.t, path, text) {
			if o.Annotation(version.NameAnnotation) == base {
				out = append(out, o.ID.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// deploy brings the cluster to what a run left.
func (w *world) deploy(list *manifest.List) {
	there := map[string]bool{}
	for _, o := range list.Objects {
		if o.ID.Kind != "Deployment" {
			continue
		}
		there[o.ID.Name] = true
		now := template{text: fmt.Sprint(w.workloads[o.ID.Name].image)}
		for _, ref := range manifest.NewRefTable().References(o) {
			now.names = append(now.names, ref.Name())
		}
		now.text += strings.Join(now.names, ",")
		all := slices.DeleteFunc(w.templates[o.ID.Name], func(t template) bool { return t.text == now.text })
		all = append(all, now)
		w.templates[o.ID.Name] = all[max(0, len(all)-w.workloads[o.ID.Name].keeps()):]
		if !w.output {
			w.written(o)
		}
	}
	maps.DeleteFunc(w.templates, func(name string, _ []template) bool { return !there[name] })
	for _, base := range []string{"c0", "c1"} {
		if name := w.current(list, base); name != "" {
			w.used[base] = append(slices.DeleteFunc(w.used[base], func(n string) bool { return n == name }), name)
		}
	}
}

// written takes the names that belay wrote into the references of a workload.
func (w *world) written(o *manifest.Object) {
	i := 0
	refs := manifest.NewRefTable().References(o)
	d := w.workloads[o.ID.Name]
	for _, base := range slices.Sorted(maps.Keys(d.refs)) {
		d.refs[base] = refs[i].Name()
		i++
	}
}

// current gives the name of the current version of a base; "" for none.
func (w *world) current(list *manifest.List, base string) string {
	for _, o := range list.Objects {
		if _, is := version.IsVersion(o); is && o.Annotation(version.NameAnnotation) == base && o.Annotation(version.RetainedAnnotation) == "" {
			return o.ID.Name
		}
	}
	return ""
}

// check wants every version that the cluster can go back to, and no other.
func (w *world) check(list *manifest.List) {
	w.t.Helper()
	there, wanted := map[string]bool{}, map[string]bool{}
	for _, o := range list.Objects {
		if o.ID.Kind == "ConfigMap" && !o.IsLocal() && !o.IsSource() {
			there[o.ID.Name] = true
		}
	}
	most := map[string]int{}
	for name, all := range w.templates {
		for i, t := range all {
			for _, n := range t.names {
				base, _, isVersion := strings.Cut(n, "-")
				if wanted[n] = true; isVersion && !there[n] && !w.strict(base, i == len(all)-1) {
					w.t.Fatalf("%s\n%s can go back to a template that names %s, which is not there", w.history, name, n)
				}
				if i == len(all)-1 {
					most[base] = max(most[base], w.workloads[name].keeps())
				}
			}
		}
	}
	for base := range w.bases {
		n := most[base]
		if n == 0 {
			n = 11
		}
		if base == "c0" && w.max > 0 {
			n = w.max
		}
		for _, name := range w.used[base][max(0, len(w.used[base])-n):] {
			wanted[name] = true
		}
	}
	for name := range there {
		if base, _, isVersion := strings.Cut(name, "-"); isVersion && !wanted[name] {
			w.t.Fatalf("%s\n%s of %s is kept, and nothing needs it", w.history, name, base)
		}
	}
	for base, names := range w.used { // what went is not the newest any more
		w.used[base] = slices.DeleteFunc(names, func(n string) bool { return !there[n] })
	}
	w.checkRole(list, there)
}

// strict tells whether an annotation may have dropped a version of a base that
// an old template names.
func (w *world) strict(base string, current bool) bool { return base == "c0" && w.max > 0 && !current }

// checkRole wants all versions that are there to be named by the role.
func (w *world) checkRole(list *manifest.List, there map[string]bool) {
	for _, o := range list.Objects {
		if o.ID.Kind != "Role" {
			continue
		}
		var names []string
		for _, n := range o.Root().Get("rules").Elems()[0].Get("resourceNames").Elems() {
			names = append(names, n.Value())
		}
		for name := range there {
			base, _, isVersion := strings.Cut(name, "-")
			if _, has := w.bases[base]; isVersion && has && !slices.Contains(names, name) {
				w.t.Fatalf("%s\nthe role may not read %s: %v", w.history, name, names)
			}
		}
	}
}

// TestRetention runs thousands of random histories: a version that a workload can
// go back to is never missing, none is kept that nothing needs, and a second run
// changes nothing.
func TestRetention(t *testing.T) {
	histories := 700
	if testing.Short() {
		histories = 25 // with the race detector, say
	}
	for _, mode := range []struct {
		name, naming string
		output       bool
	}{{"keep", "hash", false}, {"keep with numbers", "sequence", false}, {"output", "hash", true}} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(histories) {
				w := &world{
					t: t, rand: rand.New(rand.NewPCG(seed, 7)), naming: mode.naming, output: mode.output,
					bases:     map[string]string{"c0": "A", "c1": "A"},
					workloads: map[string]*workload{"w0": {limit: 1, refs: map[string]string{"c0": "c0", "c1": "c1"}}},
					templates: map[string][]template{}, used: map[string][]string{},
				}
				if seed%7 == 0 {
					w.max = 1 + w.rand.IntN(3)
				}
				w.do("seed %d, at most %d", seed, w.max)
				for step := range 14 {
					list := w.hydrate()
					w.deploy(list)
					w.check(list)
					if step%7 == 3 {
						w.again()
					}
					w.edit()
				}
			}
		})
	}
}

// again wants a second run to change nothing.
func (w *world) again() {
	before := maps.Clone(w.files)
	w.hydrate()
	if !maps.Equal(before, w.files) {
		w.t.Fatalf("%s\na second run changes\n%v\nto\n%v", w.history, before, w.files)
	}
}
