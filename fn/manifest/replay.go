package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reencode writes the tree anew, with aliases expanded and its edits made: the
// way out where the text cannot be spliced. It ends without a line break.
// quoteLast is set where a block scalar at the end would take in what follows.
func (t *tree) reencode(src string, quoteLast bool) (string, error) {
	doc, err := t.decodeAgain()
	if err != nil {
		return "", err
	}
	y := find(doc, t.unit, t.root)
	if y == nil {
		return "", errors.New("belay: internal error: cannot find an object again to encode it")
	}
	y = replay(y, t.ops)
	if last := lastOf(y); quoteLast && last.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		last.Style = yaml.DoubleQuotedStyle
	}
	return t.encodeNode(y, src)
}

// lastOf gives the scalar that ends the text of y.
func lastOf(y *yaml.Node) *yaml.Node {
	for len(y.Content) > 0 {
		y = y.Content[len(y.Content)-1]
	}
	return y
}

// decodeAgain decodes the unit of the tree as it was read.
func (t *tree) decodeAgain() (*yaml.Node, error) {
	var doc yaml.Node
	if err := safeUnmarshal(t.unit.bytes(), &doc); err != nil {
		return nil, err
	}
	return &doc, nil
}

func (t *tree) encodeNode(y *yaml.Node, src string) (string, error) {
	tx := text{src: src, base: t.unit.base}
	if t.root.style == flow {
		y.Style |= yaml.FlowStyle
	}
	trimComments(y)
	spell(y, false)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if compactLists(tx, t.root) {
		enc.CompactSeqIndent()
	}
	if err := safeEncode(enc, y); err != nil {
		return "", err
	}
	col, eol := 0, tx.eol(int(t.root.start))
	if t.root.style != flow {
		col = tx.blockColumn(t.root)
	}
	return indentLines(strings.TrimSuffix(b.String(), "\n"), col, eol), nil
}

func safeEncode(enc *yaml.Encoder, y *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	if err := enc.Encode(y); err != nil {
		return err
	}
	return enc.Close()
}

// indentLines indents all lines but the first, and empty ones, by col.
func indentLines(s string, col int, eol string) string {
	pad := strings.Repeat(" ", col)
	lines := strings.Split(s, "\n")
	for i := 1; i < len(lines); i++ {
		if lines[i] != "" {
			lines[i] = pad + lines[i]
		}
	}
	return strings.Join(lines, eol)
}

// compactLists tells whether the first list below n that is the value of a key
// stands at the column of that key.
func compactLists(tx text, n *Node) bool {
	found, compact := false, false
	var walk func(n *Node)
	walk = func(n *Node) {
		if found || n.start == noText || n.style != block || n.flags&(foreign|aliased) != 0 {
			return
		}
		if n.kind == Sequence && n.parent.IsMapping() && n.parent.style == block {
			found, compact = true, tx.blockColumn(n) == tx.blockColumn(n.parent)
			return
		}
		for _, c := range n.content {
			walk(c)
		}
	}
	walk(n)
	return compact
}

// spell changes the style of what the encoder would not write as it was read:
// nulls inside of brackets that have no text, which would become empty strings,
// and block scalars that it would not fold, or indent, as they were.
func spell(y *yaml.Node, inFlow bool) {
	inFlow = inFlow || y.Style&yaml.FlowStyle != 0
	switch {
	case y.Kind == yaml.ScalarNode && y.Tag == "!!null" && inFlow:
		y.Value = "null"
	case y.Style&yaml.FoldedStyle != 0 && fitsLiteral(y.Value):
		y.Style = y.Style&^yaml.FoldedStyle | yaml.LiteralStyle
	case y.Style&(yaml.FoldedStyle|yaml.LiteralStyle) != 0 && !fitsLiteral(y.Value):
		y.Style = y.Style&^(yaml.FoldedStyle|yaml.LiteralStyle) | yaml.DoubleQuotedStyle
	}
	for i, c := range y.Content {
		if y.Kind != yaml.MappingNode || i%2 == 1 {
			spell(c, inFlow)
		}
	}
}

// trimComments takes away the comments that stand outside of the text that is
// replaced: before the first key and behind the last line.
func trimComments(y *yaml.Node) {
	y.HeadComment, y.FootComment = "", ""
	if len(y.Content) > 0 {
		y.Content[0].HeadComment = ""
	}
	for n := y; len(n.Content) > 0; {
		if n.Kind == yaml.MappingNode {
			n.Content[len(n.Content)-2].FootComment = ""
		}
		n = n.Content[len(n.Content)-1]
		n.FootComment = ""
	}
}

// find gives the decoded node that root was made from.
func find(y *yaml.Node, u *unit, root *Node) *yaml.Node {
	u.index()
	defer func() { u.lines = nil }()
	kind := yaml.MappingNode
	if root.kind == Sequence {
		kind = yaml.SequenceNode
	}
	var search func(y *yaml.Node) *yaml.Node
	search = func(y *yaml.Node) *yaml.Node {
		if y.Kind == kind && u.offset(y) == root.start {
			return y
		}
		for _, c := range y.Content {
			if f := search(c); f != nil {
				return f
			}
		}
		return nil
	}
	return search(y)
}

// replay makes a copy of y with its aliases and merges expanded, and does ops
// to it.
func replay(y *yaml.Node, ops []op) *yaml.Node {
	y = expand(y)
	for _, o := range ops {
		replayOp(y, o)
	}
	return y
}

// expand copies y without aliases, anchors and merge keys.
func expand(y *yaml.Node) *yaml.Node {
	if y.Kind == yaml.AliasNode {
		c := expand(y.Alias)
		c.HeadComment, c.LineComment, c.FootComment = y.HeadComment, y.LineComment, y.FootComment
		return c
	}
	c := *y
	c.Anchor, c.Content = "", nil
	if y.Kind != yaml.MappingNode {
		for _, e := range y.Content {
			c.Content = append(c.Content, expand(e))
		}
		return &c
	}
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Tag == "!!merge" {
			merges = append(merges, mergeSources(y.Content[i+1])...)
			continue
		}
		c.Content = append(c.Content, expand(y.Content[i]), expand(y.Content[i+1]))
	}
	for _, m := range merges {
		addMerged(&c, expand(m))
	}
	return &c
}

// addMerged adds the pairs of m whose keys c does not have.
func addMerged(c, m *yaml.Node) {
	have := map[string]bool{}
	for i := 0; i+1 < len(c.Content); i += 2 {
		have[c.Content[i].Value] = true
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if k := m.Content[i].Value; !have[k] {
			have[k] = true
			c.Content = append(c.Content, m.Content[i], m.Content[i+1])
		}
	}
}

func replayOp(y *yaml.Node, o op) {
	path := o.path
	if o.verb == opRemove {
		path = path[:len(path)-1]
	}
	for _, s := range path {
		y = descend(y, s)
	}
	switch o.verb {
	case opSet:
		replaySet(y, newNode(o.value, nil))
	case opAppend:
		y.Content = append(y.Content, fromNew(newNode(o.value, nil)))
	case opRemove:
		last := o.path[len(o.path)-1]
		if last.seq {
			y.Content = slices.Concat(y.Content[:last.nth], y.Content[last.nth+1:])
		} else if i := pairAt(y, last); i >= 0 {
			y.Content = append(y.Content[:i], y.Content[i+2:]...)
		}
	}
}

// descend follows one step, and makes the mapping that it leads to where there
// is none.
func descend(y *yaml.Node, s step) *yaml.Node {
	if s.seq {
		return y.Content[s.nth]
	}
	if y.Kind == yaml.ScalarNode {
		*y = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", HeadComment: y.HeadComment, FootComment: y.FootComment, LineComment: y.LineComment}
	}
	if i := pairAt(y, s); i >= 0 {
		return y.Content[i+1]
	}
	k, v := fromNew(newNode(s.key, nil)), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	y.Content = append(y.Content, k, v)
	return v
}

// pairAt gives the place of the key that s names, -1 for none.
func pairAt(y *yaml.Node, s step) int {
	nth := 0
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Value != s.key {
			continue
		}
		if nth == s.nth {
			return i
		}
		nth++
	}
	return -1
}

// replaySet gives y the value of fresh; a scalar keeps its quotes.
func replaySet(y *yaml.Node, fresh *Node) {
	v := fromNew(fresh)
	v.HeadComment, v.LineComment, v.FootComment = y.HeadComment, y.LineComment, y.FootComment
	quotes := y.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle)
	if v.Kind == yaml.ScalarNode && v.Tag == "!!str" && quotes != 0 {
		v.Style = quotes
	}
	*y = *v
}

// fromNew gives the decoder's form of a new node.
func fromNew(n *Node) *yaml.Node {
	switch n.kind {
	case Mapping:
		y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, c := range n.content {
			y.Content = append(y.Content, fromNew(c))
		}
		return y
	case Sequence:
		y := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, c := range n.content {
			y.Content = append(y.Content, fromNew(c))
		}
		return y
	default:
		y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.value, Tag: "!!str"}
		if n.tag != tagString {
			y.Tag = "" // the decoder resolves true and 1 by itself
		} else if !isPlainSafe(n.value, false) && !fitsLiteral(n.value) {
			y.Style = yaml.DoubleQuotedStyle
		}
		return y
	}
}
