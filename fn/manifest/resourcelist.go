package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// resourceListVersions are the versions of ResourceList that are read. The
// answer is in the version of the question, since its bytes stay.
var resourceListVersions = []string{
	"config.kubernetes.io/v1", "config.kubernetes.io/v1beta1", "config.kubernetes.io/v1alpha1",
}

// items says where the items of a ResourceList stand.
type items struct {
	end int // offset behind the last item's lines, where a new one goes
	col int // column of the dashes, -1 where the items are in brackets or absent
}

// ErrNotResourceList is wrapped by the error of Read for what is valid YAML but
// no ResourceList of a known version.
var ErrNotResourceList = errors.New("the input is not a ResourceList of " + strings.Join(resourceListVersions, ", "))

var jsonKind = regexp.MustCompile(`"kind"\s*:\s*"ResourceList"`)

// IsResourceList tells whether data begins as a ResourceList does, without
// decoding it.
func IsResourceList(data []byte) bool {
	s := strings.TrimPrefix(string(data[:min(len(data), 64<<10)]), "\ufeff")
	if strings.HasPrefix(strings.TrimSpace(s), "{") {
		return jsonKind.MatchString(s)
	}
	for line := range strings.Lines(s) {
		if value, ok := strings.CutPrefix(line, "kind:"); ok {
			value, _, _ = strings.Cut(value, " #")
			return strings.Trim(value, " \t\r\n\"'") == "ResourceList"
		}
	}
	return false
}

// Read reads a ResourceList, in YAML or JSON. All that is wrong with its items
// is reported at once.
func Read(data []byte) (*List, error) {
	src := &Source{text: string(data)}
	if int(int32(len(data))) != len(data) {
		return nil, errors.New("the ResourceList is larger than 2 GiB")
	}
	l := &List{Sources: []*Source{src}}
	spans, ok := splitItems(src.text)
	if ok {
		ok = src.readSplit(spans)
	}
	if !ok {
		if err := src.readWhole(); err != nil {
			return nil, err
		}
	}
	l.Objects = slices.Clone(src.objects)
	l.FunctionConfig = src.doc.root.Get("functionConfig")
	if l.FunctionConfig.IsNull() {
		l.FunctionConfig = nil
	}
	for _, o := range l.Objects {
		o.config = isSame(o.root, l.FunctionConfig)
	}
	return l, nil
}

// isSame tells whether an item is the file that the functionConfig came from:
// kpt sends it as both. What kpt makes of arguments has no such file.
func isSame(item, config *Node) bool {
	path := config.Lookup("metadata", "annotations", PathAnnotation)
	if !path.IsString() {
		path = config.Lookup("metadata", "annotations", legacyPathAnnotation)
	}
	if !path.IsString() {
		return false
	}
	for _, keys := range [][]string{
		{"apiVersion"},
		{"kind"},
		{"metadata", "name"},
		{"metadata", "annotations", PackagePathAnnotation},
		{"metadata", "annotations", legacyPathAnnotation},
	} {
		if item.Lookup(keys...).Value() != config.Lookup(keys...).Value() {
			return false
		}
	}
	return true
}

// A split says where the parts of a ResourceList begin: the lines before the
// items, each item, and the lines behind.
type split struct {
	starts []int // of each item's line; the last one is the end of the items
	col    int
}

// splitItems finds the items of a ResourceList in block style by their column.
// ok is false for anything unusual, which is then decoded as a whole.
func splitItems(s string) (split, bool) {
	out := split{col: -1}
	if !strings.HasSuffix(s, "\n") || strings.HasPrefix(s, "\ufeff") || strings.ContainsAny(s[:1], "{[%") {
		return out, false
	}
	at, seen := 0, false
	for at < len(s) {
		end := lineBreak(s, at)
		line := s[at:end]
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case !seen:
			seen = isItemsKey(line)
			if !seen && isMarker(line) && at > 0 {
				return out, false
			}
		case trimmed == "" || trimmed[0] == '#' || trimmed == "\r":
		case out.col < 0:
			out.col = len(line) - len(trimmed)
			if !isDash(trimmed) {
				return out, false
			}
			out.starts = append(out.starts, at)
		case len(line)-len(trimmed) == out.col && isDash(trimmed):
			out.starts = append(out.starts, at)
		case len(line)-len(trimmed) <= out.col:
			out.starts = append(out.starts, at)
			return out, !hasMarker(s[at:])
		}
		at = min(end+1, len(s))
	}
	out.starts = append(out.starts, len(s))
	return out, seen && out.col >= 0
}

func lineBreak(s string, at int) int {
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(s)
}

func isItemsKey(line string) bool {
	rest, ok := strings.CutPrefix(line, "items:")
	rest = strings.TrimLeft(strings.TrimSuffix(rest, "\r"), " ")
	return ok && (rest == "" || rest[0] == '#')
}

func isDash(s string) bool {
	return s[0] == '-' && (len(s) == 1 || s[1] == ' ' || s[1] == '\r')
}

// isMarker tells whether a line begins or ends a document.
func isMarker(line string) bool {
	return strings.HasPrefix(line, "---") || strings.HasPrefix(line, "...") || strings.HasPrefix(line, "%")
}

func hasMarker(s string) bool {
	for line := range strings.Lines(s) {
		if isMarker(line) {
			return true
		}
	}
	return false
}

// readSplit decodes each item on its own, on all cores. It gives false where
// an item is not a whole object, and leaves the source as it was.
func (s *Source) readSplit(sp split) bool {
	first, end := sp.starts[0], sp.starts[len(sp.starts)-1]
	rest := &unit{text: s.text[:first] + s.text[end:], gapAt: first, gap: end - first}
	root, err := decodeUnit(rest)
	if err != nil || !isResourceListRoot(root) {
		return false
	}
	n := len(sp.starts) - 1
	decoded := make([][]*Object, n)
	failed := make([]bool, n)
	forEach(n, func(i int) {
		u := &unit{text: s.text[sp.starts[i]:sp.starts[i+1]], base: sp.starts[i], dash: sp.col + 1}
		root, err := decodeUnit(u)
		u.lines = nil
		if err != nil || root == nil {
			failed[i] = true
			return
		}
		decoded[i], err = s.objectsOf(root, u)
		failed[i] = err != nil
	})
	if slices.Contains(failed, true) {
		return false
	}
	for _, objects := range decoded {
		s.adopt(objects)
	}
	rest.lines = nil
	// What is added behind the key items goes behind the items.
	root.Get("items").start = int32(end - 1)
	s.doc = &tree{full: s.text, unit: rest, root: root}
	s.items = &items{end: end, col: sp.col}
	return true
}

// adopt takes objects in and notes where they came from.
func (s *Source) adopt(objects []*Object) {
	for _, o := range objects {
		o.File, o.Package = fileOf(o), o.Annotation(PackagePathAnnotation)
	}
	s.objects = append(s.objects, objects...)
}

func isResourceListRoot(root *Node) bool {
	return root.IsMapping() && root.Get("kind").Value() == "ResourceList" &&
		slices.Contains(resourceListVersions, root.Get("apiVersion").Value())
}

// readWhole decodes the ResourceList as one document.
func (s *Source) readWhole() error {
	u := &unit{text: strings.TrimPrefix(s.text, "\ufeff")}
	u.base = len(s.text) - len(u.text)
	root, err := decodeUnit(u)
	u.lines = nil
	if err != nil {
		return fmt.Errorf("reading the ResourceList: %w", err)
	}
	if !isResourceListRoot(root) {
		return fmt.Errorf("reading the ResourceList: %w", ErrNotResourceList)
	}
	s.doc = &tree{full: s.text, unit: u, root: root}
	s.items = &items{col: -1}
	list := root.Get("items")
	if list.IsNull() {
		return nil
	}
	if !list.IsSequence() {
		return errors.New("reading the ResourceList: items is not a list")
	}
	var errs []error
	for i, n := range list.Elems() {
		objects, err := s.objectsOf(n, u)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the ResourceList: items[%d]%s: %w", i, naming(n), err))
			continue
		}
		for _, o := range objects {
			o.seq = cmp.Or(o.seq, list)
		}
		s.adopt(objects)
	}
	return errors.Join(errs...)
}

// naming helps a person to find a broken item.
func naming(n *Node) string {
	kind, name := n.Get("kind").Value(), n.Lookup("metadata", "name").Value()
	if kind == "" && name == "" {
		return ""
	}
	return " (" + strings.TrimSpace(kind+" "+name) + ")"
}

// objectsOf gives the object that root is, or those of a List.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#collections
func (s *Source) objectsOf(root *Node, u *unit) ([]*Object, error) {
	if root.Get("kind").Value() == "List" && root.Get("items").IsSequence() {
		var out []*Object
		for i, n := range root.Get("items").Elems() {
			objects, err := s.objectsOf(n, u)
			if err != nil {
				return nil, fmt.Errorf("items[%d]%s: %w", i, naming(n), err)
			}
			for _, o := range objects {
				o.inList, o.seq = true, cmp.Or(o.seq, root.Get("items"))
			}
			out = append(out, objects...)
		}
		return out, nil
	}
	o, err := newObject(root, u, s)
	if err != nil {
		return nil, err
	}
	return []*Object{o}, nil
}

// Output gives the ResourceList with the edits of its objects and with the
// results of the run.
func (l *List) Output() ([]byte, error) {
	s := l.Sources[0]
	splices, encoded, err := s.splices()
	if err != nil {
		return nil, err
	}
	edited := len(splices) > 0
	out, err := s.withResults(l.Results, splices)
	if err != nil || !edited {
		return out, err
	}
	return out, s.verify(out, encoded)
}

// Refusal gives the ResourceList with its items as they were read, and with the
// results of the run: what a function that failed answers.
func (l *List) Refusal() ([]byte, error) {
	return l.Sources[0].withResults(l.Results, nil)
}

// withResults adds results to the end of those that are there, and applies the
// splices.
func (s *Source) withResults(results []Result, splices []splice) ([]byte, error) {
	doc := *s.doc
	doc.opaque = doc.root.Get("items")
	if len(results) > 0 {
		doc.root = copyTop(s.doc.root)
		if err := addResults(&doc, results); err != nil {
			return nil, err
		}
		got, ok := spliceTree(s.text, &doc)
		if !ok {
			return nil, errors.New("writing the results: this ResourceList cannot be edited (write it in block style, without anchors around results)")
		}
		splices = append(splices, got...)
	}
	return apply(s.text, splices)
}

// copyTop copies the root of a document and its results, which are all that
// adding results changes.
func copyTop(root *Node) *Node {
	c := *root
	c.content = slices.Clone(root.content)
	for i, v := range c.content {
		if i%2 == 1 && c.content[i-1].value == "results" {
			r := *v
			r.content, r.parent = slices.Clone(v.content), &c
			if v.extra != nil {
				e := *v.extra
				r.extra = &e
			}
			c.content[i] = &r
		}
	}
	return &c
}

func addResults(doc *tree, results []Result) error {
	fresh := make([]any, len(results))
	for i, r := range results {
		fresh[i] = r.field()
	}
	have := doc.root.Get("results")
	switch {
	case have.IsSequence() && len(have.content) > 0 || have.IsSequence() && have.style == flow:
		for _, r := range fresh {
			doc.Append(have, r)
		}
	case have == nil:
		doc.create(doc.root, nil, fresh, []string{"results"})
	case have.IsNull():
		doc.create(doc.root, have, fresh, []string{"results"})
	default:
		return errors.New("writing the results: results is not a list")
	}
	return nil
}
