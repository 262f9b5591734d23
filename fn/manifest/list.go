package manifest

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A List is what one run works on: the objects of a ResourceList, or those of
// files, in the order of the input.
type List struct {
	Objects []*Object
	// Results are the findings of this run; earlier ones that came with a
	// ResourceList are kept in its text.
	Results []Result
	// FunctionConfig is the configuration that came with a ResourceList; nil
	// where there is none.
	FunctionConfig *Node
	// Sources are the texts that the objects were read from, in input order.
	Sources []*Source
}

// A Source is one text: a ResourceList, a file or a stream.
type Source struct {
	// Path is the name that the text was read under; "" for a ResourceList.
	Path string
	// Package is the package that the text belongs to.
	Package string
	// Skipped says why the text is left alone; "" where it holds objects.
	Skipped Skip
	// New is set for a file that a step added, and Origin is then the file that
	// it is a copy from; "" for none.
	New    bool
	Origin string

	text    string
	objects []*Object
	added   []*Object
	starts  []int32 // of the lines, once somebody asked
	items   *items  // of a ResourceList
	doc     *tree   // the fields of a ResourceList besides items
}

// A Skip is a reason to leave a file alone.
type Skip string

// The reasons to leave a file alone.
const (
	NotKubernetes Skip = "not Kubernetes objects"
	IsTemplate    Skip = "template that is not rendered"
)

// Report adds a finding to the results.
func (l *List) Report(r Result) { l.Results = append(l.Results, r) }

// Failed tells whether an error was reported.
func (l *List) Failed() bool {
	return slices.ContainsFunc(l.Results, func(r Result) bool { return r.Severity == Error })
}

// Original gives the text as it was read; nil for a new file.
func (s *Source) Original() []byte {
	if s.New {
		return nil
	}
	return []byte(s.text)
}

// line gives the number, from 1, of the line that an offset is on. The index of
// lines is made once: there may be a finding for every one of them.
func (s *Source) line(at int) int {
	if s.starts == nil {
		s.starts = []int32{0}
		for i := 0; i < len(s.text); i++ {
			if s.text[i] == '\n' {
				s.starts = append(s.starts, int32(i+1))
			}
		}
	}
	i, found := slices.BinarySearch(s.starts, int32(at))
	if found {
		return i + 1
	}
	return i
}

// Objects gives the objects that were read from the text and not removed.
func (s *Source) Objects() []*Object { return remaining(s.objects) }

// Changed tells whether Bytes differs from Original.
func (s *Source) Changed() bool {
	return s.New || len(s.added) > 0 || slices.ContainsFunc(s.objects, func(o *Object) bool { return o.gone || o.Changed() })
}

// Bytes gives the text with the edits of its objects, without results.
func (s *Source) Bytes() ([]byte, error) {
	splices, encoded, err := s.splices()
	if err != nil || len(splices) == 0 {
		return []byte(s.text), err
	}
	out, err := apply(s.text, splices)
	if err != nil {
		return nil, err
	}
	return out, s.verify(out, encoded)
}

// splices gives the text edits for all objects; encoded tells whether one of
// them had to be encoded again.
func (s *Source) splices() (out []splice, encoded bool, err error) {
	var errs []error
	encode := s.mustEncode()
	if out, err = s.removals(); err != nil {
		return nil, false, err
	}
	for _, o := range s.objects {
		if o.gone || !o.dirty() && !encode[o.unit] && !o.lendsAlias() {
			continue
		}
		got, ok := []splice(nil), false
		if !encode[o.unit] {
			got, ok = spliceTree(s.text, &o.tree)
		}
		if !ok {
			encoded = true
			if got, err = s.encodeObject(o); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", o.ID, err))
			}
		}
		out = append(out, got...)
	}
	added, err := s.spliceAdded()
	return append(out, added...), encoded, errors.Join(append(errs, err)...)
}

// mustEncode gives the units whose objects share anchors and of which one has
// to be encoded again: then all of them are.
func (s *Source) mustEncode() map[*unit]bool {
	var out map[*unit]bool
	for _, o := range s.objects {
		if len(o.unit.anchors) == 0 || !o.dirty() || o.gone {
			continue
		}
		if _, ok := spliceTree(s.text, &o.tree); !ok {
			if out == nil {
				out = map[*unit]bool{}
			}
			out[o.unit] = true
		}
	}
	return out
}

// lendsAlias tells whether an edit elsewhere may reach o through an alias.
func (o *Object) lendsAlias() bool { return len(o.unit.anchors) > 0 }

// encodeObject replaces the whole text of an object.
func (s *Source) encodeObject(o *Object) ([]splice, error) {
	t := text{src: s.text, base: o.unit.base}
	if s.aliasOutside(o.unit) {
		return nil, errors.New("this YAML cannot be edited (an alias outside of the objects refers into them)")
	}
	from := int(o.root.start)
	if props, ok := t.skipProperties(from); ok {
		from = props
	}
	to, ok := o.textEnd(o.root)
	if !ok {
		return nil, errors.New("this YAML cannot be edited (write it without anchors and tags that stand on lines of their own)")
	}
	if o.root.style == block {
		to = t.lineEnd(to)
	}
	out, err := o.reencode(s.text, t.takesIn(t.nextLine(to)))
	if err != nil {
		return nil, err
	}
	if to == len(s.text) {
		out += t.eol(from) // a literal at the end of the text needs its line break
	}
	return []splice{{from, to, out}}, nil
}

// aliasOutside tells whether the document has aliases that stand in no object,
// which would be lost with their anchors.
func (s *Source) aliasOutside(u *unit) bool {
	roots := map[*Node]bool{}
	for _, o := range s.objects {
		roots[o.root] = true
	}
	var search func(n *Node) bool
	search = func(n *Node) bool {
		return n != nil && !roots[n] && (n.flags&aliased != 0 || slices.ContainsFunc(n.content, search))
	}
	return search(u.root)
}

// forEach calls f for 0 to n-1 on all cores.
func forEach(n int, f func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	const chunk = 16
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next += chunk
		return next - chunk
	}
	for range workers {
		wg.Go(func() {
			for from := take(); from < n; from = take() {
				for i := from; i < min(from+chunk, n); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// Findings gives the results of one severity as lines.
func (l *List) Findings(s Severity) []string {
	var out []string
	for _, r := range l.Results {
		if r.Severity == s {
			out = append(out, strings.ReplaceAll(r.String(), "\n", " "))
		}
	}
	return out
}
