package manifest

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// A splice replaces the bytes [from, to) of a source.
type splice struct {
	from, to int
	text     string
}

// apply makes the splices, which may come in any order but must not overlap.
// Of insertions at one place, the one that comes first in the list stands first.
func apply(src string, splices []splice) ([]byte, error) {
	sortSplices(splices)
	size := len(src)
	for _, s := range splices {
		size += len(s.text) - (s.to - s.from)
	}
	out := make([]byte, 0, max(size, 0))
	at := 0
	for _, s := range splices {
		if s.from < at || s.to < s.from || s.to > len(src) {
			return nil, errors.New("belay: internal error: edits overlap")
		}
		out = append(out, src[at:s.from]...)
		out = append(out, s.text...)
		at = s.to
	}
	return append(out, src[at:]...), nil
}

// sortSplices orders splices by place; an insertion stands before what is
// replaced behind it.
func sortSplices(splices []splice) {
	slices.SortStableFunc(splices, func(a, b splice) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(min(a.to-a.from, 1), min(b.to-b.from, 1)))
	})
}

// overlap tells whether two of the splices, in order, replace the same bytes.
func overlap(splices []splice) bool {
	for i := 1; i < len(splices); i++ {
		if splices[i].from < splices[i-1].to {
			return true
		}
	}
	return false
}

// A splicer turns the edits of one tree into splices.
type splicer struct {
	text
	emit    emitter
	opaque  *Node // not visited
	splices []splice
	failed  bool // some edit has no splice
}

// spliceTree gives the splices for the edits of t; ok is false where one of
// them needs the tree to be encoded again.
func spliceTree(src string, t *tree) (splices []splice, ok bool) {
	if t.encode || t.dirty() && hasExplicitKey(t.unit.text) {
		return nil, false
	}
	s := newSplicer(src, t)
	s.visit(t.root)
	for _, r := range t.removed {
		s.remove(r)
	}
	sortSplices(s.splices)
	return s.splices, !s.failed && !overlap(s.splices)
}

// hasExplicitKey tells whether keys of a text are marked by ?, which lets them
// stand on other lines, and be anything. Hardly anybody writes so; those texts
// are not spliced.
func hasExplicitKey(s string) bool {
	for at := strings.IndexByte(s, '?'); at >= 0; {
		before := strings.TrimRight(s[:at], " \t")
		for strings.HasSuffix(before, "-") {
			before = strings.TrimRight(before[:len(before)-1], " \t")
		}
		begins := before == "" || strings.IndexByte("\n\r{[,", before[len(before)-1]) >= 0
		if begins && (at+1 == len(s) || isSpace(s[at+1])) {
			return true
		}
		next := strings.IndexByte(s[at+1:], '?')
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}

func newSplicer(src string, t *tree) *splicer {
	s := &splicer{text: text{src: src, base: t.unit.base}, opaque: t.opaque}
	s.emit = emitter{step: 2, eol: "\n"}
	if t.root.start != noText {
		s.emit.eol = s.eol(int(t.root.start))
	}
	s.emit.json = t.root.style == flow && len(t.root.content) > 0 && t.root.content[0].style == double
	return s
}

func (s *splicer) fail() { s.failed = true }

// visit walks the text's nodes, children first, so that of two insertions at
// one place the deeper stands first.
func (s *splicer) visit(n *Node) {
	if n.start == noText || n == s.opaque {
		return
	}
	if n.kind == Scalar {
		s.scalar(n)
		return
	}
	if n.flags&(foreign|aliased) != 0 {
		return
	}
	old := 0
	for _, c := range n.content {
		if c.start != noText {
			s.visit(c)
			old++
		}
	}
	switch {
	case n.flags&opened != 0:
		s.open(n)
	case old < len(n.content) && n.style == flow:
		s.addFlow(n, old)
	case old < len(n.content):
		s.addBlock(n, old)
	}
}

// scalar replaces the value of a scalar that changed, and an alias whose anchor
// did not change with it.
func (s *splicer) scalar(n *Node) {
	if n.flags&aliased != 0 {
		target := n.extra.target
		if target != nil && n.value == target.value && n.tag == target.tag {
			return
		}
	} else if n.flags&changed == 0 {
		return
	}
	from, to, ok := s.extent(n)
	// A tag of the author's would make the new value something else.
	tagged := ok && n.extra.typed && strings.Contains(s.src[n.start:from], "!")
	if !ok || tagged || from == to && !s.followsIndicator(n, from) {
		s.fail()
		return
	}
	if from, to, line, ok := s.blockLine(n, from, to); ok {
		s.splices = append(s.splices, splice{from, to, line})
		return
	}
	if (n.style == literal || n.style == folded) && strings.TrimSpace(s.src[s.lineStart(from):from]) == "" {
		s.fail() // on a line of its own it may stand where nothing else can
		return
	}
	s.splices = append(s.splices, splice{from, to, s.scalarText(n, from, to)})
}

// blockLine gives the only line of a block scalar and what to put in its place,
// where the new value is one line as well and ends as the old one did.
func (s *splicer) blockLine(n *Node, from, to int) (lineFrom, lineTo int, line string, ok bool) {
	if n.flags&aliased != 0 || n.style != literal && n.style != folded || n.tag != tagString {
		return 0, 0, "", false
	}
	old := strings.TrimRight(n.extra.old, "\n")
	line = strings.TrimRight(n.value, "\n")
	breaks := len(n.value) - len(line)
	i := strings.LastIndex(s.src[from:to], old)
	if old == "" || line == "" || i < 0 || strings.ContainsAny(old+line, "\n\r") || len(n.extra.old)-len(old) != breaks ||
		line[0] == ' ' || line[0] == '\t' || !fitsSingle(line) || strings.TrimSpace(s.src[from+i+len(old):to]) != "" {
		return 0, 0, "", false
	}
	return from + i, from + i + len(old), line, true
}

// followsIndicator tells whether a value for the null n can be written at at:
// behind a dash, or a colon, which a key in brackets may lack.
func (s *splicer) followsIndicator(n *Node, at int) bool {
	if !n.parent.IsMapping() {
		return strings.HasSuffix(strings.TrimRight(s.src[:at], " \t"), "-")
	}
	for i := 0; i+1 < len(n.parent.content); i += 2 {
		if n.parent.content[i+1] == n {
			end, ok := s.end(n.parent.content[i])
			return ok && end <= at && strings.Contains(s.src[end:at], ":")
		}
	}
	return false
}

// isLine tells whether the line of at is one to every reader: YAML 1.1 knows
// more line breaks than others.
func (s *splicer) isLine(at int) bool {
	return !strings.ContainsAny(s.src[s.lineStart(at):s.lineEnd(at)], "\r\u0085\u2028\u2029")
}

// scalarText writes the new value of n in the style of the old one.
func (s *splicer) scalarText(n *Node, from, to int) string {
	flowed := n.parent != nil && n.parent.style == flow
	lead := ""
	if from == to && from > 0 && !isSpace(s.src[from-1]) {
		lead = " " // an empty value stands right behind its colon
	}
	switch {
	case n.tag != tagString:
		return lead + n.value
	case n.style == double || s.emit.json:
		return lead + quote(n.value)
	case n.style == single && fitsSingle(n.value):
		return lead + "'" + strings.ReplaceAll(n.value, "'", "''") + "'"
	case !flowed && s.endsLine(to) && s.isLine(from) && fitsLiteral(n.value) && n.parent != nil:
		return lead + s.emit.literal(n.value, max(parentColumn(s.text, n), 0)+s.emit.step)
	case n.style == literal || n.style == folded:
		// An indented comment may follow, which only a block scalar ends.
		return lead + quote(n.value)
	}
	return lead + s.emit.scalar(n.value, n.tag, flowed)
}

// endsLine tells whether a line break stands at at, behind which a literal may
// end.
func (s *splicer) endsLine(at int) bool {
	return at < len(s.src) && s.lineEnd(at) == at && !s.takesIn(s.nextLine(at))
}

// takesIn tells whether a literal that ends before the lines at at would take
// some of them in: lines of blanks, or a comment with an indent.
func (t text) takesIn(at int) bool {
	for at < len(t.src) {
		end := t.lineEnd(at)
		if text := strings.TrimLeft(t.src[at:end], " \t"); text != "" {
			return text[0] == '#' && end-at > len(text)
		}
		if end > at {
			return true
		}
		at = t.nextLine(end)
	}
	return false
}

// fitsSingle tells whether single quotes can hold s on one line.
func fitsSingle(s string) bool {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return false
		}
	}
	return true
}

// addBlock adds the pairs or elements of a block collection from the old-th
// child on, behind the line of the last old one.
func (s *splicer) addBlock(n *Node, old int) {
	end, ok := s.end(n)
	if !ok || s.endsInBlockScalar(n, end) || !s.isLine(end) || !s.isLine(int(n.start)) {
		s.fail()
		return
	}
	fresh := &Node{kind: n.kind, style: block, content: n.content[old:]}
	s.insertLines(end, s.emit.withStep(s.text, n), fresh, s.blockColumn(n))
}

// withStep indents as the block n does.
func (e emitter) withStep(t text, n *Node) emitter {
	for _, c := range n.content {
		if c.start != noText && c.kind == Mapping && c.style == block && n.kind == Mapping {
			if step := t.blockColumn(c) - t.blockColumn(n); step > 0 {
				e.step = step
				return e
			}
		}
	}
	return e
}

// endsInBlockScalar tells whether the text ends, with no line break, in a block
// scalar at end: a line behind it would give the scalar a line break.
func (s *splicer) endsInBlockScalar(n *Node, end int) bool {
	if end < len(s.src) {
		return false
	}
	for n.kind != Scalar && n.style != flow {
		last := (*Node)(nil)
		for _, c := range n.content {
			if c.start != noText {
				last = c
			}
		}
		if last == nil {
			return true
		}
		n = last
	}
	return (n.style == literal || n.style == folded) && !s.isStripped(n)
}

// isStripped tells whether a block scalar leaves its last line breaks out (|-).
// https://yaml.org/spec/1.2.2/#8112-block-chomping-indicator
func (s *splicer) isStripped(n *Node) bool {
	at, ok := s.skipProperties(int(n.start))
	header, _, _ := strings.Cut(s.src[at:s.lineEnd(at)], "#")
	return ok && strings.Contains(header, "-")
}

// insertLines writes fresh as whole lines at col, behind the line that at is on.
func (s *splicer) insertLines(at int, e emitter, fresh *Node, col int) {
	if rest := strings.TrimLeft(s.src[at:s.lineEnd(at)], " \t"); rest != "" && rest[0] != '#' {
		s.fail() // something else follows on the line
		return
	}
	end := s.lineEnd(at)
	next := s.nextLine(end)
	atEnd := next == end // the text ends without a line break
	e.oneLine = atEnd || s.takesIn(next)
	lines := e.block(fresh, col)
	if atEnd {
		lines = e.eol + strings.TrimSuffix(lines, e.eol)
	}
	s.splices = append(s.splices, splice{next, next, lines})
}

// addFlow adds pairs or elements inside brackets.
func (s *splicer) addFlow(n *Node, old int) {
	parts := s.flowParts(n, old)
	if space := s.flowSpace(n, old); n.kind == Mapping && strings.Contains(space, "\n") {
		// In front, each new pair is a line of its own and no other line changes.
		first := int(n.content[0].start)
		sep := "," + space
		s.splices = append(s.splices, splice{first, first, strings.Join(parts, sep) + sep})
		return
	}
	if old > 0 {
		end, ok := s.end(n.content[old-1])
		if !ok {
			s.fail()
			return
		}
		sep := "," + s.flowSpace(n, old)
		s.splices = append(s.splices, splice{end, end, sep + strings.Join(parts, sep)})
		return
	}
	at, ok := s.skipProperties(int(n.start))
	if !ok {
		s.fail()
		return
	}
	s.splices = append(s.splices, splice{at + 1, at + 1, strings.Join(parts, ", ")})
}

func (s *splicer) flowParts(n *Node, old int) []string {
	var parts []string
	if n.kind == Sequence {
		for _, c := range n.content[old:] {
			parts = append(parts, s.emit.flow(c))
		}
		return parts
	}
	for i := old; i+1 < len(n.content); i += 2 {
		parts = append(parts, s.emit.pair(n.content[i], n.content[i+1]))
	}
	return parts
}

// flowSpace gives the white space to put before a new element: that before the
// first, if it is a line break with an indent, else one blank.
func (s *splicer) flowSpace(n *Node, old int) string {
	if old == 0 {
		return ""
	}
	first := int(n.content[0].start)
	before := s.src[:first]
	space := before[len(strings.TrimRight(before, " \t\r\n")):]
	if strings.Contains(space, "\n") {
		return space
	}
	return " "
}

// open writes what was put in place of a null.
func (s *splicer) open(n *Node) {
	from, to, ok := s.extent(n)
	if !ok || from == to && !s.followsIndicator(n, from) || !s.isLine(to) {
		s.fail()
		return
	}
	fresh := &Node{kind: n.kind, style: block, content: n.content}
	if n.parent == nil || n.parent.style != block || n.parent.kind != Mapping {
		lead := ""
		if from == to && !isSpace(s.src[from-1]) {
			lead = " "
		}
		s.splices = append(s.splices, splice{from, to, lead + s.emit.flow(fresh)})
		return
	}
	if from != to { // the word null goes, with the blanks before it
		for from > 0 && (s.src[from-1] == ' ' || s.src[from-1] == '\t') {
			from--
		}
		s.splices = append(s.splices, splice{from, to, ""})
	}
	e := s.emit.withStep(s.text, n.parent)
	s.insertLines(to, e, fresh, s.blockColumn(n.parent)+e.step)
}

// remove deletes a pair or an element: its lines, or in brackets and behind a
// dash its part of the line.
func (s *splicer) remove(r removal) {
	start, end := int(r.key.start), r.end
	if !r.ok || !s.isLine(start) || !s.isLine(end) {
		s.fail()
		return
	}
	lineStart := s.lineStart(start)
	lead := ""
	if r.from.kind == Sequence {
		lead = "-"
	}
	alone := strings.TrimSpace(s.src[lineStart:start]) == lead
	switch {
	case r.from.style == block && alone:
		lineEnd := s.lineEnd(end)
		s.splices = append(s.splices, splice{lineStart, s.nextLine(lineEnd), ""})
	case r.next != nil && r.next.start != noText:
		s.splices = append(s.splices, splice{start, int(r.next.start), ""})
	case r.from.style == flow && len(r.from.content) > 0 && r.from.content[0].start != noText:
		s.removeLast(r, end)
	default:
		s.fail()
	}
}

// removeLast deletes the last pair or element inside brackets, with the comma
// before it.
func (s *splicer) removeLast(r removal, end int) {
	for i, c := range slices.Backward(r.from.content) {
		if r.from.kind == Mapping && i == 0 {
			break // a key, whose value has no text
		}
		if c.start == noText {
			continue
		}
		if before, ok := s.end(c); ok && before < int(r.key.start) {
			s.splices = append(s.splices, splice{before, end, ""})
			return
		}
		break
	}
	s.fail()
}
