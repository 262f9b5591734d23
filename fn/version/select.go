package version

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// Annotations that say which version of what an object is. belay owns them.
// https://spinnaker.io/docs/reference/artifacts/in-kubernetes-v2/
const (
	TypeAnnotation     = "artifact.spinnaker.io/type"
	NameAnnotation     = manifest.ArtifactNameAnnotation
	LocationAnnotation = "artifact.spinnaker.io/location"
	VersionAnnotation  = manifest.ArtifactVersionAnnotation
	// ContentAnnotation holds the full content hash, by which a later edit is
	// noticed.
	ContentAnnotation = "fn.belay.dev/content"
	// VersionedAnnotation overrides what is versioned.
	VersionedAnnotation = manifest.VersionedAnnotation

	// RetainedAnnotation marks a version that is not current, and is kept for
	// rollbacks; UsedAnnotation says how recently it was, for a lock that is lost.
	RetainedAnnotation = manifest.RetainedAnnotation
	UsedAnnotation     = "fn.belay.dev/used"
	// KeepOriginalAnnotation asks that an object is deployed under its own name too.
	KeepOriginalAnnotation = "fn.belay.dev/keep-original"
	// HistoryAnnotation says how many versions of an object are kept.
	HistoryAnnotation = manifest.HistoryAnnotation

	needsHashAnnotation = "internal.config.kubernetes.io/needsHashSuffix"
)

// A subject is an object that gets versions.
type subject struct {
	object *manifest.Object
	index  int // place in the list
	base   lock.Base
	forced bool // versioned whether or not it is referred to
	// label is the version that the object carries; "" for a new one.
	label string
	refs  []edge // what the object refers to
	// referred tells whether something refers to the object.
	referred bool
	state    state
	name     string // the name that its version has; "" before it is named
	group    *group
	// version is the object that carries the version: object itself, or one of
	// its own; nil before it is named.
	version *manifest.Object
	// frozen is set for a version that is not to be edited.
	frozen bool
	// history is how many versions an annotation asks to keep; 0 for none.
	history int
	// released is set for a former source that gets no versions any more.
	released bool

	// secret is the unversioned name of the Secret that a controller makes of the
	// object; "" for most. secretAt leads to the field that gives it.
	secret   string
	secretAt []string
}

type state uint8

const (
	waiting state = iota
	visiting
	named
	failed
	dropped // a version that nothing needs any more
)

// An edge is a reference to a subject.
type edge struct {
	ref  manifest.Reference
	to   *subject
	from string // the name as the reference had it
}

// choose finds the objects of the list that get versions, and reports those
// that look as if they did, but do not.
func (r *renamer) choose() {
	var selectors []func(*manifest.Object, string) bool
	for _, s := range r.cfg.Select {
		selectors = append(selectors, s.ready())
	}
	for i, o := range r.list.Objects {
		if o.IsLocal() || o.IsIgnored() {
			r.sayLeftAlone(o)
			continue
		}
		s := &subject{object: o, index: i}
		s.base, s.label = baseOf(o)
		s.base = r.canonical(o.Package, s.base)
		if !r.chosen(s, selectors) {
			r.release(s)
			continue
		}
		s.forced = s.forced || s.label != "" || o.IsSource()
		s.provides(o)
		r.subjects = append(r.subjects, s)
	}
	r.takeLeftover()
}

// canonical gives the base under which the lock knows it, where an absent
// namespace and the default one are the same.
func (r *renamer) canonical(pkg string, b lock.Base) lock.Base {
	if r.cfg.DefaultNamespace == "" || b.Namespace != "" && b.Namespace != r.cfg.DefaultNamespace {
		return b
	}
	absent := b
	absent.Namespace, b.Namespace = "", r.cfg.DefaultNamespace
	if h := r.locks[pkg].Versions; h[b] == nil && h[absent] != nil {
		return absent
	}
	return b
}

// sayLeftAlone reports an object of a kind that gets versions which no step touches.
func (r *renamer) sayLeftAlone(o *manifest.Object) {
	switch isKind := r.kinds[lock.BaseOf(o.ID, "").Kind]; {
	case !isKind || lock.IsLock(o):
	case o.IsIgnored():
		r.report(o, manifest.Info, "", "is not versioned: "+manifest.CachingIgnoreAnnotation+" says that it is left alone")
	case o.Annotation(manifest.LocalConfigAnnotation) != "":
		r.report(o, manifest.Info, "", "is not versioned: nobody deploys it ("+manifest.LocalConfigAnnotation+")")
	}
}

// chosen tells whether an object gets versions.
func (r *renamer) chosen(s *subject, selectors []func(*manifest.Object, string) bool) bool {
	o := s.object
	forced, wanted, err := r.wants(o)
	if err != nil {
		r.report(o, manifest.Error, "metadata.annotations["+VersionedAnnotation+"]", err.Error())
		return false
	}
	if !wanted {
		if o.Annotation(VersionedAnnotation) == "false" && r.kinds[lock.BaseOf(o.ID, "").Kind] {
			r.report(o, manifest.Info, "", "is not versioned: "+VersionedAnnotation+" says so")
		}
		return false
	}
	r.stats.Versionable++
	if reason := never(o); reason != "" {
		r.report(o, manifest.Info, "", "is not versioned: "+reason)
		return false
	}
	s.forced = forced
	// What is no number is refused where strategies are read.
	if n, err := strconv.Atoi(o.Annotation(HistoryAnnotation)); err == nil && n > 0 {
		s.history = n
	}
	selected := func(chosen func(*manifest.Object, string) bool) bool { return chosen(o, s.base.Name) }
	if len(selectors) > 0 && !forced && !slices.ContainsFunc(selectors, selected) {
		r.report(o, manifest.Info, "", "is not versioned: versions.select does not choose it")
		return false
	}
	return true
}

// wants tells whether the kind or an annotation asks for versions of o.
func (r *renamer) wants(o *manifest.Object) (forced, wanted bool, err error) {
	switch v := o.Annotation(VersionedAnnotation); v {
	case "true":
		return true, true, nil
	case "false":
		return false, false, nil
	case "":
		return false, r.kinds[lock.BaseOf(o.ID, "").Kind], nil
	default:
		return false, false, fmt.Errorf("%q is neither true nor false", v)
	}
}

// never gives the reason why an object must keep its name whatever is asked;
// "" for none.
func never(o *manifest.Object) string {
	root := o.Root()
	meta := root.Get("metadata")
	switch {
	case o.ID.Name == "" && meta.Get("generateName") != nil:
		return "the API server generates its name"
	case o.ID.Name == "":
		return "it has no name"
	case meta.Get("ownerReferences").Len() > 0:
		return "a controller owns it (ownerReferences)"
	case root.Get("sops").IsMapping():
		return "SOPS encrypted it, and a new name would break its MAC"
	case o.Annotation(needsHashAnnotation) != "":
		return "kustomize versions it by itself (disableNameSuffixHash: true leaves that to belay)"
	case o.Annotation(ContentAnnotation) == "" && hashedByKustomize(o):
		return "kustomize did it already (its name ends in the hash of its content)"
	case joins(o):
		return "somebody else makes its Secret (creationPolicy)"
	case o.ID.Group() == "bitnami.com" && o.ID.Kind == "SealedSecret" && !isWide(o):
		return "it is sealed for its name (seal it with --scope namespace-wide)"
	case isCore(o, "ConfigMap") && o.ID.Name == "kube-root-ca.crt":
		return "the cluster makes it"
	case isCore(o, "Secret"):
		return secretReason(root.Get("type").Value())
	}
	return ""
}

// secretReason says why Secrets of a type keep their name: something else looks
// them up by it. https://kubernetes.io/docs/concepts/configuration/secret/#secret-types
func secretReason(kind string) string {
	switch kind {
	case "kubernetes.io/service-account-token":
		return "the cluster fills it in (a service account token)"
	case "bootstrap.kubernetes.io/token":
		return "the cluster finds it by its name (a bootstrap token)"
	case "helm.sh/release.v1":
		return "Helm finds it by its name (a release)"
	}
	return ""
}

// baseOf gives the base of an object and the version it carries. The
// annotations are believed where the name is made of them; those of Spinnaker, which
// say nothing of the content, where the version is a number.
func baseOf(o *manifest.Object) (lock.Base, string) {
	base, label := o.Annotation(NameAnnotation), o.Annotation(VersionAnnotation)
	_, isNumber := lock.ParseLabel(label)
	if base == "" || label == "" || o.ID.Name != base+"-"+label || o.Annotation(ContentAnnotation) == "" && !isNumber {
		return lock.BaseOf(o.ID, o.ID.Name), ""
	}
	return lock.BaseOf(o.ID, base), label
}

// IsVersion tells whether an object is a version, and gives its label.
func IsVersion(o *manifest.Object) (label string, ok bool) {
	_, label = baseOf(o)
	return label, label != ""
}

// artifactType gives the type that Spinnaker gives an object: kubernetes/ and
// the kind, whose first letter is small for native kinds.
func artifactType(id manifest.ID) string {
	group := id.Group()
	if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		return "kubernetes/" + id.Kind + "." + group
	}
	return "kubernetes/" + strings.ToLower(id.Kind[:1]) + id.Kind[1:]
}
