package manifest

import (
	"strings"
	"unicode/utf8"
)

// A text answers where nodes begin and end in a source. base is the offset
// below which it does not look back: the start of the document's first line.
type text struct {
	src  string
	base int
}

// extent gives the bytes [from, to) that hold the value of a scalar as it was
// read, without anchor and tag. ok is false where they cannot be told for sure.
func (t text) extent(n *Node) (from, to int, ok bool) {
	if n.start == noText {
		return 0, 0, false
	}
	at := int(n.start)
	if n.flags&aliased != 0 {
		return at, t.aliasEnd(at), true
	}
	if at, ok = t.skipProperties(at); !ok {
		return 0, 0, false
	}
	value := n.value
	if n.flags&(changed|opened) != 0 {
		value = n.extra.old
	}
	switch n.style {
	case double:
		to, ok = t.doubleEnd(at)
	case single:
		to, ok = t.singleEnd(at)
	case literal, folded:
		to, ok = t.blockEnd(at, parentColumn(t, n))
	default:
		to, ok = t.plainEnd(at, value)
	}
	return at, to, ok
}

// skipProperties passes over an anchor and a tag.
func (t text) skipProperties(at int) (int, bool) {
	for at < len(t.src) && (t.src[at] == '&' || t.src[at] == '!') {
		for at < len(t.src) && !isSpace(t.src[at]) && !strings.ContainsRune(",[]{}", rune(t.src[at])) {
			at++
		}
		end := at
		for at < len(t.src) && (t.src[at] == ' ' || t.src[at] == '\t') {
			at++
		}
		if at == len(t.src) || t.src[at] == '\n' || t.src[at] == '\r' || t.src[at] == '#' {
			return end, false // the value is on another line, or is not there
		}
	}
	return at, true
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (t text) aliasEnd(at int) int {
	for at < len(t.src) && !isSpace(t.src[at]) && !strings.ContainsRune(",[]{}", rune(t.src[at])) {
		at++
	}
	return at
}

func (t text) doubleEnd(at int) (int, bool) {
	if at >= len(t.src) || t.src[at] != '"' {
		return 0, false
	}
	for i := at + 1; i < len(t.src); i++ {
		switch t.src[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return 0, false
}

func (t text) singleEnd(at int) (int, bool) {
	if at >= len(t.src) || t.src[at] != '\'' {
		return 0, false
	}
	for i := at + 1; i < len(t.src); i++ {
		if t.src[i] != '\'' {
			continue
		}
		if i+1 < len(t.src) && t.src[i+1] == '\'' {
			i++
			continue
		}
		return i + 1, true
	}
	return 0, false
}

// plainEnd follows value through the text, where each run of white space may
// have been folded.
func (t text) plainEnd(at int, value string) (int, bool) {
	if strings.HasPrefix(t.src[min(at, len(t.src)):], value) {
		return at + len(value), true
	}
	for value != "" {
		if at >= len(t.src) {
			return 0, false
		}
		if value[0] == t.src[at] && !isSpace(value[0]) {
			at, value = at+1, value[1:]
			continue
		}
		rest := strings.TrimLeft(value, " \t\n")
		after := at
		for after < len(t.src) && isSpace(t.src[after]) {
			after++
		}
		if len(rest) == len(value) || after == at {
			return 0, false
		}
		at, value = after, rest
	}
	return at, true
}

// blockEnd finds the end of a literal or folded scalar whose | or > stands at
// at and whose parent is at column parent: behind its last line that counts,
// without the line break. https://yaml.org/spec/1.2.2/#81-block-scalar-styles
func (t text) blockEnd(at, parent int) (int, bool) {
	if at >= len(t.src) || t.src[at] != '|' && t.src[at] != '>' {
		return 0, false
	}
	end := t.lineEnd(at)
	header := t.src[at:end]
	if i := strings.IndexByte(header, '#'); i >= 0 {
		header = header[:i]
	}
	keep := strings.ContainsRune(header, '+')
	indent := 0
	if i := strings.IndexAny(header, "123456789"); i >= 0 {
		indent = max(parent, 0) + int(header[i]-'0')
	}
	for next := t.nextLine(end); next < len(t.src) && next > end; {
		stop := t.lineEnd(next)
		line := t.src[next:stop]
		col := len(line) - len(strings.TrimLeft(line, " "))
		blank := strings.TrimRight(line[col:], "\r") == ""
		if !blank {
			if indent == 0 {
				indent = max(col, parent+1, 1)
			}
			if col < indent {
				break
			}
		}
		if !blank || keep || indent > 0 && col > indent {
			end = stop
		}
		if after := t.nextLine(stop); after > next && after > stop {
			next = after
		} else {
			break
		}
	}
	return end, true
}

// lineEnd gives the offset of the line break (or the end of the text) that ends
// the line of at; a CR before the break belongs to the break.
func (t text) lineEnd(at int) int {
	i := strings.IndexByte(t.src[at:], '\n')
	if i < 0 {
		return len(t.src)
	}
	if i > 0 && t.src[at+i-1] == '\r' {
		i--
	}
	return at + i
}

// nextLine gives the start of the line after the line break at at, or at
// itself at the end of the text.
func (t text) nextLine(at int) int {
	for at < len(t.src) && t.src[at] == '\r' {
		at++
	}
	if at < len(t.src) && t.src[at] == '\n' {
		at++
	}
	return at
}

// lineStart gives the start of the line that at is on.
func (t text) lineStart(at int) int {
	return max(strings.LastIndexByte(t.src[:at], '\n')+1, t.base)
}

// column gives how many characters stand before at on its line.
func (t text) column(at int) int { return utf8.RuneCountInString(t.src[t.lineStart(at):at]) }

// eol gives the line break that the text uses around at.
func (t text) eol(at int) string {
	end := strings.IndexByte(t.src[at:], '\n')
	if end < 0 {
		if end = strings.LastIndexByte(t.src[:at], '\n'); end < 0 {
			return "\n"
		}
	} else {
		end += at
	}
	if end > 0 && t.src[end-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// parentColumn gives the column of the block collection that n stands in, -1
// for a root: what a block scalar must be indented deeper than.
func parentColumn(t text, n *Node) int {
	if n.parent == nil || n.parent.style != block {
		return -1
	}
	return t.blockColumn(n.parent)
}

// blockColumn gives the column of the keys or dashes of a block collection.
func (t text) blockColumn(n *Node) int {
	at, ok := t.skipProperties(int(n.start))
	if n.kind == Mapping && (!ok || at != int(n.start)) && len(n.content) > 0 {
		at = int(n.content[0].start)
	} else if !ok {
		at = t.nextDash(at)
	}
	return t.column(at)
}

// nextDash finds the first dash of a sequence whose anchor or tag stands on a
// line before it.
func (t text) nextDash(at int) int {
	for at < len(t.src) {
		line := t.src[at:t.lineEnd(at)]
		if trimmed := strings.TrimLeft(line, " "); strings.HasPrefix(trimmed, "-") {
			return at + len(line) - len(trimmed)
		}
		next := t.nextLine(t.lineEnd(at))
		if next == at {
			break
		}
		at = next
	}
	return at
}

// end gives the offset behind the last byte of n's value as it was read; a
// comment behind it is not part of it.
func (t text) end(n *Node) (int, bool) {
	switch {
	case n.start == noText:
		return 0, false
	case n.flags&aliased != 0:
		return t.aliasEnd(int(n.start)), true
	case n.kind == Scalar || n.flags&opened != 0:
		_, to, ok := t.extent(n)
		return to, ok
	case n.style == flow:
		at, ok := t.skipProperties(int(n.start))
		if !ok {
			return 0, false
		}
		return t.flowEnd(at)
	}
	for i := len(n.content) - 1; i >= 0; i-- {
		if n.content[i].start != noText {
			return t.end(n.content[i])
		}
	}
	return 0, false
}

// flowEnd finds the bracket that closes the one at at.
func (t text) flowEnd(at int) (int, bool) {
	depth := 0
	for at < len(t.src) {
		switch c := t.src[at]; c {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return at + 1, true
			}
		case '"', '\'':
			if end, ok := t.quotedEnd(at); ok {
				at = end
				continue
			}
		case '#':
			if at > 0 && isSpace(t.src[at-1]) {
				at = t.lineEnd(at)
				continue
			}
		}
		at++
	}
	return 0, false
}

// quotedEnd gives the end of a quoted scalar at at; not ok for a quote that
// stands inside a plain scalar, such as the one of don't.
func (t text) quotedEnd(at int) (int, bool) {
	before := strings.TrimRight(t.src[:at], " \t\r\n")
	if before == "" || !strings.ContainsRune(",[{:?", rune(before[len(before)-1])) && before[len(before)-1] != '!' {
		if len(before) == at || !isPropertyTail(before) {
			return 0, false
		}
	}
	if t.src[at] == '"' {
		return t.doubleEnd(at)
	}
	return t.singleEnd(at)
}

// isPropertyTail tells whether s ends with an anchor or a tag.
func isPropertyTail(s string) bool {
	i := strings.LastIndexAny(s, " \t\r\n,[{:")
	return i+1 < len(s) && (s[i+1] == '&' || s[i+1] == '!')
}
