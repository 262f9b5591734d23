package fn

import (
	"cmp"
	"context"
	"path"
	"slices"
	"time"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/moniker"
	"github.com/belay-krm/belay/fn/strategy"
	"github.com/belay-krm/belay/fn/traffic"
	"github.com/belay-krm/belay/fn/version"
)

// Options are what a run is given besides its configuration.
type Options struct {
	// Resolver finds digests; nil where nothing may be asked: then what no lock
	// holds is an error.
	Resolver digest.Resolver
	// Progress, if not nil, is told how many images are resolved; see
	// [digest.Options].
	Progress func(done, total int)
	// Start is when the run began; zero for now.
	Start time.Time
	// Previous gives an object of the previous output; nil where there is none.
	// Without the function, what was read is the previous output.
	Previous func(*manifest.Object) *manifest.Object
	// Versions are those that the previous output holds. Retain is set where that
	// output is where this one goes: what a rollback needs of them is kept then.
	Versions []*manifest.Object
	Retain   bool
	// Committed is the lock of the commit that the files are edited on; nil where
	// that is not known. Versions and pod templates that only the lock in the list
	// knows were never deployed.
	Committed *lock.Lock
	// LockFile is the path that a new lock gets; "" for belay.lock.yaml.
	LockFile string
	// Partial is set when the list does not hold everything that the lock
	// speaks of: then no entry of the lock counts as unused.
	Partial bool
	// Twins is set where objects may share kind, namespace and name: a folder
	// with the patches of kustomize is full of them.
	Twins bool
	// Durable is set when a new lock is kept although the objects have no files.
	Durable bool
}

// A Report says what a run did.
type Report struct {
	Digests  digest.Stats
	Versions version.Stats
}

// Process hydrates a list: it pins images and attaches load balancers, then names
// versions, so that a version's hash covers what is shipped, then annotates, since
// annotations are not content. Findings are added to list.Results. Where one of them is an
// error ([manifest.List.Failed]), the edits are half done and must not be
// written.
func Process(ctx context.Context, list *manifest.List, cfg Config, opt Options) Report {
	locks, ok := readLocks(list)
	if !ok {
		return Report{}
	}
	if !opt.Twins && cfg.Versions.Naming != "off" {
		refuseTwins(list)
	}
	recallVersions(list, opt)
	before := imagesOf(locks)
	var rep Report
	rep.Digests = digest.Pin(ctx, list, cfg.Digests, locks, digest.Options{Resolver: opt.Resolver, Progress: opt.Progress, Start: opt.Start, Skip: version.IsFrozen})
	if opt.Partial {
		keepImages(locks, before)
	}
	strategy.Check(list)
	strategy.Carry(list, func(o *manifest.Object) *manifest.Object { return opt.replicasFrom(list, o) }, version.IsFrozen)
	// Labels of pods are content: they come before versions are named by it.
	traffic.Attach(list, traffic.Options{Skip: version.IsFrozen, DefaultNamespace: cfg.Versions.DefaultNamespace})
	rep.Versions = version.Rename(list, cfg.Versions, locks, version.Options{
		Durable: func(pkg string) bool { return opt.Durable || isDurable(list, pkg) },
		Path:    func(file string) string { return path.Join(path.Dir(opt.lockFile()), file) },
		Retain:  opt.Retain,
		Partial: opt.Partial,

		Committed: opt.Committed,
	})
	if cfg.Moniker != nil {
		moniker.Annotate(list, *cfg.Moniker)
	}
	strategy.Translate(list, cfg.Strategy)
	if !list.Failed() {
		warnJobs(list, opt.Previous)
		writeLocks(list, locks, opt)
	}
	return rep
}

// replicasFrom gives the object of the previous output whose number of replicas
// an object takes over: its current version, or itself; nil for none.
func (opt Options) replicasFrom(list *manifest.List, o *manifest.Object) *manifest.Object {
	for _, v := range slices.Concat(opt.Versions, list.Objects) {
		if _, is := version.IsVersion(v); is && v != o && v.ID.Kind == o.ID.Kind && v.ID.Group() == o.ID.Group() && v.ID.Namespace == o.ID.Namespace &&
			v.Package == o.Package && v.Annotation(version.NameAnnotation) == o.ID.Name && v.Annotation(version.RetainedAnnotation) == "" {
			return v
		}
	}
	if opt.Previous == nil {
		return nil
	}
	return opt.Previous(o)
}

// lockFile gives the path of a new lock.
func (opt Options) lockFile() string { return cmp.Or(opt.LockFile, lock.File) }

// recallVersions adds the versions of the previous output that are not in the
// list. Those that nothing needs are dropped when objects get their versions.
func recallVersions(list *manifest.List, opt Options) {
	type key struct{ group, kind, namespace, name string }
	keyOf := func(o *manifest.Object) key { return key{o.ID.Group(), o.ID.Kind, o.ID.Namespace, o.ID.Name} }
	there := map[key]bool{}
	for _, o := range list.Objects {
		there[keyOf(o)] = true
	}
	for _, o := range opt.Versions {
		if there[keyOf(o)] {
			continue
		}
		there[keyOf(o)] = true
		if content, err := version.Hash(o); err != nil || content != o.Annotation(version.ContentAnnotation) {
			list.Report(manifest.Result{
				Severity: manifest.Warning, Step: "versioning", Object: o, Line: o.Line(o.Root()),
				Message: "was edited in the output, and is not kept as the version that its name promises (restore it from git, and run again)",
			})
			continue
		}
		if _, err := list.Copy(o, o.Package, path.Join(path.Dir(opt.lockFile()), version.FileOf(o))); err != nil {
			list.Report(manifest.Result{Severity: manifest.Error, Step: "versioning", Object: o, Message: err.Error()})
		}
	}
}

// Images gives the fields of a list that name images, and with others those
// that look so and are not considered. It changes nothing and asks nobody. A lock
// that cannot be read is an error in list.Results.
func Images(list *manifest.List, cfg Config, others bool) []digest.Found {
	locks, ok := readLocks(list)
	if !ok {
		return nil
	}
	return digest.List(list, cfg.Digests, locks, others)
}

// refuseTwins reports objects that share package, kind, namespace and name: a
// reference would not say which of them is meant.
func refuseTwins(list *manifest.List) {
	type key struct{ pkg, group, kind, namespace, name string }
	first := map[key]*manifest.Object{}
	for _, o := range list.Objects {
		if o.IsLocal() || o.ID.Name == "" {
			continue
		}
		k := key{o.Package, o.ID.Group(), o.ID.Kind, o.ID.Namespace, o.ID.Name}
		if first[k] == nil {
			first[k] = o
			continue
		}
		where := ""
		if path := first[k].File.Path; path != "" {
			where = " (the other in " + path + ")"
		}
		list.Report(manifest.Result{
			Severity: manifest.Error, Step: "reading", Object: o,
			Message: "is there twice" + where + ": give each set of manifests a folder with a belay.yaml or Kptfile of its own, or set versions.naming: off to pin images alone",
		})
	}
}

// packages gives the packages of a list in the order of the input.
func packages(list *manifest.List) []string {
	var out []string
	seen := map[string]bool{}
	for _, o := range list.Objects {
		if !seen[o.Package] {
			seen[o.Package] = true
			out = append(out, o.Package)
		}
	}
	return out
}

func readLocks(list *manifest.List) (map[string]*lock.Lock, bool) {
	locks := map[string]*lock.Lock{}
	ok := true
	for _, pkg := range packages(list) {
		l, err := lock.Find(list, pkg)
		if err != nil {
			list.Report(manifest.Result{Severity: manifest.Error, Message: err.Error()})
			ok = false
		}
		locks[pkg] = l
	}
	return locks, ok
}

// isDurable tells whether what a run adds to a package comes back in the next
// run: not so inside `kustomize build` and in a stream, whose objects have no
// files.
func isDurable(list *manifest.List, pkg string) bool {
	for _, o := range list.Objects {
		if o.Package == pkg && o.File.Path != "" {
			return true
		}
	}
	return false
}

// writeLocks puts the locks into the list, where they can come back from.
func writeLocks(list *manifest.List, locks map[string]*lock.Lock, opt Options) {
	file := opt.lockFile()
	for _, pkg := range packages(list) {
		if !opt.Durable && !isDurable(list, pkg) {
			continue
		}
		if err := locks[pkg].Write(list, pkg, file); err != nil {
			list.Report(manifest.Result{Severity: manifest.Error, Message: err.Error()})
		}
	}
}

func imagesOf(locks map[string]*lock.Lock) map[string]map[string]string {
	out := map[string]map[string]string{}
	for pkg, l := range locks {
		out[pkg] = map[string]string{}
		for ref, digest := range l.Images {
			out[pkg][ref] = digest
		}
	}
	return out
}

// keepImages brings back the entries that were dropped as unused.
func keepImages(locks map[string]*lock.Lock, before map[string]map[string]string) {
	for pkg, images := range before {
		for ref, digest := range images {
			if _, ok := locks[pkg].Images[ref]; !ok {
				if locks[pkg].Images == nil {
					locks[pkg].Images = map[string]string{}
				}
				locks[pkg].Images[ref] = digest
			}
		}
	}
}
