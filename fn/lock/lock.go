// Package lock keeps what a later run must know: which digest a tag had, and
// which versions of an object were made.
//
// The lock is a v1 ConfigMap named belay.lock, which any deployer tolerates, in
// belay.lock.yaml. It is marked local-config, so that kpt and kustomize do not
// deploy it, and as a skipped hook, so that Argo CD does not. Its data holds
// YAML text with one sorted line for each image and each version, so that git
// merges it line by line. It holds no time, no host and no user.
package lock

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/belay-krm/belay/fn/manifest"
)

// Name and File are what the lock object and its file are called.
const (
	Name = "belay.lock"
	File = "belay.lock.yaml"
)

// A Lock is what one package remembers. The zero value remembers nothing.
type Lock struct {
	// Images gives the digest of each canonical tag reference, such as
	// index.docker.io/library/nginx:1.27.
	Images map[string]string
	// Versions gives the history of each versioned object.
	Versions map[Base]*History

	object *manifest.Object // where the lock was read from; nil for a new one
}

// A Base names the object that versions are versions of.
type Base struct {
	Kind      string // with its group behind a dot, but for the core group
	Namespace string // "" for none
	Name      string // without version
}

// BaseOf gives the base of an object under its unversioned name.
func BaseOf(id manifest.ID, name string) Base {
	b := Base{Kind: id.Kind, Namespace: id.Namespace, Name: name}
	if g := id.Group(); g != "" {
		b.Kind += "." + g
	}
	return b
}

// String gives Kind/namespace/name, or Kind/name without a namespace.
func (b Base) String() string {
	if b.Namespace == "" {
		return b.Kind + "/" + b.Name
	}
	return b.Kind + "/" + b.Namespace + "/" + b.Name
}

// ParseBase is the inverse of String.
func ParseBase(s string) (Base, bool) {
	parts := strings.Split(s, "/")
	switch len(parts) {
	case 2:
		return Base{Kind: parts[0], Name: parts[1]}, true
	case 3:
		return Base{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, true
	}
	return Base{}, false
}

// A History is what is known of the versions of one base.
type History struct {
	// Last is the highest number that was ever given; it never goes down, so
	// that no number is given twice. -1 before the first.
	Last int
	// Versions are the known versions by number.
	Versions []Version
}

// A Version is one content that an object had.
type Version struct {
	Number  int
	Content string // full hash, sha256:...
	Name    string // full name of the object
	Used    int    // recency: the higher, the later it became current
}

// ByContent gives the version with a content, if it is known. A nil History
// knows none.
func (h *History) ByContent(content string) (Version, bool) {
	return h.find(func(v Version) bool { return v.Content == content })
}

// ByNumber gives the version with a number, if it is known. A nil History
// knows none.
func (h *History) ByNumber(number int) (Version, bool) {
	return h.find(func(v Version) bool { return v.Number == number })
}

func (h *History) find(is func(Version) bool) (Version, bool) {
	if h == nil {
		return Version{}, false
	}
	i := slices.IndexFunc(h.Versions, is)
	if i < 0 {
		return Version{}, false
	}
	return h.Versions[i], true
}

// current gives the recency of the version that became current last.
func (h *History) current() int {
	most := 0
	for _, v := range h.Versions {
		most = max(most, v.Used)
	}
	return most
}

// Use notes that a version is current. A version that is current already keeps
// its recency, so that a second run changes nothing. It returns an error where
// the number is known with another content.
func (l *Lock) Use(b Base, number int, content, name string) error {
	h := l.history(b)
	h.Last = max(h.Last, number)
	for i := range h.Versions {
		v := &h.Versions[i]
		if v.Number != number {
			continue
		}
		if v.Content != content {
			return fmt.Errorf("%s: %s is known with another content (%s; now %s)", b, Label(number), v.Content, content)
		}
		if v.Used < h.current() {
			v.Used = h.current() + 1
		}
		v.Name = name
		return nil
	}
	h.add(Version{number, content, name, h.current() + 1})
	return nil
}

// Label writes a number as Spinnaker does: v000.
func Label(number int) string { return fmt.Sprintf("v%03d", number) }

// ParseLabel is the inverse of Label; false for what Label never writes.
func ParseLabel(s string) (int, bool) {
	var n int
	if _, err := fmt.Sscanf(s, "v%d", &n); err != nil || n < 0 || Label(n) != s {
		return 0, false
	}
	return n, true
}

// IsLock tells whether an object is a lock.
func IsLock(o *manifest.Object) bool {
	return o.ID.APIVersion == "v1" && o.ID.Kind == "ConfigMap" && o.ID.Name == Name && o.IsLocal()
}

// Find gives the lock of a package: the one that is among its objects, or an
// empty one. Two locks in a package, and text that is no lock, are errors.
func Find(list *manifest.List, pkg string) (*Lock, error) {
	l := &Lock{}
	for _, o := range list.Objects {
		if o.Package != pkg || !IsLock(o) {
			continue
		}
		if l.object != nil {
			return nil, fmt.Errorf("reading the lock: two objects named %s in one package (%s and %s): keep one", Name, l.object.File.Path, o.File.Path)
		}
		l.object = o
		if err := l.parse(o); err != nil {
			return nil, fmt.Errorf("reading the lock %s: %w", o.File.Path, err)
		}
	}
	return l, nil
}

func (l *Lock) parse(o *manifest.Object) error {
	data := o.Root().Get("data")
	images, err := lines(data.Get("images").Value())
	if err != nil {
		return fmt.Errorf("data.images: %w", err)
	}
	versions, err := lines(data.Get("versions").Value())
	if err != nil {
		return fmt.Errorf("data.versions: %w", err)
	}
	return errors.Join(l.addImages(images), l.addLines(versions))
}

// lines gives the keys and values of a text, in turn.
func lines(text string) ([]*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return nil, err
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("is not a mapping")
	}
	return doc.Content[0].Content, nil
}

// addImages takes in the lines of data.images. A merge of two branches may have
// left a tag twice: with two digests, that is an error.
func (l *Lock) addImages(nodes []*yaml.Node) error {
	var errs []error
	for i := 0; i+1 < len(nodes); i += 2 {
		ref, digest := nodes[i].Value, nodes[i+1].Value
		if before, twice := l.Images[ref]; twice && before != digest {
			errs = append(errs, fmt.Errorf("data.images: %s is there twice, as %s and as %s: two branches resolved it at different times (remove one of the lines)", ref, before, digest))
			continue
		}
		if l.Images == nil {
			l.Images = map[string]string{}
		}
		l.Images[ref] = digest
	}
	return errors.Join(errs...)
}

// addLines takes in the lines of data.versions, keys and values in turn. A merge
// of two branches may have left a key twice: the high-water mark is then the
// higher of both; of versions, two contents for one number are an error.
func (l *Lock) addLines(nodes []*yaml.Node) error {
	seen := map[string]entry{}
	var errs []error
	for i := 0; i+1 < len(nodes); i += 2 {
		key := nodes[i].Value
		var e entry
		if err := nodes[i+1].Decode(&e); err != nil {
			errs = append(errs, fmt.Errorf("data.versions: %s: %w", key, err))
			continue
		}
		before, twice := seen[key]
		seen[key] = e
		switch {
		case twice && strings.Contains(key, "@") && before.Content != e.Content:
			errs = append(errs, fmt.Errorf("data.versions: %s is there twice, as %s and as %s: two branches gave one number to two contents (keep the line of the content that the object has now, remove the other, and run belay hydrate)", key, before.Content, e.Content))
			continue
		case twice && strings.Contains(key, "@"):
			continue
		}
		if err := l.add(key, e); err != nil {
			errs = append(errs, fmt.Errorf("data.versions: %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// An entry is the value of one line of data.versions: the high-water mark of a
// base, or one version.
type entry struct {
	Last    string `yaml:"last"`
	Content string `yaml:"content"`
	Name    string `yaml:"name"`
	Used    int    `yaml:"used"`
}

// add takes in one line of data.versions.
func (l *Lock) add(key string, e entry) error {
	name, label, isVersion := strings.Cut(key, "@")
	b, ok := ParseBase(name)
	if !ok {
		return fmt.Errorf("is not Kind/namespace/name")
	}
	if !isVersion {
		label = e.Last
	}
	number, ok := ParseLabel(label)
	if !ok {
		return fmt.Errorf("%q is not a version such as v000", label)
	}
	h := l.history(b)
	h.Last = max(h.Last, number)
	if isVersion {
		h.add(Version{number, e.Content, e.Name, e.Used})
	}
	return nil
}

// history gives the history of a base, and begins one where there is none.
func (l *Lock) history(b Base) *History {
	if l.Versions == nil {
		l.Versions = map[Base]*History{}
	}
	if l.Versions[b] == nil {
		l.Versions[b] = &History{Last: -1}
	}
	return l.Versions[b]
}

// add takes in a version, in the order of numbers.
func (h *History) add(v Version) {
	h.Versions = append(h.Versions, v)
	slices.SortFunc(h.Versions, func(a, b Version) int { return cmp.Compare(a.Number, b.Number) })
}

// images and versions give the text of the lock's data: one sorted line each.
func (l *Lock) images() string {
	var b strings.Builder
	for _, ref := range slices.Sorted(maps.Keys(l.Images)) {
		fmt.Fprintf(&b, "%s: %s\n", ref, l.Images[ref])
	}
	return b.String()
}

func (l *Lock) versions() string {
	var lines []string
	for b, h := range l.Versions {
		lines = append(lines, fmt.Sprintf("%s: {last: %s}\n", b, Label(h.Last)))
		for _, v := range h.Versions {
			lines = append(lines, fmt.Sprintf("%s@%s: {content: %s, name: %s, used: %d}\n", b, Label(v.Number), v.Content, v.Name, v.Used))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// IsEmpty tells whether there is nothing to remember.
func (l *Lock) IsEmpty() bool { return len(l.Images) == 0 && len(l.Versions) == 0 }

// IsNew tells whether the package had no lock.
func (l *Lock) IsNew() bool { return l.object == nil }

// Write puts the lock into its object, which is left as it is where nothing
// changed, or adds the object to the list, at path, where the package has none
// and there is something to remember.
func (l *Lock) Write(list *manifest.List, pkg, path string) error {
	if l.object == nil {
		if l.IsEmpty() {
			return nil
		}
		var err error
		l.object, err = list.Add(l.manifest(), pkg, path)
		return err
	}
	for _, f := range []struct{ key, text string }{{"images", l.images()}, {"versions", l.versions()}} {
		if f.text == "" && l.object.Root().Lookup("data", f.key).Value() == "" {
			continue
		}
		if err := l.object.SetField(l.object.Root(), f.text, "data", f.key); err != nil {
			return fmt.Errorf("writing the lock: %w", err)
		}
	}
	return nil
}

// manifest gives a new lock object.
func (l *Lock) manifest() manifest.Map {
	data := manifest.Map{}
	if len(l.Images) > 0 {
		data = append(data, manifest.Pair{Key: "images", Value: l.images()})
	}
	if len(l.Versions) > 0 {
		data = append(data, manifest.Pair{Key: "versions", Value: l.versions()})
	}
	return manifest.Map{
		{Key: "apiVersion", Value: "v1"},
		{Key: "kind", Value: "ConfigMap"},
		{Key: "metadata", Value: manifest.Map{
			{Key: "name", Value: Name},
			{Key: "annotations", Value: manifest.Map{
				{Key: manifest.LocalConfigAnnotation, Value: "true"},
				{Key: "argocd.argoproj.io/hook", Value: "Skip"},
			}},
		}},
		{Key: "data", Value: data},
	}
}
