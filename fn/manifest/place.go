package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Add adds an object to the list. In a ResourceList it becomes the last item,
// with annotations that say that it belongs to path in the package pkg; with
// files it becomes a file of its own at path. Without a path, as in a stream, it
// becomes the last document of the first text.
func (l *List) Add(m Map, pkg, path string) (*Object, error) {
	return l.add(newNode(m, nil), pkg, path)
}

// isOrchestration tells whether an annotation says where an object belongs, which
// is not where a copy of it does, or is a note of an orchestrator's own.
func isOrchestration(key string) bool {
	return strings.HasPrefix(key, "internal.config.kubernetes.io/") || key == legacyPathAnnotation || key == legacyIndexAnnotation || key == "config.k8s.io/id"
}

// Copy adds an object as Add does, that holds what o holds at present, its
// comments left out.
func (l *List) Copy(o *Object, pkg, path string) (*Object, error) {
	root := detached(o.root)
	meta := root.Get("metadata")
	if annotations := meta.Get("annotations"); annotations != nil {
		annotations.content = withoutKeys(annotations.content, isOrchestration)
		if len(annotations.content) == 0 {
			meta.content = withoutKeys(meta.content, func(key string) bool { return key == "annotations" })
		}
	}
	c, err := l.add(root, pkg, path)
	if err == nil {
		c.src.Origin = o.File.Path
	}
	return c, err
}

func withoutKeys(pairs []*Node, is func(key string) bool) []*Node {
	var out []*Node
	for i := 0; i+1 < len(pairs); i += 2 {
		if !is(pairs[i].value) {
			out = append(out, pairs[i], pairs[i+1])
		}
	}
	return out
}

func (l *List) add(root *Node, pkg, path string) (*Object, error) {
	src := &Source{Path: path, Package: pkg, New: true}
	src.text = emitter{step: 2, eol: "\n"}.block(root, 0)
	objects, err := src.decodeDocument(0, len(src.text))
	if err != nil {
		return nil, err
	}
	if !equal(root, objects[0].root) {
		return nil, fmt.Errorf("belay: internal error: %s: what is written is not what was meant", objects[0].ID)
	}
	src.objects = objects
	o := objects[0]
	o.Package, o.File = pkg, File{Path: path}
	l.Objects = append(l.Objects, o)
	isList := len(l.Sources) > 0 && l.Sources[0].items != nil
	if isList && path != "" {
		o.SetAnnotation(PathAnnotation, path)
		o.SetAnnotation(legacyPathAnnotation, path)
	}
	if isList && pkg != "" {
		o.SetAnnotation(PackagePathAnnotation, pkg)
	}
	if isList || path == "" {
		l.Sources[0].added = append(l.Sources[0].added, o)
		return o, nil
	}
	l.Sources = append(l.Sources, src)
	return o, nil
}

// Remove takes objects out of the list. What is left of their text stays byte by
// byte; see [Source.Removed] for a file of which nothing is left.
func (l *List) Remove(objects ...*Object) {
	if len(objects) == 0 {
		return
	}
	for _, o := range objects {
		o.gone = true
	}
	isGone := func(o *Object) bool { return o.gone }
	l.Objects = slices.DeleteFunc(l.Objects, isGone)
	for _, s := range l.Sources {
		s.added = slices.DeleteFunc(s.added, isGone)
	}
	l.Sources = slices.DeleteFunc(l.Sources, func(s *Source) bool { return s.New && slices.ContainsFunc(s.objects, isGone) })
}

// remaining gives the objects that were not removed.
func remaining(objects []*Object) []*Object {
	if !slices.ContainsFunc(objects, func(o *Object) bool { return o.gone }) {
		return objects
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o *Object) bool { return o.gone })
}

// Removed tells whether all that a file held was removed, so that the file
// itself should go.
func (s *Source) Removed() bool {
	if len(s.objects) == 0 || len(s.Objects()) > 0 || s.items != nil {
		return false
	}
	units := map[*unit]bool{}
	for _, o := range s.objects {
		units[o.unit] = true
	}
	return len(documents(s.text)) == len(units)
}

// removals gives the splices for the objects that were removed.
func (s *Source) removals() ([]splice, error) {
	var out []splice
	var errs []error
	for _, o := range s.objects {
		if !o.gone {
			continue
		}
		got, err := s.removal(o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.ID, err))
		}
		out = append(out, got)
	}
	out = united(out)
	if s.items != nil && s.items.col >= 0 && len(out) > 0 && len(s.Objects())+len(s.added) == 0 {
		// The key alone would mean null.
		at := strings.LastIndex("\n"+s.text[:out[0].from], "\nitems:") + len("items:")
		out = append([]splice{{at, at, " []"}}, out...)
	}
	return out, errors.Join(errs...)
}

// united joins deletions that overlap.
func united(deletions []splice) []splice {
	sortSplices(deletions)
	var out []splice
	for _, d := range deletions {
		if last := len(out) - 1; last >= 0 && d.from <= out[last].to {
			out[last].to = max(out[last].to, d.to)
			continue
		}
		out = append(out, d)
	}
	return out
}

// removal gives the splice that deletes an object: its document, its item, or
// its element of a List.
func (s *Source) removal(o *Object) (splice, error) {
	alone := !slices.ContainsFunc(s.objects, func(other *Object) bool { return other.unit == o.unit && !other.gone })
	if alone && (s.items == nil || o.unit.dash > 0) {
		return splice{from: o.unit.base, to: o.unit.base + len(o.unit.text)}, nil
	}
	if len(o.unit.anchors) > 0 {
		return splice{}, errors.New("cannot be removed: others of its list share its anchors (give it a file of its own)")
	}
	i := slices.IndexFunc(o.seq.content, func(n *Node) bool { return n.start == o.root.start })
	end, ok := text{src: s.text, base: o.unit.base}.end(o.root)
	if i < 0 || !ok {
		return splice{}, errors.New("cannot be removed from its list (give it a file of its own)")
	}
	return s.elementRemoval(o, i, end)
}

// elementRemoval deletes the i-th element of the list that holds o.
func (s *Source) elementRemoval(o *Object, i, end int) (splice, error) {
	t := text{src: s.text, base: o.unit.base}
	start := int(o.root.start)
	line := t.lineStart(start)
	switch {
	case o.seq.style == block && strings.TrimSpace(s.text[line:start]) == "-":
		return splice{from: line, to: t.nextLine(t.lineEnd(end))}, nil
	case i+1 < len(o.seq.content):
		return splice{from: start, to: int(o.seq.content[i+1].start)}, nil
	case o.seq.style == flow && s.keptBefore(o, i) >= 0:
		if before, ok := t.end(o.seq.content[s.keptBefore(o, i)]); ok {
			return splice{from: before, to: end}, nil
		}
	case o.seq.style == flow:
		return splice{from: start, to: end}, nil
	}
	return splice{}, errors.New("cannot be removed from its list (give it a file of its own)")
}

// keptBefore gives the last element before the i-th of the list of o that is not
// removed; -1 for none.
func (s *Source) keptBefore(o *Object, i int) int {
	gone := map[int32]bool{}
	for _, other := range s.objects {
		if other.gone {
			gone[other.root.start] = true
		}
	}
	for i--; i >= 0 && gone[o.seq.content[i].start]; i-- {
	}
	return i
}

// spliceAdded writes the objects that were added to a ResourceList.
func (s *Source) spliceAdded() ([]splice, error) {
	if len(s.added) == 0 {
		return nil, nil
	}
	if s.items == nil {
		return s.appendDocuments()
	}
	sp := newSplicer(s.text, s.doc)
	if s.items.col < 0 {
		return s.spliceAddedWhole(sp)
	}
	pad := strings.Repeat(" ", s.items.col)
	var b strings.Builder
	for _, o := range s.added {
		body, err := o.src.Bytes()
		if err != nil {
			return nil, err
		}
		b.WriteString(pad + "- " + indentLines(strings.TrimSuffix(string(body), "\n"), s.items.col+2, sp.emit.eol) + sp.emit.eol)
	}
	out := b.String()
	if s.items.end > 0 && s.text[s.items.end-1] != '\n' {
		out = sp.emit.eol + strings.TrimSuffix(out, sp.emit.eol)
	}
	return []splice{{s.items.end, s.items.end, out}}, nil
}

// spliceAddedWhole adds objects to items that were decoded as a whole.
func (s *Source) spliceAddedWhole(sp *splicer) ([]splice, error) {
	list := s.doc.root.Get("items")
	if !list.IsSequence() {
		return nil, errors.New("adding an object: the ResourceList has no items to add it to")
	}
	n := *list
	n.content = slices.Clone(list.content)
	for _, o := range s.added {
		n.content = append(n.content, detached(o.root))
	}
	old := len(list.content)
	if n.style == flow {
		sp.addFlow(&n, old)
	} else {
		sp.addBlock(&n, old)
	}
	if sp.failed {
		return nil, errors.New("adding an object: this ResourceList cannot be edited (write it in block style, without anchors)")
	}
	return sp.splices, nil
}

// appendDocuments writes the objects that were added to a stream.
func (s *Source) appendDocuments() ([]splice, error) {
	var b strings.Builder
	if s.text != "" && !strings.HasSuffix(s.text, "\n") {
		b.WriteString("\n")
	}
	for _, o := range s.added {
		body, err := o.src.Bytes()
		if err != nil {
			return nil, err
		}
		b.WriteString("---\n" + string(body))
	}
	return []splice{{len(s.text), len(s.text), b.String()}}, nil
}

// detached copies a tree as if none of it were in a text, aliases and merges
// expanded.
func detached(n *Node) *Node {
	c := &Node{kind: n.kind, style: block, tag: n.tag, value: n.value, start: noText}
	take := func(e *Node) {
		child := detached(e)
		child.parent = c
		c.content = append(c.content, child)
	}
	if n.kind == Mapping {
		for k, v := range n.Pairs() {
			take(k)
			take(v)
		}
		return c
	}
	for _, e := range n.content {
		take(e)
	}
	if n.IsNull() {
		c.value = "null"
	}
	return c
}
