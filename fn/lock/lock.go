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
	"strconv"
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
	// Templates gives the pod templates that each workload had, the oldest first.
	Templates map[Base][]Template

	object *manifest.Object // where the lock was read from; nil for a new one
	// released are the versions that the committed lock knows; nil for all.
	released map[Base]map[string]bool
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
	// that no number is given twice. -1 before the first, and of names by hash.
	Last int
	// Versions are the known versions, by number and then by label.
	Versions []Version
}

// A Version is one content that an object had.
type Version struct {
	Label   string // v003, or the hash that the name ends in
	Content string // full hash, sha256:...
	Name    string // full name of the object
	Used    int    // recency: the higher, the later it became current
}

// ByContent gives the version with a content that has a number, if it is known.
// A nil History knows none.
func (h *History) ByContent(content string) (Version, bool) {
	return h.find(func(v Version) bool { return v.Content == content && numberOf(v.Label) >= 0 })
}

// ByLabel gives the version with a label, if it is known. A nil History knows
// none.
func (h *History) ByLabel(label string) (Version, bool) {
	return h.find(func(v Version) bool { return v.Label == label })
}

// Current gives the labels of the version that became current last: several
// where branches were merged. A nil History has none.
func (h *History) Current() []string {
	if h == nil {
		return nil
	}
	var out []string
	most := h.current()
	for _, v := range h.Versions {
		if v.Used == most {
			out = append(out, v.Label)
		}
	}
	return out
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
// the label is known with another content.
func (l *Lock) Use(b Base, label, content, name string) error {
	h := l.history(b)
	h.Last = max(h.Last, numberOf(label))
	for i := range h.Versions {
		v := &h.Versions[i]
		if v.Label != label {
			continue
		}
		if v.Content != content {
			return fmt.Errorf("%s: %s is known with another content (%s; now %s)", b, label, v.Content, content)
		}
		if v.Used < h.current() || len(h.Current()) > 1 {
			v.Used = h.current() + 1
		}
		v.Name = name
		return nil
	}
	h.add(Version{label, content, name, h.current() + 1})
	return nil
}

// Rebase takes the pod templates, and the recency of versions, from the lock that
// was committed last: the commit is the deployment, and what was tried since then
// never ran anywhere. The high-water marks stay.
func (l *Lock) Rebase(committed *Lock) {
	l.Templates = maps.Clone(committed.Templates)
	l.released = map[Base]map[string]bool{}
	for _, h := range l.Versions {
		for i := range h.Versions {
			h.Versions[i].Used = 0
		}
	}
	for b, h := range committed.Versions {
		l.released[b] = map[string]bool{}
		own := l.history(b)
		own.Last = max(own.Last, h.Last)
		for _, v := range h.Versions {
			l.released[b][v.Label] = true
			own.Versions = slices.DeleteFunc(own.Versions, func(o Version) bool { return o.Label == v.Label })
			own.add(v)
		}
	}
}

// IsReleased tells whether a version may have been deployed.
func (l *Lock) IsReleased(b Base, label string) bool {
	return l.released == nil || l.released[b][label]
}

// Recall takes in a version at hand that the lock does not know. Where the
// committed lock does not know it either, it is not among those used last.
func (l *Lock) Recall(b Base, label, content, name string) error {
	if l.IsReleased(b, label) {
		return l.Use(b, label, content, name)
	}
	if _, known := l.Versions[b].ByLabel(label); known {
		return nil
	}
	h := l.history(b)
	h.Last = max(h.Last, numberOf(label))
	h.add(Version{label, content, name, 0})
	return nil
}

// Keep forgets the versions of a base but for those whose labels are wanted. The
// high-water mark stays.
func (l *Lock) Keep(b Base, wanted func(label string) bool) {
	h := l.Versions[b]
	if h == nil {
		return
	}
	h.Versions = slices.DeleteFunc(h.Versions, func(v Version) bool { return !wanted(v.Label) })
	if len(h.Versions) == 0 && h.Last < 0 {
		delete(l.Versions, b)
	}
}

// numberOf gives the number of a label, -1 for a hash.
func numberOf(label string) int {
	if n, ok := ParseLabel(label); ok {
		return n
	}
	return -1
}

// Label writes a number as Spinnaker does: v000.
func Label(number int) string { return fmt.Sprintf("v%03d", number) }

// ParseLabel is the inverse of Label; false for what Label never writes.
func ParseLabel(s string) (int, bool) {
	digits, ok := strings.CutPrefix(s, "v")
	if !ok || len(digits) < 3 || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || len(digits) > 3 && digits[0] == '0' {
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

// Parse gives the lock that a file holds.
func Parse(data []byte) (*Lock, error) {
	list, err := manifest.ReadFiles([]manifest.Input{{Path: File, Data: data}})
	if err != nil {
		return nil, fmt.Errorf("reading the lock: %w", err)
	}
	return Find(list, "")
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
	templates, err := lines(data.Get("templates").Value())
	if err != nil {
		return fmt.Errorf("data.templates: %w", err)
	}
	return errors.Join(l.addImages(images), l.addLines(versions), l.addTemplates(templates))
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
// of two branches may have left a key twice: the high-water mark and the recency
// are then the higher of both; of versions, two contents for one number are an error.
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
			l.usedAtLeast(key, e.Used)
			continue
		}
		if err := l.add(key, e); err != nil {
			errs = append(errs, fmt.Errorf("data.versions: %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// usedAtLeast makes the recency of a version that is there not less than used.
func (l *Lock) usedAtLeast(key string, used int) {
	name, label, _ := strings.Cut(key, "@")
	b, ok := ParseBase(name)
	if !ok || l.Versions[b] == nil {
		return // it was refused before
	}
	for i, v := range l.Versions[b].Versions {
		if v.Label == label {
			l.Versions[b].Versions[i].Used = max(v.Used, used)
		}
	}
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
	if numberOf(label) < 0 && (!isVersion || !isHash(label)) {
		return fmt.Errorf("%q is not a version such as v000", label)
	}
	h := l.history(b)
	h.Last = max(h.Last, numberOf(label))
	if isVersion {
		h.add(Version{label, e.Content, e.Name, e.Used})
	}
	return nil
}

// isHash tells whether a label is one that a hash gives: ten letters and digits.
func isHash(label string) bool {
	return len(label) == 10 && strings.Trim(label, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
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

// add takes in a version, in the order of numbers and labels.
func (h *History) add(v Version) {
	h.Versions = append(h.Versions, v)
	slices.SortFunc(h.Versions, func(a, b Version) int {
		return cmp.Or(cmp.Compare(numberOf(a.Label), numberOf(b.Label)), cmp.Compare(a.Label, b.Label))
	})
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
		if h.Last >= 0 {
			lines = append(lines, fmt.Sprintf("%s: {last: %s}\n", b, Label(h.Last)))
		}
		for _, v := range h.Versions {
			lines = append(lines, fmt.Sprintf("%s@%s: {content: %s, name: %s, used: %d}\n", b, v.Label, v.Content, v.Name, v.Used))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// A field is one key of the data of the lock object.
type field struct{ key, text string }

func (l *Lock) data() []field {
	return []field{{"images", l.images()}, {"versions", l.versions()}, {"templates", l.templates()}}
}

// IsEmpty tells whether there is nothing to remember.
func (l *Lock) IsEmpty() bool {
	return len(l.Images) == 0 && len(l.Versions) == 0 && len(l.Templates) == 0
}

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
	for _, f := range l.data() {
		have := l.object.Root().Lookup("data", f.key)
		if f.text == "" || have.Value() == "" {
			l.object.Remove(have) // a text of several lines begins anew
		}
		if f.text == "" {
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
	for _, f := range l.data() {
		if f.text != "" {
			data = append(data, manifest.Pair{Key: f.key, Value: f.text})
		}
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
