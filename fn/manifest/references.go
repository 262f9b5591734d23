package manifest

import (
	"slices"
	"strings"
)

// A Reference is a field that names another object.
type Reference struct {
	// Node holds the name.
	Node *Node
	// Group and Kind say what is named; the group of ConfigMap is "".
	Group, Kind string
	// Namespace is the one that the reference gives; "" for that of the object
	// that refers.
	Namespace string
	// List is the sequence that the name is one element of, where several
	// names may stand in place of one; nil elsewhere.
	List *Node
}

// A refRow is a field below some mapping that names an object of a kind.
type refRow struct {
	kind string
	path []string // "[]" goes into each element
}

func row(kind, path string) refRow {
	return refRow{kind, strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".")}
}

// containerRefs are the references of a container.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables
func containerRefs() []refRow {
	return []refRow{
		row("ConfigMap", "env[].valueFrom.configMapKeyRef.name"),
		row("Secret", "env[].valueFrom.secretKeyRef.name"),
		row("ConfigMap", "envFrom[].configMapRef.name"),
		row("Secret", "envFrom[].secretRef.name"),
	}
}

// podRefs are the references of a PodSpec besides those of its containers.
// https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume/
func podRefs() []refRow {
	return []refRow{
		row("ConfigMap", "volumes[].configMap.name"),
		row("Secret", "volumes[].secret.secretName"),
		row("ConfigMap", "volumes[].projected.sources[].configMap.name"),
		row("Secret", "volumes[].projected.sources[].secret.name"),
		row("Secret", "volumes[].csi.nodePublishSecretRef.name"),
		row("Secret", "volumes[].azureFile.secretName"),
		row("Secret", "volumes[].cephfs.secretRef.name"),
		row("Secret", "volumes[].cinder.secretRef.name"),
		row("Secret", "volumes[].flexVolume.secretRef.name"),
		row("Secret", "volumes[].iscsi.secretRef.name"),
		row("Secret", "volumes[].rbd.secretRef.name"),
		row("Secret", "volumes[].scaleIO.secretRef.name"),
		row("Secret", "volumes[].storageos.secretRef.name"),
		row("Secret", "imagePullSecrets[].name"),
	}
}

// A kindRow is a reference of one kind of object.
type kindRow struct {
	group, kind string
	refRow
}

// kindRefs are the references of kinds without a PodSpec. To add one, add a
// row, with the source of the rule.
func kindRefs() []kindRow {
	return []kindRow{
		// https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/service-account-v1/
		{"", "ServiceAccount", row("Secret", "imagePullSecrets[].name")},
		{"", "ServiceAccount", row("Secret", "secrets[].name")},
		// https://kubernetes.io/docs/reference/kubernetes-api/service-resources/ingress-v1/#IngressSpec
		{"networking.k8s.io", "Ingress", row("Secret", "spec.tls[].secretName")},
		{"extensions", "Ingress", row("Secret", "spec.tls[].secretName")},
	}
}

// A RefTable knows the fields that name other objects. The zero value knows
// none; NewRefTable gives the built-in ones.
type RefTable struct {
	containers, pods []refRow
	kinds            []kindRow
}

// NewRefTable gives the built-in table.
func NewRefTable() *RefTable {
	return &RefTable{containers: containerRefs(), pods: podRefs(), kinds: kindRefs()}
}

// References gives the fields of o that name other objects, in the order of
// the table within each PodSpec. Schemas and policies have none.
func (t *RefTable) References(o *Object) []Reference {
	if o.IsSchema() {
		return nil
	}
	c := collector{table: t}
	c.walk(o.root)
	for _, r := range t.kinds {
		if r.kind == o.ID.Kind && r.group == o.ID.Group() {
			c.follow(o.root, r.refRow, r.path)
		}
	}
	if o.ID.Group() == "rbac.authorization.k8s.io" {
		c.rules(o.root.Get("rules"))
	}
	if o.ID.Kind == "HorizontalPodAutoscaler" {
		c.target(o.root.Lookup("spec", "scaleTargetRef"))
	}
	return c.out
}

// A collector gathers the references of one object.
type collector struct {
	table *RefTable
	out   []Reference
}

// walk looks for PodSpecs at and below n: mappings with a list of containers.
func (c *collector) walk(n *Node) {
	if n.kind == Sequence {
		for _, e := range n.content {
			if e.kind != Scalar {
				c.walk(e)
			}
		}
		return
	}
	isPod := false
	for k, v := range n.Pairs() {
		if v.kind == Scalar {
			continue
		}
		if v.kind == Sequence && imageKeys[k.value] {
			isPod = true
			for _, e := range v.content {
				for _, r := range c.table.containers {
					c.follow(e, r, r.path)
				}
			}
		}
		c.walk(v)
	}
	if isPod {
		for _, r := range c.table.pods {
			c.follow(n, r, r.path)
		}
	}
}

// follow adds the strings that path leads to from n.
func (c *collector) follow(n *Node, r refRow, path []string) {
	switch {
	case n == nil:
	case len(path) == 0:
		if n.IsString() && n.value != "" {
			c.out = append(c.out, Reference{Node: n, Kind: r.kind})
		}
	case path[0] == "[]":
		for _, e := range n.Elems() {
			c.follow(e, r, path[1:])
		}
	default:
		c.follow(n.Get(path[0]), r, path[1:])
	}
}

// rules adds the resourceNames of the rules that speak of ConfigMaps or
// Secrets.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
func (c *collector) rules(rules *Node) {
	for _, rule := range rules.Elems() {
		if !holds(rule.Get("apiGroups"), "") {
			continue
		}
		names := rule.Get("resourceNames")
		for _, k := range []struct{ resource, kind string }{{"configmaps", "ConfigMap"}, {"secrets", "Secret"}} {
			if !holds(rule.Get("resources"), k.resource) {
				continue
			}
			for _, n := range names.Elems() {
				if n.IsString() && n.value != "" {
					c.out = append(c.out, Reference{Node: n, Kind: k.kind, List: names})
				}
			}
		}
	}
}

// holds tells whether a list of strings holds value, or *.
func holds(list *Node, value string) bool {
	return slices.ContainsFunc(list.Elems(), func(n *Node) bool { return n.Value() == value || n.Value() == "*" })
}

// target adds a reference that names the kind beside the name.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/
func (c *collector) target(ref *Node) {
	if name := ref.Get("name"); name.IsString() {
		id := ID{APIVersion: ref.Get("apiVersion").Value()}
		c.out = append(c.out, Reference{Node: name, Group: id.Group(), Kind: ref.Get("kind").Value()})
	}
}
