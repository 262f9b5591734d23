package manifest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

func itoa(i int) string { return strconv.Itoa(i) }

// maxExpansion bounds how many nodes the aliases of one document may add, so
// that a few lines cannot fill the memory ("billion laughs").
const maxExpansion = 200_000

// A unit is a piece of a source that is decoded on its own.
type unit struct {
	text string // what the decoder sees
	base int    // offset of text in the source
	// Behind gapAt, the source has gap more bytes than text: the items that
	// were cut out of a ResourceList.
	gapAt, gap int
	// dash is the column, from 1, of the dash before a list item that the
	// decoder must not see; 0 for none.
	dash int

	lines   []int32 // offset in text of each line
	ascii   bool
	anchors map[*yaml.Node]*Node // anchored nodes by their decoded form
	targets map[*yaml.Node]bool  // containers that an alias stands for
	added   int                  // nodes that came from aliases
	aliases bool                 // an alias was seen
	complex bool                 // a key is a list or a mapping
	slab    []Node               // nodes that are not used yet
	root    *Node                // of the document, where it holds aliases
}

// decodeUnit decodes the only document of u. It returns nil for a unit that
// holds no value.
func decodeUnit(u *unit) (*Node, error) {
	var doc yaml.Node
	if err := safeUnmarshal(u.bytes(), &doc); err != nil {
		return nil, err
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return nil, nil
	}
	return u.convert(doc.Content[0])
}

// bytes gives what the decoder reads: the text, with a blank for the dash.
func (u *unit) bytes() []byte {
	b := []byte(u.text)
	if u.dash > 0 {
		b[u.dash-1] = ' '
	}
	return b
}

// safeUnmarshal decodes one document and turns the decoder's own panics, which
// fuzzing finds now and then, into errors.
func safeUnmarshal(data []byte, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return yaml.Unmarshal(data, doc)
}

// convert turns a decoded tree into belay's own, which takes a third of the
// memory and knows byte offsets.
func (u *unit) convert(y *yaml.Node) (*Node, error) {
	u.index()
	n, err := u.node(y, nil, 0)
	if err != nil {
		return nil, err
	}
	for t := range u.targets {
		markShared(u.anchors[t])
	}
	u.slab, u.targets, u.root = nil, nil, n
	if !u.aliases {
		u.root = nil
		u.anchors = nil
	}
	return n, nil
}

// node converts y, whose parent is parent. flags are foreign inside an alias.
func (u *unit) node(y *yaml.Node, parent *Node, flags uint8) (*Node, error) {
	if y.Kind == yaml.AliasNode {
		return u.alias(y, parent, flags)
	}
	n := u.fresh()
	n.parent, n.flags, n.start = parent, flags, noText
	if flags&foreign == 0 {
		n.start = u.offset(y)
		if y.Anchor != "" {
			n.extra = &extra{anchor: y.Anchor}
			u.remember(y, n)
		}
	} else if u.added++; u.added > maxExpansion {
		return nil, errors.New("yaml: aliases expand to too many values")
	}
	switch y.Kind {
	case yaml.ScalarNode:
		u.scalar(y, n)
		return n, nil
	case yaml.MappingNode, yaml.SequenceNode:
		return n, u.container(y, n)
	default:
		return nil, fmt.Errorf("yaml: line %d: unexpected node", y.Line)
	}
}

// fresh gives a new node, from a slab: one allocation for many.
func (u *unit) fresh() *Node {
	if len(u.slab) == 0 {
		u.slab = make([]Node, 32)
	}
	n := &u.slab[0]
	u.slab = u.slab[1:]
	return n
}

func (u *unit) remember(y *yaml.Node, n *Node) {
	if u.anchors == nil {
		u.anchors = map[*yaml.Node]*Node{}
	}
	u.anchors[y] = n
}

func (u *unit) scalar(y *yaml.Node, n *Node) {
	n.kind = Scalar
	switch {
	case y.Style&yaml.DoubleQuotedStyle != 0:
		n.style = double
	case y.Style&yaml.SingleQuotedStyle != 0:
		n.style = single
	case y.Style&yaml.LiteralStyle != 0:
		n.style = literal
	case y.Style&yaml.FoldedStyle != 0:
		n.style = folded
	}
	switch y.Tag {
	case "!!str", "!":
		n.tag = tagString
	case "!!null":
		n.tag = tagNull
	default:
		n.tag = tagOther
	}
	n.value = u.own(y.Value, n)
}

// own gives the part of the source that equals value where it can, so that the
// decoder's copy can be freed.
func (u *unit) own(value string, n *Node) string {
	if n.start == noText {
		return value
	}
	at := u.local(int(n.start))
	if n.style == double || n.style == single {
		at++
	}
	if end := at + len(value); end <= len(u.text) && u.text[at:end] == value {
		return u.text[at:end]
	}
	return value
}

func (u *unit) container(y *yaml.Node, n *Node) error {
	n.kind, n.style = Sequence, block
	if y.Kind == yaml.MappingNode {
		n.kind = Mapping
	}
	if y.Style&yaml.FlowStyle != 0 {
		n.style = flow
	}
	n.content = make([]*Node, 0, len(y.Content))
	merges := false
	for i, c := range y.Content {
		child, err := u.node(c, n, n.flags&foreign)
		if err != nil {
			return err
		}
		n.content = append(n.content, child)
		u.complex = u.complex || n.kind == Mapping && i%2 == 0 && child.kind != Scalar
		merges = merges || n.kind == Mapping && i%2 == 0 && c.Tag == "!!merge"
	}
	if merges {
		return u.merge(y, n)
	}
	return nil
}

// alias converts an alias: a scalar keeps the place of its alias, a container
// is expanded. A container that holds an alias of itself has no end.
func (u *unit) alias(y *yaml.Node, parent *Node, flags uint8) (*Node, error) {
	target := y.Alias
	u.aliases = true
	for p := parent; p != nil; p = p.parent {
		if u.anchors[target] != nil && u.anchors[target] == p {
			return nil, fmt.Errorf("yaml: line %d: anchor %q contains itself", y.Line, y.Value)
		}
	}
	if target.Kind != yaml.ScalarNode {
		if u.targets == nil {
			u.targets = map[*yaml.Node]bool{}
		}
		u.targets[target] = true
	}
	n, err := u.node(target, parent, flags|foreign)
	if err != nil {
		return nil, err
	}
	n.flags |= aliased
	if flags&foreign == 0 {
		n.start = u.offset(y)
		if n.kind == Scalar {
			n.flags &^= foreign
			n.style = plain
			n.extra = &extra{target: u.anchors[target]}
		}
	}
	return n, nil
}

// merge adds to n the pairs that its merge keys bring: earlier merges win over
// later ones, and explicit keys over both. https://yaml.org/type/merge.html
func (u *unit) merge(y *yaml.Node, n *Node) error {
	have := map[string]bool{}
	for k := range n.Pairs() {
		have[k.value] = true
	}
	if n.extra == nil {
		n.extra = &extra{}
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Tag != "!!merge" {
			continue
		}
		for _, src := range mergeSources(y.Content[i+1]) {
			if err := u.mergeFrom(src, n, have); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *unit) mergeFrom(src *yaml.Node, n *Node, have map[string]bool) error {
	if src.Kind != yaml.MappingNode {
		return fmt.Errorf("yaml: line %d: map merge requires map or sequence of maps as the value", src.Line)
	}
	copied, err := u.node(src, n, foreign)
	if err != nil {
		return err
	}
	for k, v := range copied.Pairs() {
		if have[k.value] {
			continue
		}
		have[k.value] = true
		k.parent, v.parent = n, n
		n.extra.merged = append(n.extra.merged, k, v)
	}
	return nil
}

// mergeSources gives the mappings that the value of a merge key names.
func mergeSources(v *yaml.Node) []*yaml.Node {
	v = dealias(v)
	if v.Kind != yaml.SequenceNode {
		return []*yaml.Node{v}
	}
	out := make([]*yaml.Node, len(v.Content))
	for i, c := range v.Content {
		out[i] = dealias(c)
	}
	return out
}

func dealias(v *yaml.Node) *yaml.Node {
	for v.Kind == yaml.AliasNode {
		v = v.Alias
	}
	return v
}

func markShared(n *Node) {
	if n == nil {
		return
	}
	n.flags |= shared
	for _, c := range n.content {
		markShared(c)
	}
	if n.extra != nil {
		for _, c := range n.extra.merged {
			markShared(c)
		}
	}
}

// index finds where each line of the unit starts. The decoder counts as line
// breaks what YAML 1.1 does: CR, LF, CRLF, NEL, LS and PS.
// https://yaml.org/spec/1.1/#id868524
func (u *unit) index() {
	u.lines = append(u.lines[:0], 0)
	u.ascii = isASCII(u.text)
	if u.ascii && strings.IndexByte(u.text, '\r') < 0 {
		for at := 0; ; {
			i := strings.IndexByte(u.text[at:], '\n')
			if i < 0 {
				return
			}
			at += i + 1
			u.lines = append(u.lines, int32(at))
		}
	}
	for at := 0; at < len(u.text); {
		w := breakWidth(u.text[at:])
		if w == 0 {
			at++
			continue
		}
		at += w
		u.lines = append(u.lines, int32(at))
	}
}

// breakWidth gives the number of bytes of the line break that s starts with.
func breakWidth(s string) int {
	switch {
	case s[0] == '\n':
		return 1
	case s[0] == '\r':
		if len(s) > 1 && s[1] == '\n' {
			return 2
		}
		return 1
	case strings.HasPrefix(s, "\u0085"):
		return 2
	case strings.HasPrefix(s, "\u2028"), strings.HasPrefix(s, "\u2029"):
		return 3
	}
	return 0
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// offset gives the place of y in the source.
func (u *unit) offset(y *yaml.Node) int32 {
	line := min(max(y.Line-1, 0), len(u.lines)-1)
	at := int(u.lines[line])
	if u.ascii {
		at += y.Column - 1
	} else {
		for i := 1; i < y.Column && at < len(u.text); i++ {
			_, w := utf8.DecodeRuneInString(u.text[at:])
			at += w
		}
	}
	return int32(u.global(min(at, len(u.text))))
}

// global turns an offset in the unit into one in the source; local is its
// inverse.
func (u *unit) global(at int) int {
	if u.gap > 0 && at >= u.gapAt {
		at += u.gap
	}
	return u.base + at
}

func (u *unit) local(at int) int {
	at -= u.base
	if u.gap > 0 && at >= u.gapAt+u.gap {
		at -= u.gap
	}
	return at
}
