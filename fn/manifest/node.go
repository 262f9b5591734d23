package manifest

import (
	"iter"
	"slices"
	"strings"
)

// A Kind is the shape of a [Node].
type Kind uint8

// The shapes of a Node. Aliases and merge keys are resolved on reading, so
// there is no kind for them.
const (
	Scalar Kind = iota
	Mapping
	Sequence
)

// A style is how the author wrote a node.
type style uint8

const (
	plain style = iota
	single
	double
	literal
	folded
	flow
	block
)

// A tag is the part of a scalar's YAML type that belay acts on.
type tag uint8

const (
	tagString tag = iota
	tagNull
	tagOther
)

// Flags of a node: how it came to be, and so how it can be edited.
const (
	// foreign nodes live inside an expanded alias or merge: they have no text
	// of their own.
	foreign uint8 = 1 << iota
	// shared nodes stand below an anchor that an alias refers to.
	shared
	// aliased nodes were written as an alias; start is where its * stands.
	aliased
	// changed scalars have a new value.
	changed
	// opened mappings were null in the text and have been given keys.
	opened
)

// noText is the start of a node that is not in the text yet.
const noText = -1

// A Node is one value of an object: a scalar, a mapping or a sequence.
// All methods that read may be called on a nil Node, which stands for a value
// that is not there.
type Node struct {
	kind    Kind
	style   style
	tag     tag
	flags   uint8
	start   int32 // offset of the first byte in the source, or noText
	value   string
	parent  *Node
	content []*Node // keys and values in turn, or elements
	extra   *extra
}

// extra holds what few nodes have.
type extra struct {
	old    string  // value in the text of a changed scalar
	typed  bool    // and whether that was no string
	anchor string  // name of the node's anchor
	target *Node   // scalar that an aliased scalar stands for
	merged []*Node // keys and values that merge keys add to a mapping
}

// Kind gives the shape of n; a nil node is a Scalar.
func (n *Node) Kind() Kind {
	if n == nil {
		return Scalar
	}
	return n.kind
}

// IsMapping tells whether n is a mapping.
func (n *Node) IsMapping() bool { return n != nil && n.kind == Mapping }

// IsSequence tells whether n is a sequence.
func (n *Node) IsSequence() bool { return n != nil && n.kind == Sequence }

// IsString tells whether n is a scalar that YAML reads as a string.
func (n *Node) IsString() bool { return n != nil && n.kind == Scalar && n.tag == tagString }

// IsNull tells whether n is absent or a null.
func (n *Node) IsNull() bool { return n == nil || n.kind == Scalar && n.tag == tagNull }

// Value gives the text of a scalar, whatever its type; "" for nil, mappings
// and sequences.
func (n *Node) Value() string {
	if n == nil || n.kind != Scalar {
		return ""
	}
	return n.value
}

// Text gives the value of a string and whether n is one.
func (n *Node) Text() (string, bool) {
	if !n.IsString() {
		return "", false
	}
	return n.value, true
}

// Parent gives the mapping or sequence that n stands in; nil for a root.
func (n *Node) Parent() *Node {
	if n == nil {
		return nil
	}
	return n.parent
}

// Len gives the number of pairs of a mapping or elements of a sequence.
func (n *Node) Len() int {
	switch {
	case n == nil || n.kind == Scalar:
		return 0
	case n.kind == Sequence:
		return len(n.content)
	}
	i := 0
	for range n.Pairs() {
		i++
	}
	return i
}

// Get gives the value of a key of a mapping, nil where there is none. Of a key
// that is written twice, the last counts, as it does for kubectl.
func (n *Node) Get(key string) *Node {
	if !n.IsMapping() {
		return nil
	}
	for i := len(n.content) - 2; i >= 0; i -= 2 {
		if n.content[i].value == key && n.content[i].kind == Scalar && !n.isMerge(i) {
			return n.content[i+1]
		}
	}
	if n.extra != nil {
		for i := 0; i < len(n.extra.merged); i += 2 {
			if n.extra.merged[i].value == key {
				return n.extra.merged[i+1]
			}
		}
	}
	return nil
}

// Lookup follows keys from mapping to mapping; nil where the way ends early.
func (n *Node) Lookup(keys ...string) *Node {
	for _, k := range keys {
		n = n.Get(k)
	}
	return n
}

// Pairs yields the keys and values of a mapping in the order of the text, then
// those that merge keys add. It yields nothing for other nodes.
func (n *Node) Pairs() iter.Seq2[*Node, *Node] {
	return func(yield func(*Node, *Node) bool) {
		if !n.IsMapping() {
			return
		}
		for i := 0; i+1 < len(n.content); i += 2 {
			if !n.isMerge(i) && !yield(n.content[i], n.content[i+1]) {
				return
			}
		}
		if n.extra == nil {
			return
		}
		for i := 0; i+1 < len(n.extra.merged); i += 2 {
			if !yield(n.extra.merged[i], n.extra.merged[i+1]) {
				return
			}
		}
	}
}

// Elems gives the elements of a sequence; nil for other nodes. The caller must
// not change the slice.
func (n *Node) Elems() []*Node {
	if !n.IsSequence() {
		return nil
	}
	return n.content
}

// Equal tells whether two values mean the same, however they are written: the
// order of keys does not matter, and a number differs from its text in quotes. A
// nil node is equal to a nil node alone.
func Equal(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	switch {
	case a.kind != b.kind:
		return false
	case a.kind == Scalar:
		return a.tag == b.tag && (a.tag == tagNull || a.value == b.value)
	case a.kind == Sequence:
		return slices.EqualFunc(a.content, b.content, Equal)
	case a.Len() != b.Len():
		return false
	}
	for k, v := range a.Pairs() {
		if other := b.Get(k.value); other == nil || !Equal(v, other) {
			return false
		}
	}
	return true
}

// isMerge tells whether the key at i is a merge key.
// https://yaml.org/type/merge.html
func (n *Node) isMerge(i int) bool {
	k := n.content[i]
	return k.value == "<<" && k.tag == tagOther && k.style == plain
}

// A step is one step of a path: a key, or an index.
type step struct {
	key string
	nth int // which of several equal keys; or the index
	seq bool
}

// steps gives the way from the root of n's tree to n.
func steps(n *Node) []step {
	depth := 0
	for p := n; p.parent != nil; p = p.parent {
		depth++
	}
	out := make([]step, depth)
	for ; n.parent != nil; n = n.parent {
		depth--
		out[depth] = stepTo(n)
	}
	return out
}

// stepTo gives the step from n's parent to n.
func stepTo(n *Node) step {
	p := n.parent
	if p.kind == Sequence {
		return step{nth: max(slices.Index(p.content, n), 0), seq: true}
	}
	pairs := p.content
	at := slices.Index(pairs, n)
	if at < 0 && p.extra != nil {
		pairs = p.extra.merged
		at = slices.Index(pairs, n)
	}
	if at < 0 {
		return step{}
	}
	at -= at % 2 // from a value to its key
	out := step{key: pairs[at].value}
	for i := 0; i < at; i += 2 {
		if pairs[i].value == out.key && !p.isMerge(i) {
			out.nth++
		}
	}
	return out
}

// pathString writes steps as kubectl and the API server do:
// spec.containers[0].image, with keys that hold dots in brackets.
func pathString(steps []step) string {
	var b strings.Builder
	b.Grow(16 * len(steps))
	for _, s := range steps {
		writeStep(&b, s)
	}
	return b.String()
}

func writeStep(b *strings.Builder, s step) {
	switch {
	case s.seq:
		b.WriteString("[" + itoa(s.nth) + "]")
	case strings.ContainsAny(s.key, ".[]/ "):
		b.WriteString("[" + s.key + "]")
	default:
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.key)
	}
}

// joinPath adds a step to a path.
func joinPath(path string, s step) string {
	var b strings.Builder
	b.WriteString(path)
	writeStep(&b, s)
	return b.String()
}

// findPath gives the node below n, which is at prefix, whose path is path.
func findPath(n *Node, prefix, path string) *Node {
	if prefix == path {
		return n
	}
	if !strings.HasPrefix(path, prefix) {
		return nil
	}
	for i, c := range n.Elems() {
		if f := findPath(c, joinPath(prefix, step{nth: i, seq: true}), path); f != nil {
			return f
		}
	}
	for k, v := range n.Pairs() {
		if f := findPath(v, joinPath(prefix, step{key: k.value}), path); f != nil {
			return f
		}
	}
	return nil
}
