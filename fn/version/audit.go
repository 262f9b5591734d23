package version

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// ignoreComment on the line of a mention says that it is none.
const ignoreComment = "belay:ignore"

// audit reports what still mentions the unversioned name of an object, in fields
// that no rule covers: a program that looks there finds nothing any more.
func (r *renamer) audit() {
	if r.cfg.Audit == "off" {
		return
	}
	a := auditor{renamer: r, names: map[scope][]*subject{}, refs: map[*manifest.Node]bool{}}
	for _, s := range r.subjects {
		if s.state == named && s.name != s.base.Name && !s.frozen && !s.group.original {
			k := scope{s.object.Package, s.base.Name}
			a.names[k] = append(a.names[k], s)
		}
	}
	if len(a.names) == 0 {
		return
	}
	for _, n := range r.seen {
		a.refs[n] = true
	}
	for _, o := range r.list.Objects {
		if !o.IsLocal() && !o.IsSchema() && !o.IsIgnored() && !a.made[o] && !a.isFrozen(o) {
			a.object = o
			a.mapping(o.Root(), "")
		}
	}
}

// isFrozen tells whether an object is a version that is not to be edited.
func (a *auditor) isFrozen(o *manifest.Object) bool {
	s := a.index.subjects[o]
	return s != nil && s.frozen
}

// A scope is a name in a package.
type scope struct{ pkg, name string }

// An auditor looks through objects for mentions.
type auditor struct {
	*renamer
	names  map[scope][]*subject
	refs   map[*manifest.Node]bool // what the table knows
	object *manifest.Object
}

// otherNames are keys whose values name things that are neither ConfigMaps nor
// Secrets, and maps of labels.
var otherNames = map[string]bool{
	"status": true, "labels": true, "matchLabels": true, "selector": true, "nodeSelector": true, "labelSelector": true,
	"commonLabels": true, "podLabels": true, "matchExpressions": true, "managedFields": true, "ownerReferences": true,
	"kind": true, "apiVersion": true, "namespace": true, "namespaces": true, "serviceName": true, "serviceAccountName": true,
	"serviceAccount": true, "claimName": true, "clusterName": true, "storageClassName": true, "className": true,
	"ingressClassName": true, "priorityClassName": true, "runtimeClassName": true, "hostname": true, "host": true,
	"hosts": true, "subdomain": true, "topologyKey": true, "key": true, "containerName": true, "container": true,
	"image": true, "mountPath": true, "subPath": true, "group": true, "resource": true, "resources": true, "resourceNames": true, "verbs": true, "apiGroups": true, "schedulerName": true,
	"app": true, "component": true, "job": true, "jobLabel": true, "targetPort": true, "portName": true, "groupName": true,
	"template_name": true, "releaseName": true, "fullnameOverride": true, "nameOverride": true, "chart": true,
}

// namedLists are lists whose elements have names of their own.
var namedLists = map[string]bool{
	"containers": true, "initContainers": true, "ephemeralContainers": true, "volumes": true, "volumeMounts": true, "ports": true,
	"env": true, "endpoints": true, "groups": true, "rules": true, "steps": true, "tasks": true, "templates": true,
	"parameters": true, "metrics": true, "subjects": true, "volumeClaimTemplates": true, "listeners": true, "backendRefs": true,
	"parentRefs": true, "servers": true, "subsets": true, "images": true, "dependencies": true, "alertmanagers": true,
}

// mapping looks at the values of a mapping. under is the key that it stands
// under.
func (a *auditor) mapping(n *manifest.Node, under string) {
	ofOther := n.Get("kind").IsString() && n.Parent() != nil && n.Get("kind").Value() != "ConfigMap" && n.Get("kind").Value() != "Secret"
	for k, v := range n.Pairs() {
		key := k.Value()
		own := key == "name" && (under == "metadata" || namedLists[under] || ofOther || strings.HasSuffix(under, "service") || under == "service")
		if otherNames[key] || own || strings.HasSuffix(key, "Service") || under == "annotations" && isOurs(key) {
			continue
		}
		a.value(v, key)
	}
}

func (a *auditor) value(n *manifest.Node, key string) {
	switch {
	case n.IsMapping():
		a.mapping(n, key)
	case n.IsSequence():
		for i, e := range n.Elems() {
			if key == "command" && i == 0 {
				continue // a program
			}
			a.value(e, key)
		}
	case n.IsString() && !a.refs[n]:
		a.text(n, key)
	}
}

// text reports the names that a text mentions: as a whole, as namespace/name, as
// a part of a path, or in an argument.
func (a *auditor) text(n *manifest.Node, key string) {
	text := n.Value()
	if len(text) > 4096 || strings.Contains(text, "\n") {
		return
	}
	inArgument := key == "args" || key == "command" || key == "value"
	if !inArgument && !strings.Contains(text, "/") {
		a.word(n, text)
		return
	}
	if strings.HasPrefix(text, "/") && !inArgument {
		a.path(n, text)
		return
	}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r == '/' || inArgument && (r == '=' || r == ',' || r == ':' || r == ' ' || r == '"' || r == '\'')
	})
	if len(words) > 1 && strings.Contains(text, "://") {
		return // an address: its parts are hosts and paths of others
	}
	if i := strings.IndexByte(text, '/'); i == 0 || i > 0 && strings.ContainsAny(text[i-1:i], "= ,:\"'") {
		a.path(n, text[i:])
		return
	}
	for _, w := range slices.Compact(words) {
		a.word(n, w)
	}
}

// path reports the names in a path that stand below a folder for ConfigMaps or
// Secrets, as the Prometheus operator mounts them; other folders may be called
// anything.
// https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.PrometheusSpec
func (a *auditor) path(n *manifest.Node, path string) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if i > 0 && mounts[strings.ToLower(parts[i-1])] {
			a.word(n, p)
		}
	}
}

var mounts = map[string]bool{"secret": true, "secrets": true, "configmap": true, "configmaps": true}

// word reports a word of a text that is the name of a subject.
func (a *auditor) word(n *manifest.Node, word string) {
	of := a.names[scope{a.object.Package, word}]
	i := slices.IndexFunc(of, func(s *subject) bool { return a.means(s, n.Value()) })
	if i < 0 || a.object.LineHolds(n, ignoreComment) {
		return
	}
	severity := manifest.Warning
	if a.cfg.Audit == "error" {
		severity = manifest.Error
	}
	a.report(a.object, severity, a.object.Path(n), fmt.Sprintf("mentions %s, which is called %s now, and no rule covers the field (add it to versions.nameReference, keep the name with %s: \"false\", or say # %s on the line)", of[i].base, of[i].name, VersionedAnnotation, ignoreComment))
}

// means tells whether a text that names a subject can mean it: it is of the same
// namespace, or says which.
func (a *auditor) means(s *subject, text string) bool {
	ns := s.object.ID.Namespace
	if s.object == a.object {
		return false
	}
	return a.namespace(ns) == a.namespace(a.object.ID.Namespace) || ns != "" && strings.HasPrefix(text, ns+"/")
}
