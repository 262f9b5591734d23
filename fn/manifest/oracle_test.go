package manifest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// plainTree gives a decoded value as lines of paths and values, for comparison:
// aliases and merges expanded, keys sorted.
func plainTree(y *yaml.Node) []string {
	var out []string
	dump(expand(y), "", &out)
	slices.Sort(out)
	return out
}

func dump(y *yaml.Node, path string, out *[]string) {
	switch y.Kind {
	case yaml.MappingNode:
		*out = append(*out, path+" map")
		seen := map[string]int{}
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := path + "." + y.Content[i].Value
			var keyLines []string
			if y.Content[i].Kind != yaml.ScalarNode {
				dump(y.Content[i], "", &keyLines)
			}
			key += strings.Join(keyLines, ",")
			dump(y.Content[i+1], fmt.Sprintf("%s#%d", key, seen[key]), out)
			seen[key]++
		}
	case yaml.SequenceNode:
		*out = append(*out, fmt.Sprintf("%s list of %d", path, len(y.Content)))
		for i, c := range y.Content {
			dump(c, fmt.Sprintf("%s[%d]", path, i), out)
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
		tag, value := y.Tag, y.Value
		switch tag {
		case "", "!!bool", "!!int":
			tag = "typed" // as a new value is before it was encoded
		case "!!null":
			value = ""
		}
		*out = append(*out, path+" "+tag+" "+fmt.Sprintf("%q", value))
	}
}

// editor makes edits by chance, the same for the same seed.
type editor struct {
	*rand.Rand
}

// values are new values that are awkward to write.
var values = []string{
	"v1", "nginx:1.27@sha256:0000", "true", "", "a: b", "#x", "two\nlines\n", "no end\nof line",
	"'single'", `"double"`, " lead", "trail ", "tab\there", "é ☃", "- x", "{a}", "1e3", "~", "\n", "yes", "x:", "\u2028",
}

func (e editor) value() string { return values[e.IntN(len(values))] }

// edit does one edit of a kind that steps do.
func (e editor) edit(o *Object) {
	nodes := allNodes(o.root, nil)
	n := nodes[e.IntN(len(nodes))]
	switch e.IntN(7) {
	case 0, 1:
		if n.kind == Scalar && n.parent != nil && !isIdentity(n) {
			o.Set(n, e.value())
		}
	case 2:
		o.SetAnnotation(fmt.Sprintf("a.test/%d", e.IntN(3)), e.value())
	case 3:
		o.SetLabel("l", e.value())
	case 4:
		if n.kind == Mapping && n != o.root && steps(n)[0].key != "metadata" {
			// A way that leads through a scalar is refused, and changes nothing.
			_ = o.SetField(n, e.value(), "new", "field")
		}
	case 5:
		if n.kind == Sequence {
			o.Append(n, e.value())
		}
	case 6:
		if n.parent != nil && n.parent != o.root {
			o.Remove(n)
		}
	}
}

// isIdentity tells whether reading the object again depends on n.
func isIdentity(n *Node) bool {
	path := pathString(steps(n))
	return slices.Contains([]string{"apiVersion", "kind", "metadata", "metadata.labels", "metadata.annotations"}, path)
}

func allNodes(n *Node, out []*Node) []*Node {
	out = append(out, n)
	if n.kind == Sequence {
		for _, c := range n.content {
			out = allNodes(c, out)
		}
		return out
	}
	for _, v := range n.Pairs() {
		out = allNodes(v, out)
	}
	return out
}

// checkOracle edits an object by chance and compares the spliced text with the
// same edits done to the decoded tree.
func checkOracle(t *testing.T, data string, seed uint64, mayRefuse bool) {
	t.Helper()
	l, err := ReadFiles([]Input{{Path: "in.yaml", Data: []byte(data), Stream: true}})
	if err != nil || len(l.Objects) == 0 {
		return
	}
	e := editor{rand.New(rand.NewPCG(seed, 1))}
	o := l.Objects[e.IntN(len(l.Objects))]
	for range 1 + e.IntN(4) {
		e.edit(o)
	}
	src := l.Sources[0]
	got, err := src.Bytes()
	if err != nil {
		// The awkward files can all be edited; of what fuzzing makes up, what
		// cannot is refused.
		if mayRefuse && strings.Contains(err.Error(), "cannot be edited") {
			return
		}
		t.Fatalf("seed %d: %v\n%s", seed, err, data)
	}
	doc, err := o.decodeAgain()
	if err != nil {
		t.Fatal(err)
	}
	want := replay(find(doc, o.unit, o.root), o.ops)
	again, err := ReadFiles([]Input{{Path: "out.yaml", Data: got, Stream: true}})
	if err != nil {
		t.Fatalf("seed %d: reading the result: %v\n--- before\n%s\n--- after\n%s", seed, err, data, got)
	}
	o2 := again.Objects[indexOf(l.Objects, o)]
	doc2, err := o2.decodeAgain()
	if err != nil {
		t.Fatal(err)
	}
	have := find(doc2, o2.unit, o2.root)
	if diff := cmp.Diff(plainTree(want), plainTree(have)); diff != "" {
		t.Errorf("seed %d: (-want +got)\n%s\n--- before\n%s\n--- after\n%s", seed, diff, data, got)
	}
	checkOthers(t, l, again, o)
}

// checkOthers checks that the objects that were not edited are what they were.
func checkOthers(t *testing.T, before, after *List, edited *Object) {
	t.Helper()
	for i, o := range before.Objects {
		if o == edited || i >= len(after.Objects) {
			continue
		}
		if diff := cmp.Diff(values1(o.root), values1(after.Objects[i].root)); diff != "" {
			t.Errorf("an object that was not edited changed: (-want +got)\n%s", diff)
		}
	}
}

// values1 lists the scalars below n in order.
func values1(n *Node) []string {
	var out []string
	for _, n := range allNodes(n, nil) {
		if n.IsNull() {
			out = append(out, "null") // however it is spelt
		} else {
			out = append(out, n.Value())
		}
	}
	return out
}

func indexOf(objects []*Object, o *Object) int {
	for i := range objects {
		if objects[i] == o {
			return i
		}
	}
	return -1
}

// TestOracle runs the oracle of FuzzSplice over the awkward files.
func TestOracle(t *testing.T) {
	for _, in := range inputs(t, "testdata/awkward") {
		t.Run(filepath.Base(in.Path), func(t *testing.T) {
			for seed := range uint64(200) {
				checkOracle(t, string(in.Data), seed, false)
				checkRemoval(t, string(in.Data), seed)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// FuzzSplice checks that no text makes the package panic, that a text without
// edits stays byte for byte, and that splicing gives what editing the decoded
// tree gives, or an error.
func FuzzSplice(f *testing.F) {
	files, err := filepath.Glob("testdata/awkward/*")
	if err != nil {
		f.Fatal(err)
	}
	for i, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data), uint64(i))
	}
	f.Fuzz(func(t *testing.T, data string, seed uint64) {
		l, err := ReadFiles([]Input{{Path: "in.yaml", Data: []byte(data)}})
		if err != nil {
			return
		}
		if got, err := l.Sources[0].Bytes(); err != nil || string(got) != data {
			t.Fatalf("changed without an edit: %v\n%q\n%q", err, data, got)
		}
		checkOracle(t, data, seed, true)
		checkRemoval(t, data, seed)
	})
}

// checkRemoval removes and copies objects by chance: what is left stays as it was.
func checkRemoval(t *testing.T, data string, seed uint64) {
	t.Helper()
	l, err := ReadFiles([]Input{{Path: "in.yaml", Data: []byte(data)}})
	if err != nil || len(l.Objects) == 0 {
		return
	}
	e := editor{rand.New(rand.NewPCG(seed, 2))}
	if o := l.Objects[e.IntN(len(l.Objects))]; !strings.Contains(data, "!") {
		if _, err := l.Copy(o, "", "copy.yaml"); err != nil {
			t.Fatalf("seed %d: copying: %v", seed, err)
		}
		l.Remove(l.Objects[len(l.Objects)-1])
	}
	for range 1 + e.IntN(3) {
		if len(l.Objects) > 1 {
			l.Remove(l.Objects[e.IntN(len(l.Objects))])
		}
	}
	out, err := l.Sources[0].Bytes()
	if err != nil {
		if strings.Contains(err.Error(), "cannot be removed") || strings.Contains(err.Error(), "cannot be edited") {
			return
		}
		t.Fatalf("seed %d: %v", seed, err)
	}
	again, err := ReadFiles([]Input{{Path: "in.yaml", Data: out}})
	if err != nil || len(again.Objects) != len(l.Objects) {
		t.Fatalf("seed %d: %v: %d objects, and %d are left\n--- before\n%s\n--- after\n%s", seed, err, len(l.Objects), len(again.Objects), data, out)
	}
	for i, o := range l.Objects {
		if diff := cmp.Diff(values1(o.root), values1(again.Objects[i].root)); diff != "" {
			t.Errorf("seed %d: an object that was not removed changed: (-want +got)\n%s\n--- after\n%s", seed, diff, out)
		}
	}
}
