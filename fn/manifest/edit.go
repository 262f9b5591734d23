package manifest

import (
	"fmt"
	"slices"
)

// A tree is a decoded text whose values can be edited. Edits change the nodes
// at once and are kept as ops, from which the text can be made anew where it
// cannot be spliced.
type tree struct {
	full    string // the text of the source
	unit    *unit
	root    *Node
	ops     []op
	removed []removal
	// encode is set when an edit needs the text of the tree to be encoded again.
	encode bool
	// opaque is a part whose edits are not this tree's: the items of a
	// ResourceList, which are trees themselves. nil for none.
	opaque *Node
}

// An op is one edit, in a form that can be replayed on a decoded tree.
type op struct {
	verb  verb
	path  []step
	value any
}

type verb uint8

const (
	opSet verb = iota // value at path, with the mappings on the way
	opRemove
	opAppend // value to the sequence at path
)

// A removal is a pair that was taken out of a mapping, or an element that was
// taken out of a sequence and is its key too; and where its text ends.
type removal struct {
	from, key, value, next *Node

	end int
	ok  bool // the end is known
}

// Set replaces the value of the scalar n by a string. The quoting and the
// comment of the line stay. A nil n, or one that is no scalar, stays as it is.
func (t *tree) Set(n *Node, value string) {
	if n == nil || n.kind != Scalar || n.tag == tagString && n.value == value {
		return
	}
	t.ops = append(t.ops, op{opSet, steps(n), value})
	t.assign(n, value, tagString)
}

// assign gives a scalar a new value.
func (t *tree) assign(n *Node, value string, as tag) {
	t.touch(n)
	if n.extra == nil {
		n.extra = &extra{}
	}
	if n.flags&changed == 0 {
		n.extra.old, n.extra.typed = n.value, n.tag != tagString
	}
	n.flags |= changed
	n.value, n.tag = value, as
}

// touch notes that n changes: what has no text of its own, or lends it to
// others, cannot be spliced.
func (t *tree) touch(n *Node) {
	if n.flags&(foreign|shared) != 0 {
		t.encode = true
	}
}

// SetField sets a field below the mapping m, making the mappings on the way to
// it that are missing or null. value is what a [Map] may hold.
// A field that already has the value stays as it is. It is an error, and
// nothing changes, where the way leads through something that is no mapping, or
// where a collection stands in place of a scalar.
func (t *tree) SetField(m *Node, value any, keys ...string) error {
	at, have := m, 0
	for ; have < len(keys); have++ {
		next := at.Get(keys[have])
		if next == nil || have == len(keys)-1 || next.IsNull() {
			break
		}
		at = next
	}
	if !at.IsMapping() {
		return fmt.Errorf("%s is not a mapping", fieldName(at, keys[:have]))
	}
	if have == len(keys) {
		return nil
	}
	last := at.Get(keys[have])
	if last != nil && !last.IsNull() {
		return t.replaceField(last, value)
	}
	t.create(at, last, value, keys[have:])
	return nil
}

func fieldName(n *Node, keys []string) string {
	if n == nil && len(keys) > 0 {
		return keys[len(keys)-1]
	}
	if n == nil || n.parent == nil {
		return "the object"
	}
	return pathString(steps(n))
}

// replaceField gives an existing field a new scalar value.
func (t *tree) replaceField(n *Node, value any) error {
	fresh := newNode(value, n.parent)
	if n.kind != Scalar || fresh.kind != Scalar {
		return fmt.Errorf("%s is not a scalar", pathString(steps(n)))
	}
	if n.value == fresh.value && n.tag == fresh.tag {
		return nil
	}
	t.ops = append(t.ops, op{opSet, steps(n), value})
	t.assign(n, fresh.value, fresh.tag)
	return nil
}

// create adds keys to m, the last with value. null is the node of the first
// key where that is there already, without a value.
func (t *tree) create(m, null *Node, value any, keys []string) {
	path := steps(m)
	for _, k := range keys {
		path = append(path, step{key: k})
	}
	if null != nil { // of a key that is written twice, the last counts
		path[len(path)-len(keys)] = stepTo(null)
	}
	t.ops = append(t.ops, op{opSet, path, value})
	for i := len(keys) - 1; i > 0; i-- {
		value = Map{{keys[i], value}}
	}
	if null == nil {
		t.touch(m)
		k, v := newNode(keys[0], m), newNode(value, m)
		m.content = append(m.content, k, v)
		return
	}
	fresh := newNode(value, m)
	if fresh.kind == Scalar {
		t.assign(null, fresh.value, fresh.tag)
		return
	}
	t.open(null, fresh)
}

// open turns a null into the collection fresh.
func (t *tree) open(null, fresh *Node) {
	t.touch(null)
	if null.extra == nil {
		null.extra = &extra{}
	}
	null.extra.old = null.value
	null.flags |= opened
	null.kind, null.content, null.value, null.tag = fresh.kind, fresh.content, "", tagString
	for _, c := range null.content {
		c.parent = null
	}
}

// Append adds a value to the end of a sequence. A nil n, or one that is no
// sequence, stays as it is.
func (t *tree) Append(seq *Node, value any) {
	if !seq.IsSequence() {
		return
	}
	t.touch(seq)
	t.ops = append(t.ops, op{opAppend, steps(seq), value})
	seq.content = append(seq.content, newNode(value, seq))
}

// Remove takes a value and its key out of the mapping that it stands in, or an
// element out of its list. A mapping that becomes empty by this is removed as
// well, unless it is the root or an element of a list. Other nodes stay as they
// are.
func (t *tree) Remove(n *Node) {
	switch {
	case n == nil || n.parent == nil:
		return
	case n.parent.IsSequence():
		t.removeElement(n)
		return
	}
	m := n.parent
	if m.Len() == 1 && m.parent.IsMapping() {
		t.Remove(m)
		return
	}
	t.touch(m)
	t.touch(n)
	// Without the pair, a merge key could bring in another.
	t.encode = t.encode || holdsAnchor(n) || hasMerge(m)
	t.ops = append(t.ops, op{opRemove, steps(n), nil})
	for i := 0; i+1 < len(m.content); i += 2 {
		if m.content[i+1] != n {
			continue
		}
		r := removal{from: m, key: m.content[i], value: n}
		r.end, r.ok = t.textEnd(n)
		t.forget(n)
		if i+2 < len(m.content) {
			r.next = m.content[i+2]
		}
		m.content = append(m.content[:i:i], m.content[i+2:]...)
		if r.key.start != noText {
			t.removed = append(t.removed, r)
		}
		if len(m.content) == 0 || m.content[0].start == noText {
			t.encode = true // nothing of the author's is left to splice at
		}
		return
	}
	t.removeMerged(m, n)
}

// removeElement takes an element out of a sequence.
func (t *tree) removeElement(n *Node) {
	seq := n.parent
	i := slices.Index(seq.content, n)
	if i < 0 {
		return
	}
	t.touch(seq)
	t.touch(n)
	t.encode = t.encode || holdsAnchor(n)
	t.ops = append(t.ops, op{opRemove, steps(n), nil})
	r := removal{from: seq, key: n, value: n}
	r.end, r.ok = t.textEnd(n)
	t.forget(n)
	if i+1 < len(seq.content) {
		r.next = seq.content[i+1]
	}
	seq.content = slices.Concat(seq.content[:i], seq.content[i+1:])
	if n.start != noText {
		t.removed = append(t.removed, r)
	}
	if len(seq.content) == 0 || seq.content[0].start == noText {
		t.encode = true // nothing of the author's is left to splice at
	}
}

// forget leaves out what was removed below n, which goes as a whole.
func (t *tree) forget(n *Node) {
	t.removed = slices.DeleteFunc(t.removed, func(r removal) bool { return isBelow(r.from, n) })
}

// holdsAnchor tells whether aliases elsewhere may need the text of n.
func holdsAnchor(n *Node) bool {
	return n.extra != nil && n.extra.anchor != "" || slices.ContainsFunc(n.content, holdsAnchor)
}

func hasMerge(m *Node) bool {
	for i := 0; i < len(m.content); i += 2 {
		if m.isMerge(i) {
			return true
		}
	}
	return false
}

// textEnd gives the end of the text of n, what was removed from it included.
func (t *tree) textEnd(n *Node) (int, bool) {
	to, ok := text{src: t.full, base: t.unit.base}.end(n)
	for _, r := range t.removed {
		if r.ok && isBelow(r.from, n) {
			to, ok = max(to, r.end), true
		}
	}
	return to, ok
}

func isBelow(n, top *Node) bool {
	for ; n != nil; n = n.parent {
		if n == top {
			return true
		}
	}
	return false
}

// removeMerged removes a pair that a merge key brought in.
func (t *tree) removeMerged(m, n *Node) {
	t.encode = true
	for i := 0; m.extra != nil && i+1 < len(m.extra.merged); i += 2 {
		if m.extra.merged[i+1] == n {
			m.extra.merged = append(m.extra.merged[:i:i], m.extra.merged[i+2:]...)
			return
		}
	}
}

// dirty tells whether the tree was edited.
func (t *tree) dirty() bool { return len(t.ops) > 0 }
