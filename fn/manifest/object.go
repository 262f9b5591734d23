package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// An ID is what a resource was called when it was read.
type ID struct{ APIVersion, Kind, Namespace, Name string }

// Group gives the API group; "" for the core group.
func (id ID) Group() string {
	if group, _, ok := strings.Cut(id.APIVersion, "/"); ok {
		return group
	}
	return ""
}

// String gives "Kind namespace/name", or "Kind name" without a namespace.
func (id ID) String() string {
	if id.Namespace == "" {
		return strings.TrimSpace(id.Kind + " " + id.Name)
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// A File says where an object came from.
type File struct {
	Path  string // "" where that is not known
	Index int    // which document of the file, from 0
}

// An Object is one resource. Its ID and File do not change when a step edits
// the resource, so that no step looks back at what another did.
type Object struct {
	tree
	ID   ID
	File File
	// Package names the package that the object belongs to; names are resolved
	// inside one package. "" where there is but one.
	Package string

	src *Source
	// gone is set for an object that was removed.
	gone bool
	// seq is the list that holds the object, of an item of a List or of a
	// ResourceList that was decoded as a whole; nil elsewhere.
	seq *Node
	// inList is set for an item of a List.
	inList bool
	// config is set for the item that is the functionConfig too.
	config bool
}

// Annotations that orchestrators use to say where an item belongs.
// https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md
const (
	PathAnnotation          = "internal.config.kubernetes.io/path"
	IndexAnnotation         = "internal.config.kubernetes.io/index"
	PackagePathAnnotation   = "internal.config.kubernetes.io/package-path"
	legacyPathAnnotation    = "config.kubernetes.io/path"
	legacyIndexAnnotation   = "config.kubernetes.io/index"
	LocalConfigAnnotation   = "config.kubernetes.io/local-config"
	CachingIgnoreAnnotation = "caching.spinnaker.io/ignore"
	// SourceAnnotation marks the source of versions that are objects of their own.
	SourceAnnotation = "fn.belay.dev/source"
	// RetainedAnnotation marks a version that is not current.
	RetainedAnnotation = "fn.belay.dev/retained"
	// PreviousNamesAnnotation holds the names that kustomize changed, with commas
	// between them.
	// https://github.com/kubernetes-sigs/kustomize/blob/master/api/internal/utils/annotations.go
	PreviousNamesAnnotation = "internal.config.kubernetes.io/previousNames"
)

// Annotations of Spinnaker that more than one step reads.
// https://spinnaker.io/docs/reference/artifacts/in-kubernetes-v2/
// https://spinnaker.io/docs/reference/providers/kubernetes-v2/#strategy
const (
	ArtifactNameAnnotation    = "artifact.spinnaker.io/name"
	ArtifactVersionAnnotation = "artifact.spinnaker.io/version"
	VersionedAnnotation       = "strategy.spinnaker.io/versioned"
	HistoryAnnotation         = "strategy.spinnaker.io/max-version-history"
	SourceCapacityAnnotation  = "strategy.spinnaker.io/use-source-capacity"
)

// Root gives the mapping that is the whole resource.
func (o *Object) Root() *Node { return o.root }

// deployed yields the fields of the object but for its status, which
// controllers write and nobody deploys.
func (o *Object) deployed() iter.Seq2[*Node, *Node] {
	return func(yield func(*Node, *Node) bool) {
		for k, v := range o.root.Pairs() {
			if k.value != "status" && !yield(k, v) {
				return
			}
		}
	}
}

// Changed tells whether a step edited the object.
func (o *Object) Changed() bool { return o.dirty() }

// Name gives the present name of the object, which Rename changes.
func (o *Object) Name() string { return scalarText(o.root.Lookup("metadata", "name")) }

// Annotation gives the value of an annotation; "" where it is missing. Those of
// Spinnaker are read without the JSON quotes that it once wrote around them.
// https://github.com/spinnaker/clouddriver/blob/master/clouddriver-kubernetes/src/main/java/com/netflix/spinnaker/clouddriver/kubernetes/description/manifest/KubernetesManifestAnnotater.java
func (o *Object) Annotation(key string) string {
	value := scalarText(o.root.Lookup("metadata", "annotations").Get(key))
	if !strings.HasPrefix(value, `"`) || !strings.Contains(key, ".spinnaker.io/") {
		return value
	}
	var s string
	if err := json.Unmarshal([]byte(value), &s); err != nil {
		return value
	}
	return s
}

// Label gives the value of a label; "" where it is missing.
func (o *Object) Label(key string) string {
	return scalarText(o.root.Lookup("metadata", "labels").Get(key))
}

// SetAnnotation gives an annotation a value, and makes the annotation where it
// is missing.
func (o *Object) SetAnnotation(key, value string) {
	o.mustSet(value, "metadata", "annotations", key)
}

// SetLabel gives a label a value, and makes the label where it is missing.
func (o *Object) SetLabel(key, value string) {
	o.mustSet(value, "metadata", "labels", key)
}

// mustSet sets a field of the metadata, whose shape was checked on reading.
func (o *Object) mustSet(value any, keys ...string) {
	if err := o.SetField(o.root, value, keys...); err != nil {
		panic("belay: internal error: " + err.Error())
	}
}

// RemoveAnnotation removes an annotation; annotations that become empty go too.
func (o *Object) RemoveAnnotation(key string) {
	o.Remove(o.root.Lookup("metadata", "annotations").Get(key))
}

// RemoveLabel removes a label; labels that become empty go too.
func (o *Object) RemoveLabel(key string) {
	o.Remove(o.root.Lookup("metadata", "labels").Get(key))
}

// Rename gives the object a new name; its ID stays what it was.
func (o *Object) Rename(name string) { o.mustSet(name, "metadata", "name") }

// Path gives the field path of a node of the object, such as
// spec.containers[0].image.
func (o *Object) Path(n *Node) string { return pathString(steps(n)) }

// Line gives the line in its source that n starts on, from 1; 0 for a node
// that is not in the text yet.
func (o *Object) Line(n *Node) int {
	if n == nil || n.start == noText {
		return 0
	}
	return o.src.line(int(n.start))
}

// LineHolds tells whether the line of its source that n starts on holds a text,
// in a comment, say.
func (o *Object) LineHolds(n *Node, text string) bool {
	if n == nil || n.start == noText {
		return false
	}
	src := o.src.text
	at := min(int(n.start), len(src))
	from := strings.LastIndexByte(src[:at], '\n') + 1
	line, _, _ := strings.Cut(src[from:], "\n")
	return strings.Contains(line, text)
}

// Document gives the text of the document that holds the object and nothing
// else, as it was read, without the marker before it; "" for an item of a List or
// of a ResourceList.
func (o *Object) Document() string {
	from, to, ok := o.DocumentRange()
	if !ok {
		return ""
	}
	return o.src.text[from:to]
}

// DocumentRange gives where Document stands in the text of the file.
func (o *Object) DocumentRange() (from, to int, ok bool) {
	if o.unit == nil || o.src.items != nil || o.inList || o.unit.dash > 0 {
		return 0, 0, false
	}
	for _, other := range o.src.objects {
		if other != o && other.unit == o.unit {
			return 0, 0, false
		}
	}
	from, to = o.unit.base, o.unit.base+len(o.unit.text)
	if marker, _, _ := strings.Cut(o.unit.text, "\n"); isDocumentStart(strings.TrimSuffix(marker, "\r")) && isBlank(strings.TrimSuffix(marker, "\r")[3:]) {
		from = min(from+len(marker)+1, to)
	}
	return from, to, true
}

// PodTemplate gives the pod template of a workload; nil for other objects.
// Custom kinds are known by their shape.
func (o *Object) PodTemplate() *Node {
	if o.IsSchema() {
		return nil
	}
	for _, t := range []*Node{
		o.root.Lookup("spec", "jobTemplate", "spec", "template"), // CronJob
		o.root.Lookup("spec", "template"),
		o.root.Get("template"), // PodTemplate
	} {
		if t.IsMapping() && t.Lookup("spec", "containers").IsSequence() {
			return t
		}
	}
	return nil
}

// IsLocal tells whether the object is configuration of tools and is never
// deployed: marked local-config, of a kind that only tools read, or the
// functionConfig of this run.
// https://kpt.dev/reference/annotations/local-config/
func (o *Object) IsLocal() bool {
	if v := o.Annotation(LocalConfigAnnotation); o.config || v != "" && v != "false" && !o.IsSource() {
		return true
	}
	switch group := o.ID.Group(); group {
	case "kpt.dev", "kustomize.config.k8s.io", "fn.belay.dev", "config.kubernetes.io":
		return true
	default:
		return o.ID.Kind == "Kustomization" && group == ""
	}
}

// IsSource tells whether the object is the source of versions that are objects
// of their own: no deployer takes it, but belay edits it like what is deployed.
func (o *Object) IsSource() bool { return o.Annotation(SourceAnnotation) == "true" }

// IsIgnored tells whether Spinnaker was told to leave the object alone, in
// which case belay does too.
// https://spinnaker.io/docs/reference/providers/kubernetes-v2/#caching
func (o *Object) IsIgnored() bool { return o.Annotation(CachingIgnoreAnnotation) == "true" }

// newObject checks that root is a resource whose metadata can be edited.
// Kinds of lists are unpacked by the caller.
func newObject(root *Node, u *unit, src *Source) (*Object, error) {
	if !root.IsMapping() {
		return nil, errors.New("is not a mapping")
	}
	root.parent = nil // paths begin at the object, in a List as well
	o := &Object{tree: tree{full: src.text, unit: u, root: root}, src: src}
	o.ID.APIVersion, o.ID.Kind = root.Get("apiVersion").Value(), root.Get("kind").Value()
	if !root.Get("apiVersion").IsString() || !root.Get("kind").IsString() || o.ID.Kind == "" {
		return nil, errors.New("has no apiVersion and kind")
	}
	if u.complex {
		// JSON, into which kubectl turns it, has no such keys.
		return nil, errors.New("a key is a list or a mapping")
	}
	meta := root.Get("metadata")
	if !meta.IsNull() && !meta.IsMapping() {
		return nil, errors.New("metadata is not a mapping")
	}
	for _, key := range []string{"labels", "annotations"} {
		if m := meta.Get(key); !m.IsNull() && !m.IsMapping() {
			return nil, fmt.Errorf("metadata.%s is not a mapping", key)
		}
	}
	for _, key := range []string{"name", "namespace"} {
		if m := meta.Get(key); m.Kind() != Scalar {
			return nil, fmt.Errorf("metadata.%s is not a string", key)
		}
	}
	for _, key := range []string{"labels", "annotations"} {
		for k, v := range meta.Get(key).Pairs() {
			if v.kind != Scalar || k.kind != Scalar {
				return nil, fmt.Errorf("metadata.%s[%s] is not a string", key, k.value)
			}
		}
	}
	o.ID.Name, o.ID.Namespace = scalarText(meta.Get("name")), scalarText(meta.Get("namespace"))
	return o, nil
}

// scalarText gives the text of a scalar, "" for a null.
func scalarText(n *Node) string {
	if n.IsNull() {
		return ""
	}
	return n.Value()
}

// Find gives the node at a field path as Path writes it; nil where there is
// none.
func (o *Object) Find(path string) *Node { return findPath(o.root, "", path) }

// ChangedBelow tells whether an edit changed something below a field.
func (o *Object) ChangedBelow(keys ...string) bool {
	return slices.ContainsFunc(o.ops, func(op op) bool {
		if len(op.path) < len(keys) {
			return false
		}
		for i, k := range keys {
			if op.path[i].seq || op.path[i].key != k {
				return false
			}
		}
		return true
	})
}
