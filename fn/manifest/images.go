package manifest

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An ImageField is a field that names an image.
type ImageField struct {
	// Node is what holds the reference: a scalar, not always a string, or for a
	// reference that is written in parts, the mapping of them.
	Node *Node
	// Pull is the pull policy beside it; "" where none is given.
	Pull string
	// Pod is set where the kubelet reads the field: in a container, or an image
	// volume.
	Pod bool
	// NoTag is set where a program refuses a tag beside a digest.
	NoTag bool
	// NeedsHost is set where a reference without a registry is not one of Docker
	// Hub.
	NeedsHost bool

	object *Object
	prefix string      // what the scalar has before the reference
	split  *ImageParts // nil for a reference in one piece
}

// ImageParts name the keys of a reference that is written in parts, as the
// values of Helm charts do.
type ImageParts struct {
	// Registry and Repository are keys; "" for a repository that holds the
	// registry too.
	Registry, Repository string
	// Tag is a key.
	Tag string
	// Digest is a key; "" to append digests to the tag.
	Digest string
}

// Text gives the reference in one piece: name[:tag][@digest]. Of one in parts
// without a repository it gives "".
func (f ImageField) Text() string {
	if f.split == nil {
		return f.Node.Value()[len(f.prefix):]
	}
	text := f.part(f.split.Repository).Value()
	if text == "" {
		return ""
	}
	if registry := f.part(f.split.Registry).Value(); registry != "" {
		text = registry + "/" + text
	}
	if tag := f.part(f.split.Tag).Value(); tag != "" {
		text += ":" + tag
	}
	if digest := f.part(f.split.Digest).Value(); digest != "" {
		text += "@" + digest
	}
	return text
}

func (f ImageField) part(key string) *Node {
	if key == "" {
		return nil
	}
	return f.Node.Get(key)
}

// InParts tells whether the reference is written in parts. Then no tag means
// that something else chooses one.
func (f ImageField) InParts() bool { return f.split != nil }

// IsString tells whether the reference is one or more strings. The tag of one
// in parts may be a number that reads the same as text; 1.10 does not, since a
// program that joins the parts makes 1.1 of it.
func (f ImageField) IsString() bool {
	if f.split == nil {
		return f.Node.IsString()
	}
	for _, key := range []string{f.split.Registry, f.split.Repository, f.split.Tag, f.split.Digest} {
		if n := f.part(key); !n.IsNull() && !n.IsString() && !isPlainNumber(n) {
			return false
		}
	}
	return true
}

func isPlainNumber(n *Node) bool {
	number, err := strconv.ParseFloat(n.Value(), 64)
	return err == nil && strconv.FormatFloat(number, 'f', -1, 64) == n.Value()
}

// Set writes a reference: base, which is name[:tag], and a digest. Of one in
// parts, only the digest is written.
func (f ImageField) Set(base, digest string) error {
	switch {
	case f.split == nil:
		f.object.Set(f.Node, f.prefix+base+"@"+digest)
	case f.split.Digest != "":
		return f.object.SetField(f.Node, digest, f.split.Digest)
	default:
		tag, _, _ := strings.Cut(f.part(f.split.Tag).Value(), "@")
		return f.object.SetField(f.Node, tag+"@"+digest, f.split.Tag)
	}
	return nil
}

// imageKeys are the lists of containers of a PodSpec. Any mapping that has one
// of them, in any kind and at any depth, counts as a PodSpec: custom kinds
// embed them everywhere.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodSpec
var imageKeys = map[string]bool{"containers": true, "initContainers": true, "ephemeralContainers": true}

// An ImageRow is an image field of kinds that name images in their own way.
type ImageRow struct {
	// Group, Version and Kinds say which objects have the field; empty for any.
	Group, Version string
	Kinds          []string
	// Selects, if not nil, says so too.
	Selects func(*Object) bool
	// Path are the keys that lead to the field. Lists are entered on the way;
	// * stands for any key, and ** for any number of keys.
	Path []string
	// Prefix is what a value must begin with, and is no part of the reference.
	Prefix string
	// Parts is not nil where Path leads to a mapping of parts.
	Parts *ImageParts
	// NoTag and NeedsHost are those of the fields.
	NoTag, NeedsHost bool
}

// IsSchema tells whether an object describes other objects rather than running
// anything: what looks like a PodSpec inside of it is a pattern or a schema.
func (o *Object) IsSchema() bool {
	group := o.ID.Group()
	return group == "apiextensions.k8s.io" || group == "kyverno.io" || strings.HasSuffix(group, ".kyverno.io") ||
		strings.HasSuffix(group, ".gatekeeper.sh")
}

// An ImageTable knows the fields that name images. The zero value knows those
// of PodSpecs.
type ImageTable struct {
	// Env are patterns of the names of environment variables that hold images,
	// such as RELATED_IMAGE_*.
	Env []string
	// Args are flags whose values are images, such as --reloader-image; both
	// --flag=value and --flag value count, in args and in command.
	Args []string

	rows map[string][]ImageRow // by group; "" for rows of any group
}

// NewImageTable gives the built-in table, with more rows.
func NewImageTable(more ...ImageRow) *ImageTable {
	t := &ImageTable{rows: map[string][]ImageRow{}}
	for _, r := range append(imageRows(), more...) {
		t.rows[r.Group] = append(t.rows[r.Group], r)
	}
	return t
}

// Images gives the fields of an object that name images, in the order of the
// text: those of every PodSpec, with image volumes, and those of the rows that
// cover its kind. Schemas and policies have none.
func (t *ImageTable) Images(o *Object) []ImageField {
	if o.IsSchema() {
		return nil
	}
	c := imageCollector{table: t, object: o}
	for k, v := range o.deployed() {
		if v.kind != Scalar {
			c.under(k, v)
		}
	}
	structural := len(c.out)
	group := o.ID.Group()
	c.follow(t.rows[group])
	if group != "" {
		c.follow(t.rows[""])
	}
	if len(c.out) > structural {
		c.sort()
	}
	return c.out
}

// Others gives the strings of an object that look like images, and are in no
// field that Images gives: as a rule, fields of kinds that belay does not know.
// What a controller writes, and schemas and policies, have none.
func (t *ImageTable) Others(o *Object) []*Node {
	if o.IsSchema() {
		return nil
	}
	known := map[*Node]bool{}
	for _, f := range t.Images(o) {
		known[f.Node] = true
		if f.split != nil {
			known[f.part(f.split.Repository)] = true
		}
	}
	var out []*Node
	for k, v := range o.deployed() {
		out = likeImages(k.value, v, known, out)
	}
	return out
}

// likeImages adds the strings at and below the value of a key that look like
// images.
func likeImages(key string, n *Node, known map[*Node]bool, out []*Node) []*Node {
	switch n.kind {
	case Scalar:
		if n.tag == tagString && !known[n] && looksLikeImage(key, n.value) {
			out = append(out, n)
		}
	case Sequence:
		for _, e := range n.content {
			out = likeImages(key, e, known, out)
		}
	case Mapping:
		if repository := n.Get("repository"); repository.IsString() && n.Get("tag") != nil && !known[repository] && !looksLikeImage("repository", repository.value) {
			out = append(out, repository) // a reference in parts
		}
		for k, v := range n.Pairs() {
			out = likeImages(k.value, v, known, out)
		}
	}
	return out
}

// imageText is a reference with a slash and a tag or a digest, perhaps behind a
// flag; imageKey is a key that speaks of an image.
var (
	imageText = regexp.MustCompile(`^(--?[\w.-]+[= ]|docker://|oci://)?[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z_][\w.-]{0,127}|:[0-9][\w.-]*|@sha256:[0-9a-f]{64})$`)
	imageKey  = regexp.MustCompile(`^(image|.*Image|.*-image|imageName|.*[._]IMAGE|.*_IMAGE_.*)$`)
	imageName = regexp.MustCompile(`^[a-z0-9][\w./:@-]*$`)
)

func looksLikeImage(key, text string) bool {
	return imageText.MatchString(text) || imageKey.MatchString(key) && imageName.MatchString(text)
}

// An imageCollector gathers the image fields of one object.
type imageCollector struct {
	table  *ImageTable
	object *Object
	out    []ImageField
}

func (c *imageCollector) add(f ImageField) {
	f.object = c.object
	c.out = append(c.out, f)
}

// sort puts the fields into the order of the text, and drops those that more
// than one rule found.
func (c *imageCollector) sort() {
	slices.SortStableFunc(c.out, func(a, b ImageField) int { return cmp.Compare(a.Node.start, b.Node.start) })
	seen := map[*Node]bool{}
	c.out = slices.DeleteFunc(c.out, func(f ImageField) bool {
		twice := seen[f.Node]
		seen[f.Node] = true
		return twice
	})
}

// walk adds the images of the PodSpecs at and below n.
func (c *imageCollector) walk(n *Node) {
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

// under adds the images of the PodSpecs at and below the value of a key.
func (c *imageCollector) under(k, v *Node) {
	if v.kind == Sequence && imageKeys[k.value] {
		for _, e := range v.content {
			c.container(e)
		}
	}
	if v.kind == Sequence && k.value == "volumes" {
		c.volumes(v)
	}
	c.walk(v)
}

func (c *imageCollector) container(n *Node) {
	if image := n.Get("image"); image != nil && image.kind == Scalar {
		c.add(ImageField{Node: image, Pull: n.Get("imagePullPolicy").Value(), Pod: true})
	}
	if len(c.table.Env) > 0 {
		c.env(n.Get("env"))
	}
	if len(c.table.Args) > 0 {
		c.args(n.Get("command"))
		c.args(n.Get("args"))
	}
}

// env adds the variables whose names match.
func (c *imageCollector) env(list *Node) {
	for _, e := range list.Elems() {
		name, value := e.Get("name").Value(), e.Get("value")
		if value == nil || value.kind != Scalar {
			continue
		}
		if MatchesAny(c.table.Env, name) {
			c.add(ImageField{Node: value})
		}
	}
}

// args adds the values of the flags that hold images.
func (c *imageCollector) args(list *Node) {
	elems := list.Elems()
	for i := 0; i < len(elems); i++ {
		text, _ := elems[i].Text()
		flag, _, joined := strings.Cut(text, "=")
		switch {
		case !slices.Contains(c.table.Args, flag):
		case joined:
			c.add(ImageField{Node: elems[i], prefix: flag + "="})
		case i+1 < len(elems) && elems[i+1].IsString() && !strings.HasPrefix(elems[i+1].value, "-"):
			i++
			c.add(ImageField{Node: elems[i]})
		}
	}
}

// volumes adds the images of image volumes.
// https://kubernetes.io/docs/concepts/storage/volumes/#image
func (c *imageCollector) volumes(list *Node) {
	for _, v := range list.content {
		image := v.Get("image")
		if ref := image.Get("reference"); ref != nil && ref.kind == Scalar {
			c.add(ImageField{Node: ref, Pull: image.Get("pullPolicy").Value(), Pod: true})
		}
	}
}

// follow adds the fields of the rows that cover the object.
func (c *imageCollector) follow(rows []ImageRow) {
	for _, r := range rows {
		if r.covers(c.object) {
			followPath(c.object.root, r.Path, func(n *Node) { c.field(n, r) })
		}
	}
}

func (r ImageRow) covers(o *Object) bool {
	return isOf(o, r.Version, r.Kinds) && (r.Selects == nil || r.Selects(o))
}

// isOf tells whether an object is of a version and of one of some kinds; "" and
// nil stand for any.
func isOf(o *Object, version string, kinds []string) bool {
	return (version == "" || version == o.ID.APIVersion[strings.LastIndexByte(o.ID.APIVersion, '/')+1:]) &&
		(kinds == nil || slices.Contains(kinds, o.ID.Kind))
}

// field adds the field that a row led to, if it is of the kind that the row
// speaks of.
func (c *imageCollector) field(n *Node, r ImageRow) {
	switch {
	case r.Parts != nil:
		if n.Get(r.Parts.Repository) != nil {
			c.add(ImageField{Node: n, Pull: pullPolicy(n), split: r.Parts})
		}
	case n.kind == Scalar && strings.HasPrefix(n.value, r.Prefix):
		c.add(ImageField{Node: n, Pull: pullPolicy(n.parent), prefix: r.Prefix, NoTag: r.NoTag, NeedsHost: r.NeedsHost})
	}
}

// pullPolicy gives the pull policy that stands in a mapping, under one of the
// names that kinds give it.
func pullPolicy(m *Node) string {
	return cmp.Or(m.Get("imagePullPolicy").Value(), m.Get("pullPolicy").Value(), m.Get("packagePullPolicy").Value())
}

// SplitPath reads the path of a fieldSpec of kustomize: keys between slashes; a
// slash in a key is written \/, and [] behind the key of a list says nothing.
// https://github.com/kubernetes-sigs/kustomize/blob/master/kyaml/utils/pathsplitter.go
func SplitPath(s string) []string {
	var out []string
	for p := range strings.SplitSeq(strings.ReplaceAll(strings.TrimPrefix(s, "/"), `\/`, "\x00"), "/") {
		out = append(out, strings.TrimSuffix(strings.ReplaceAll(p, "\x00", "/"), "[]"))
	}
	return out
}

// followPath visits what path leads to, going into each element of lists.
func followPath(n *Node, path []string, visit func(*Node)) {
	switch {
	case n == nil:
	case n.kind == Sequence:
		for _, e := range n.content {
			followPath(e, path, visit)
		}
	case len(path) == 0:
		visit(n)
	case path[0] == "**":
		followPath(n, path[1:], visit)
		for _, v := range n.Pairs() {
			if v.kind != Scalar {
				followPath(v, path, visit)
			}
		}
	case path[0] == "*":
		for _, v := range n.Pairs() {
			followPath(v, path[1:], visit)
		}
	default:
		followPath(n.Get(path[0]), path[1:], visit)
	}
}
