package manifest

import (
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// SelectLabels gives what tells whether the labels of an object match a label
// selector, such as app=web,tier in (front, middle). An empty one matches all.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
func SelectLabels(selector string) (func(*Object) bool, error) {
	s, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("%q: not a label selector: %w", selector, err)
	}
	return func(o *Object) bool { return s.Matches(objectLabels{o}) }, nil
}

// MatchesAny tells whether a text matches one of some patterns (path.Match). A
// pattern that is none matches nothing.
func MatchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, err := path.Match(p, text); return ok && err == nil })
}

// objectLabels gives the labels of an object to a selector.
type objectLabels struct{ *Object }

// Has implements labels.Labels.
func (l objectLabels) Has(key string) bool { _, ok := l.Lookup(key); return ok }

// Get implements labels.Labels.
func (l objectLabels) Get(key string) string { return l.Label(key) }

// Lookup implements labels.Labels.
func (l objectLabels) Lookup(key string) (string, bool) {
	n := l.root.Lookup("metadata", "labels").Get(key)
	return n.Value(), n != nil
}
