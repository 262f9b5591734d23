package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Map is a mapping to be written, in its order. Values are string, bool, int,
// Map or []any of these.
type Map []Pair

// A Pair is a key of a [Map] and its value.
type Pair struct {
	Key   string
	Value any
}

// newNode gives the node for a value that a Map may hold. Other types are a
// mistake of the program, and panic.
func newNode(v any, parent *Node) *Node {
	n := &Node{parent: parent, start: noText}
	switch v := v.(type) {
	case string:
		n.value = v
	case bool, int:
		n.value, n.tag = fmt.Sprint(v), tagOther
	case Map:
		n.kind, n.style = Mapping, block
		for _, p := range v {
			n.content = append(n.content, newNode(p.Key, n), newNode(p.Value, n))
		}
	case []any:
		n.kind, n.style = Sequence, block
		for _, e := range v {
			n.content = append(n.content, newNode(e, n))
		}
	default:
		panic(fmt.Sprintf("belay: internal error: %T in a manifest", v))
	}
	return n
}

// An emitter writes new nodes.
type emitter struct {
	json bool   // quote keys and strings as JSON does
	step int    // columns by which a nested block is indented
	eol  string // line break
	// oneLine keeps text of several lines out of literals: what comes next is
	// not a line break, so that the literal's own could get lost.
	oneLine bool
}

// block writes n as block lines, each indented by col, the last one ended.
func (e emitter) block(n *Node, col int) string {
	var b strings.Builder
	e.writeBlock(&b, n, col, false)
	return b.String()
}

// writeBlock writes a collection. Where inline, the cursor already stands at
// col, behind a dash.
func (e emitter) writeBlock(b *strings.Builder, n *Node, col int, inline bool) {
	pad := strings.Repeat(" ", col)
	lead := func() {
		if !inline {
			b.WriteString(pad)
		}
		inline = false
	}
	if n.kind == Sequence {
		for _, c := range n.content {
			lead()
			b.WriteString("- ")
			e.writeElement(b, c, col)
		}
		return
	}
	for k, v := range n.Pairs() {
		lead()
		b.WriteString(e.scalar(k.value, k.tag, false) + ":")
		e.writeValue(b, v, col)
	}
}

func (e emitter) writeElement(b *strings.Builder, c *Node, col int) {
	if c.kind == Scalar || len(c.content) == 0 {
		b.WriteString(e.flow(c) + e.eol)
		return
	}
	e.writeBlock(b, c, col+2, true)
}

// writeValue writes what stands behind the colon of a key at col.
func (e emitter) writeValue(b *strings.Builder, v *Node, col int) {
	switch {
	case v.kind == Scalar:
		b.WriteString(" " + e.blockScalar(v, col) + e.eol)
	case len(v.content) == 0:
		b.WriteString(" " + e.flow(v) + e.eol)
	case v.kind == Sequence:
		b.WriteString(e.eol)
		e.writeBlock(b, v, col, false)
	default:
		b.WriteString(e.eol)
		e.writeBlock(b, v, col+e.step, false)
	}
}

// blockScalar writes a scalar in block context; text of several lines becomes
// a literal where that can hold it.
func (e emitter) blockScalar(n *Node, col int) string {
	if n.tag == tagString && !e.oneLine && fitsLiteral(n.value) {
		return e.literal(n.value, col+e.step)
	}
	return e.scalar(n.value, n.tag, false)
}

// literal writes text as a literal scalar indented by col, without the last
// line break.
func (e emitter) literal(s string, col int) string {
	header := "|"
	if !strings.HasSuffix(s, "\n") {
		header = "|-"
	}
	pad := strings.Repeat(" ", col)
	var b strings.Builder
	b.WriteString(header)
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		b.WriteString(e.eol)
		if line != "" {
			b.WriteString(pad + line)
		}
	}
	return b.String()
}

// fitsLiteral tells whether a literal scalar with a plain header can hold s.
func fitsLiteral(s string) bool {
	if !strings.Contains(s, "\n") || s[0] == ' ' || s[0] == '\n' || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for _, r := range s {
		if r != '\n' && (!unicode.IsPrint(r) || r == utf8.RuneError || r == '\ufeff') {
			return false
		}
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasSuffix(line, " ") {
			return false
		}
	}
	return true
}

// flow writes n on one line.
func (e emitter) flow(n *Node) string {
	if n.kind == Scalar {
		return e.scalar(n.value, n.tag, true)
	}
	parts := make([]string, 0, len(n.content))
	if n.kind == Sequence {
		for _, c := range n.content {
			parts = append(parts, e.flow(c))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	for k, v := range n.Pairs() {
		parts = append(parts, e.pair(k, v))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// pair writes a key and its value on one line.
func (e emitter) pair(k, v *Node) string {
	return e.scalar(k.value, k.tag, true) + ": " + e.flow(v)
}

// scalar writes a scalar on one line: plain where every YAML reader takes that
// for the same value, in double quotes elsewhere.
func (e emitter) scalar(v string, t tag, inFlow bool) string {
	if t != tagString || !e.json && isPlainSafe(v, inFlow) {
		return v
	}
	return quote(v)
}

// quote writes s in double quotes, as JSON and YAML both read it.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A string always encodes; what is not UTF-8 the decoder refuses on reading.
	if err := enc.Encode(s); err != nil {
		panic("belay: internal error: " + err.Error())
	}
	return escapeBreaks(strings.TrimSuffix(b.String(), "\n"))
}

// escapeBreaks escapes what JSON leaves as it is but YAML folds or refuses.
func escapeBreaks(s string) string {
	if isASCII(s) && !strings.Contains(s, "\x7f") {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\ufeff' || r == '\ufffe' || r == '\uffff' {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isPlainSafe tells whether s, written without quotes, is that same string to
// YAML 1.1 and 1.2 readers. It would rather say no.
func isPlainSafe(s string, inFlow bool) bool {
	if s == "" || !isPlainFirst(s[0]) || looksTyped(s) {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("_-./@+=~()", c) >= 0:
		case c == ':' && i+1 < len(s) && s[i+1] != ' ' && !inFlow:
		case c == ':' && i+1 < len(s) && isWord(s[i+1]):
		case (c == ',' || c == ' ') && i+1 < len(s) && s[i+1] != ' ' && !inFlow:
		default:
			return false
		}
	}
	return true
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' || c == '_'
}

func isPlainFirst(c byte) bool { return isWord(c) || c == '.' }

// looksTyped tells whether a plain s could be read as a number, a date, a
// boolean or a null. https://yaml.org/type/
func looksTyped(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", ".inf", ".nan":
		return true
	}
	if c := s[0]; c != '.' && (c < '0' || c > '9') {
		return false
	}
	return strings.Trim(s, "0123456789abcdefABCDEFxXoO_+-.:TtZz ") == ""
}
