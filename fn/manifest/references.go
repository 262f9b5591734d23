package manifest

import (
	"cmp"
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
	// Prefix is what the scalar has before the name: the namespace of ns/name.
	Prefix string
	// Others is set where the field also names objects that are neither ConfigMaps
	// nor Secrets, and Kinds says how many of these two it names.
	Others bool
	Kinds  int
	// List is the sequence that the name is one element of, where several
	// names may stand in place of one; nil elsewhere.
	List *Node
}

// Name gives the name that is referred to.
func (r Reference) Name() string { return r.Node.Value()[len(r.Prefix):] }

// A refRow is a field below some mapping that names an object of a kind.
type refRow struct {
	kind string
	path []string // lists are entered
}

func row(kind, path string) refRow { return refRow{kind, strings.Split(path, "/")} }

// containerRefs are the references of a container.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables
func containerRefs() []refRow {
	return []refRow{
		row("ConfigMap", "env/valueFrom/configMapKeyRef/name"),
		row("Secret", "env/valueFrom/secretKeyRef/name"),
		row("ConfigMap", "envFrom/configMapRef/name"),
		row("Secret", "envFrom/secretRef/name"),
	}
}

// podRefs are the references of a PodSpec besides those of its containers.
// https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume/
func podRefs() []refRow {
	return []refRow{
		row("ConfigMap", "volumes/configMap/name"),
		row("Secret", "volumes/secret/secretName"),
		row("ConfigMap", "volumes/projected/sources/configMap/name"),
		row("Secret", "volumes/projected/sources/secret/name"),
		row("Secret", "volumes/csi/nodePublishSecretRef/name"),
		row("Secret", "volumes/azureFile/secretName"),
		row("Secret", "volumes/cephfs/secretRef/name"),
		row("Secret", "volumes/cinder/secretRef/name"),
		row("Secret", "volumes/flexVolume/secretRef/name"),
		row("Secret", "volumes/iscsi/secretRef/name"),
		row("Secret", "volumes/rbd/secretRef/name"),
		row("Secret", "volumes/scaleIO/secretRef/name"),
		row("Secret", "volumes/storageos/secretRef/name"),
		row("Secret", "imagePullSecrets/name"),
	}
}

// A KindRef is a reference of some kinds of objects.
type KindRef struct {
	// Group, Version and Kinds say which objects have the field; Group * is any,
	// Version "" and Kinds nil too.
	Group, Version string
	Kinds          []string
	// Path are the keys that lead to the name, or to a mapping with a name and
	// perhaps a namespace. Lists are entered; * is any key, ** any number of keys.
	Path []string
	// TargetGroup and TargetKind say what is named.
	TargetGroup, TargetKind string
	// Mapping is set where a text in place of the mapping means something else.
	Mapping bool
	// KindSaid is set where the mapping may say another kind.
	KindSaid bool
	// NamespaceKey is the key beside the name that gives the namespace; "" for
	// none. In a mapping it is namespace.
	NamespaceKey string
	// Slash is set where the name may be written as namespace/name.
	Slash bool
}

// A RefTable knows the fields that name other objects. NewRefTable gives one.
type RefTable struct {
	containers, pods []refRow
	kinds            map[string][]KindRef // by the group of the objects that refer; "*" for any
}

// NewRefTable gives the built-in table, with more rows.
func NewRefTable(more ...KindRef) *RefTable {
	t := &RefTable{containers: containerRefs(), pods: podRefs(), kinds: map[string][]KindRef{}}
	for _, r := range append(kindRefs(), more...) {
		t.kinds[r.Group] = append(t.kinds[r.Group], r)
	}
	return t
}

// References gives the fields of o that name other objects: those of every
// PodSpec, of the table's rows, and those whose keys say what they are, in any
// kind. Schemas and policies have none.
func (t *RefTable) References(o *Object) []Reference {
	if o.IsSchema() {
		return nil
	}
	c := collector{table: t, object: o}
	for k, v := range o.deployed() {
		if v.kind != Scalar {
			c.under(k, v)
		}
	}
	group := o.ID.Group()
	c.rows(t.kinds[group])
	c.rows(t.kinds["*"])
	if group == "rbac.authorization.k8s.io" {
		c.rules(o.root.Get("rules"))
	}
	return c.distinct()
}

// A collector gathers the references of one object.
type collector struct {
	table  *RefTable
	object *Object
	out    []Reference
}

// distinct gives the references in the order of the text, without those that a
// second rule found.
func (c *collector) distinct() []Reference {
	slices.SortStableFunc(c.out, func(a, b Reference) int { return cmp.Compare(a.Node.start, b.Node.start) })
	type found struct {
		node        *Node
		group, kind string
	}
	seen := make(map[found]bool, len(c.out))
	return slices.DeleteFunc(c.out, func(r Reference) bool {
		f := found{r.Node, r.Group, r.Kind}
		twice := seen[f]
		seen[f] = true
		return twice
	})
}

// walk looks for PodSpecs, and for fields whose keys say what they refer to, at
// and below n.
func (c *collector) walk(n *Node) {
	if n.kind == Sequence {
		for _, e := range n.content {
			if e.kind != Scalar {
				c.walk(e)
			}
		}
		return
	}
	for k, v := range n.Pairs() {
		if v.kind != Scalar {
			c.under(k, v)
		}
	}
}

// under looks at and below the value of a key.
func (c *collector) under(k, v *Node) {
	if v.kind == Sequence && imageKeys[k.value] {
		c.pod(v)
	}
	if v.kind == Mapping {
		if kind := kindOfKey(k.value, v); kind != "" {
			c.add(v.Get("name"), kind, v.Get("namespace"))
		}
	}
	if k.value == "imagePullSecrets" {
		for _, e := range v.Elems() {
			c.add(e.Get("name"), "Secret", nil)
		}
	}
	if target := k.value == "scaleTargetRef" || k.value == "workloadRef"; target && v.kind == Mapping {
		c.target(v)
	}
	c.walk(v)
}

// kindOfKey gives the kind of the object that a mapping with a name refers to,
// where the key of the mapping says so; "" elsewhere. Core types have these keys,
// and custom kinds follow them.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#object-references
func kindOfKey(key string, v *Node) string {
	switch {
	case strings.HasSuffix(key, "ecretKeyRef"), strings.HasSuffix(key, "ecretRef"):
		return "Secret"
	case strings.HasSuffix(key, "onfigMapKeyRef"), strings.HasSuffix(key, "onfigMapRef"):
		return "ConfigMap"
	case strings.HasSuffix(key, "Secret") && v.Get("key").IsString():
		return "Secret"
	}
	return ""
}

// pod adds the references of a PodSpec, given one of its lists of containers.
func (c *collector) pod(containers *Node) {
	for _, e := range containers.content {
		for _, r := range c.table.containers {
			c.follow(e, r)
		}
	}
	for _, r := range c.table.pods {
		c.follow(containers.parent, r)
	}
}

func (c *collector) follow(n *Node, r refRow) {
	followPath(n, r.path, func(n *Node) { c.add(n, r.kind, nil) })
}

// add adds a reference, unless nothing is named.
func (c *collector) add(name *Node, kind string, namespace *Node) {
	if name.IsString() && name.value != "" {
		c.out = append(c.out, Reference{Node: name, Kind: kind, Namespace: namespace.Value()})
	}
}

// rows adds the references of the rows that cover the object.
func (c *collector) rows(rows []KindRef) {
	for _, r := range rows {
		if isOf(c.object, r.Version, r.Kinds) {
			followPath(c.object.root, r.Path, func(n *Node) { c.field(n, r) })
		}
	}
}

// field adds the reference that a row led to.
func (c *collector) field(n *Node, r KindRef) {
	name, namespace := n, (*Node)(nil)
	if n.kind == Mapping {
		name, namespace = n.Get("name"), n.Get("namespace")
	} else if r.NamespaceKey != "" {
		namespace = n.parent.Get(r.NamespaceKey)
	}
	if r.Mapping && n.kind != Mapping || !name.IsString() || name.value == "" {
		return
	}
	ref := Reference{Node: name, Group: r.TargetGroup, Kind: r.TargetKind, Namespace: namespace.Value()}
	if ref.Kind == "" || r.KindSaid && n.Get("kind").Value() != "" {
		ref.Kind = n.Get("kind").Value()
	}
	if i := strings.LastIndexByte(name.value, '/'); i >= 0 && r.Slash {
		ref.Prefix, ref.Namespace = name.value[:i+1], name.value[:i]
	}
	c.out = append(c.out, ref)
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
		ref := Reference{List: names, Others: namesOthers(rule)}
		var kinds []string
		for _, k := range []struct{ resource, kind string }{{"configmaps", "ConfigMap"}, {"secrets", "Secret"}} {
			if holds(rule.Get("resources"), k.resource) {
				kinds = append(kinds, k.kind)
			}
		}
		ref.Kinds = len(kinds)
		for _, ref.Kind = range kinds {
			for _, ref.Node = range names.Elems() {
				if ref.Node.IsString() && ref.Node.value != "" {
					c.out = append(c.out, ref)
				}
			}
		}
	}
}

// namesOthers tells whether a rule speaks of more than ConfigMaps and Secrets.
func namesOthers(rule *Node) bool {
	other := func(known ...string) func(*Node) bool {
		return func(n *Node) bool { return !slices.Contains(known, n.Value()) }
	}
	return slices.ContainsFunc(rule.Get("apiGroups").Elems(), other("")) || slices.ContainsFunc(rule.Get("resources").Elems(), other("configmaps", "secrets"))
}

// holds tells whether a list of strings holds value, or *.
func holds(list *Node, value string) bool {
	return slices.ContainsFunc(list.Elems(), func(n *Node) bool { return n.Value() == value || n.Value() == "*" })
}

// target adds a reference that names the kind beside the name: of a
// HorizontalPodAutoscaler, a ScaledObject of KEDA, a Rollout of Argo.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/
func (c *collector) target(ref *Node) {
	if name := ref.Get("name"); name.IsString() {
		id := ID{APIVersion: ref.Get("apiVersion").Value()}
		c.out = append(c.out, Reference{Node: name, Group: id.Group(), Kind: ref.Get("kind").Value()})
	}
}
