package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An Input is a text to be read: a file, or a stream of documents.
type Input struct {
	Path    string
	Package string
	Data    []byte
	// Stream is set for text that is meant to be manifests, and nothing else:
	// what cannot be read is then an error, whatever it looks like.
	Stream bool
}

// ReadFiles reads files and streams: documents of YAML or JSON, with comments
// between them. Files that hold no Kubernetes objects are kept as they are and
// say so in [Source.Skipped]. All that is wrong is reported at once, in input
// order.
func ReadFiles(inputs []Input) (*List, error) {
	l := &List{}
	var parts []part
	for _, in := range inputs {
		if int(int32(len(in.Data))) != len(in.Data) {
			return nil, fmt.Errorf("%s: larger than 2 GiB", in.Path)
		}
		s := &Source{Path: in.Path, Package: in.Package, text: string(in.Data)}
		l.Sources = append(l.Sources, s)
		docs := documents(s.text)
		if len(docs) == 0 {
			s.Skipped = NotKubernetes
		}
		for i, d := range docs {
			parts = append(parts, part{src: s, index: i, doc: d, strict: in.Stream})
		}
	}
	forEach(len(parts), func(i int) { parts[i].decode() })
	err := settle(parts)
	for _, s := range l.Sources {
		l.Objects = append(l.Objects, s.objects...)
	}
	return l, err
}

// A part is one document on its way from text to objects.
type part struct {
	src     *Source
	index   int
	doc     document
	strict  bool
	objects []*Object
	other   bool // a value that is no Kubernetes object
	err     error
}

func (p *part) decode() {
	p.objects, p.err = p.src.decodeDocument(p.doc.from, p.doc.to)
	var none notAnObject
	if errors.As(p.err, &none) {
		p.other, p.err = true, nil
	}
}

// settle gives each source its objects, and decides what to do with a source
// that could not be read.
func settle(parts []part) error {
	var errs []error
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].src == parts[0].src {
			n++
		}
		errs = append(errs, settleSource(parts[:n]))
		parts = parts[n:]
	}
	return errors.Join(errs...)
}

// settleSource does what settle says for the parts of one source.
func settleSource(parts []part) error {
	s := parts[0].src
	var errs []error
	for _, p := range parts {
		if p.err != nil {
			errs = append(errs, s.located(p))
		}
	}
	strict := parts[0].strict
	if !strict && s.isTemplate(parts) {
		s.Skipped = IsTemplate
		return nil
	}
	if len(errs) > 0 {
		if !strict && !looksLikeObject(s.text) {
			s.Skipped = NotKubernetes
			return nil
		}
		return errors.Join(errs...)
	}
	for _, p := range parts {
		for _, o := range p.objects {
			o.File, o.Package = File{Path: s.Path, Index: p.index}, s.Package
		}
		s.objects = append(s.objects, p.objects...)
	}
	if len(s.objects) == 0 {
		s.Skipped = NotKubernetes
	}
	return nil
}

var lineOf = regexp.MustCompile(`^yaml: line (\d+): `)

// located names the file and line of a part that could not be read.
func (s *Source) located(p part) error {
	if at := strings.Index("\n"+s.text, "\n<<<<<<< "); at >= 0 && strings.Contains(s.text, "\n>>>>>>> ") {
		return fmt.Errorf("%s:%d: holds a conflict of a merge (solve it, and run again)", s.Path, s.line(at))
	}
	line := strings.Count(s.text[:p.doc.from], "\n")
	msg := p.err.Error()
	if m := lineOf.FindStringSubmatch(msg); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return fmt.Errorf("%s:%d: %s", s.Path, line+n, msg[len(m[0]):])
		}
	}
	return fmt.Errorf("%s:%d: %s", s.Path, line+1, strings.TrimPrefix(msg, "yaml: "))
}

// isTemplate tells whether the source holds {{ }} where YAML has a value, as a
// Helm chart does before it is rendered. Inside of quotes and block scalars
// {{ }} is text like any other.
func (s *Source) isTemplate(parts []part) bool {
	if !strings.Contains(s.text, "{{") {
		return false
	}
	for _, p := range parts {
		if p.err != nil {
			return true
		}
		for _, o := range p.objects {
			if holdsTemplate(s.text, o.root) {
				return true
			}
		}
	}
	return false
}

func holdsTemplate(src string, n *Node) bool {
	if n.kind == Mapping && n.style == flow && n.start != noText && strings.HasPrefix(src[n.start:], "{{") {
		return true
	}
	for _, c := range n.content {
		if holdsTemplate(src, c) {
			return true
		}
	}
	return false
}

// looksLikeObject tells whether a text that cannot be decoded was meant to be a
// Kubernetes object: then it must not be passed over in silence.
func looksLikeObject(s string) bool {
	version, kind := false, false
	for line := range strings.Lines(s) {
		line = strings.TrimLeft(line, " \t{\"'-")
		version = version || strings.HasPrefix(line, "apiVersion")
		kind = kind || strings.HasPrefix(line, "kind")
	}
	return version && kind
}

// A document is the range of one document in a text.
type document struct{ from, to int }

// documents splits a text at its document markers. Parts that hold nothing but
// comments and directives are left out.
func documents(s string) []document {
	var out []document
	from := 0
	if strings.HasPrefix(s, "\ufeff") {
		from = len("\ufeff")
	}
	empty := true
	cut := func(at int) {
		if !empty {
			out = append(out, document{from, at})
		}
		from, empty = at, true
	}
	for at := from; at < len(s); {
		end := lineBreak(s, at)
		next := min(end+1, len(s))
		line := strings.TrimSuffix(s[at:end], "\r")
		switch {
		case isDocumentStart(line):
			cut(at)
			empty = isBlank(line[3:])
		case line == "..." || strings.HasPrefix(line, "... "):
			cut(next)
		case !isBlank(line) && line[0] != '%':
			empty = false
		}
		at = next
	}
	cut(len(s))
	return out
}

func isDocumentStart(line string) bool {
	return strings.HasPrefix(line, "---") && (len(line) == 3 || line[3] == ' ' || line[3] == '\t')
}

// isBlank tells whether a line holds nothing but blanks and a comment.
func isBlank(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line == "" || line[0] == '#'
}

// notAnObject is the error for a document that is valid YAML but no Kubernetes
// object.
type notAnObject struct{ error }

// decodeDocument decodes the document in [from, to).
func (s *Source) decodeDocument(from, to int) ([]*Object, error) {
	u := &unit{text: s.text[from:to], base: from}
	root, err := decodeUnit(u)
	u.lines = nil
	if err != nil || root == nil {
		return nil, err
	}
	if !root.Get("apiVersion").IsString() || !root.Get("kind").IsString() {
		return nil, notAnObject{errors.New("has no apiVersion and kind")}
	}
	objects, err := s.objectsOf(root, u)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.TrimSpace(root.Get("kind").Value()+" "+root.Lookup("metadata", "name").Value()), err)
	}
	return objects, nil
}
