package moniker

import (
	"slices"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// A selector chooses objects by their labels.
type selector struct {
	object *manifest.Object
	field  string
	match  map[string]string
	rules  []rule
	// pods is set for selectors that choose pods and nothing else.
	pods bool
}

// A rule is one of matchExpressions.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/label-selector/
type rule struct {
	key, operator string
	values        []string
}

// selectors are the selectors of a list that speak of a label that Annotate
// writes, by that label.
type selectors struct{ byKey map[string][]selector }

// collectSelectors finds every selector in the list: mappings with matchLabels
// or matchExpressions at any depth, and the flat ones of Services and
// ReplicationControllers.
func collectSelectors(list *manifest.List) *selectors {
	s := &selectors{byKey: map[string][]selector{}}
	for _, o := range list.Objects {
		if o.IsLocal() || o.IsSchema() {
			continue
		}
		if flat := o.Root().Lookup("spec", "selector"); flat.IsMapping() && o.ID.Group() == "" {
			s.add(selector{object: o, field: "spec.selector", match: stringsOf(flat)})
		}
		s.walk(o, o.Root())
	}
	return s
}

func (s *selectors) walk(o *manifest.Object, n *manifest.Node) {
	for _, e := range n.Elems() {
		s.walk(o, e)
	}
	if !n.IsMapping() {
		return
	}
	labels, rules := n.Get("matchLabels"), n.Get("matchExpressions")
	if labels.IsMapping() || rules.IsSequence() {
		s.add(selector{object: o, field: o.Path(n), match: stringsOf(labels), rules: rulesOf(rules)})
	}
	for _, v := range n.Pairs() {
		if v.Kind() != manifest.Scalar {
			s.walk(o, v)
		}
	}
}

// podSelecting are the API groups whose selectors choose pods, but for those
// that are called namespaceSelector.
var podSelecting = map[string]bool{"": true, "apps": true, "batch": true, "policy": true, "networking.k8s.io": true}

// add keeps a selector that mentions one of belay's labels.
func (s *selectors) add(sel selector) {
	sel.pods = podSelecting[sel.object.ID.Group()] && !strings.Contains(sel.field, "namespaceSelector")
	for _, key := range []string{nameLabel, managedByLabel, Sequence} {
		_, mentioned := sel.match[key]
		if mentioned || slices.ContainsFunc(sel.rules, func(r rule) bool { return r.key == key }) {
			s.byKey[key] = append(s.byKey[key], sel)
		}
	}
}

func stringsOf(n *manifest.Node) map[string]string {
	out := map[string]string{}
	for k, v := range n.Pairs() {
		out[k.Value()] = v.Value()
	}
	return out
}

func rulesOf(n *manifest.Node) []rule {
	var out []rule
	for _, e := range n.Elems() {
		r := rule{key: e.Get("key").Value(), operator: e.Get("operator").Value()}
		for _, v := range e.Get("values").Elems() {
			r.values = append(r.values, v.Value())
		}
		out = append(out, r)
	}
	return out
}

// matches tells whether the selector chooses an object with these labels.
func (s selector) matches(labels map[string]string) bool {
	for k, v := range s.match {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	for _, r := range s.rules {
		have, ok := labels[r.key]
		in := slices.Contains(r.values, have)
		switch r.operator {
		case "In":
			ok = ok && in
		case "NotIn":
			ok = !ok || !in
		case "DoesNotExist":
			ok = !ok
		}
		if !ok {
			return false
		}
	}
	return true
}

// minds names a selector of the package that would match other than before if
// the label m were written among labels; "" if there is none. Selectors of pods
// do not mind the labels of other objects. Namespaces do not count, since some
// selectors reach into others.
func (s *selectors) minds(pkg string, pods bool, labels map[string]string, m mark) string {
	var after map[string]string
	for _, sel := range s.byKey[m.key] {
		if sel.object.Package != pkg || sel.pods && !pods {
			continue
		}
		if after == nil {
			after = make(map[string]string, len(labels)+1)
			for k, v := range labels {
				after[k] = v
			}
			after[m.key] = m.value
		}
		if sel.matches(labels) != sel.matches(after) {
			return sel.object.ID.String() + " (" + sel.field + ")"
		}
	}
	return ""
}
