package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// without reads a text, removes the objects with the names, and gives what is
// left.
func without(t *testing.T, text string, names ...string) string {
	t.Helper()
	l, err := ReadFiles([]Input{{Path: "in.yaml", Data: []byte(text)}})
	if IsResourceList([]byte(text)) {
		l, err = Read([]byte(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, o := range l.Objects {
			if o.ID.Name == name {
				l.Remove(o)
				break
			}
		}
	}
	if l.Sources[0].Removed() {
		return "(removed)"
	}
	out, err := l.Sources[0].Bytes()
	if err != nil {
		return "error: " + err.Error()
	}
	return string(out)
}

func TestRemove(t *testing.T) {
	const (
		a  = "apiVersion: v1\nkind: A\nmetadata: {name: a} # one\n"
		b  = "---\n# two\napiVersion: v1\nkind: B\nmetadata: {name: b}\n"
		c  = "---\napiVersion: v1\nkind: C\nmetadata: {name: c}\n"
		rl = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n"
		ia = "- apiVersion: v1\n  kind: A\n  metadata:\n    name: a\n"
		ib = "- apiVersion: v1\n  kind: B\n  metadata:\n    name: b # two\n"
		js = `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[`
		ja = `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`
		jb = `{"apiVersion":"v1","kind":"B","metadata":{"name":"b"}}`
		jc = `{"apiVersion":"v1","kind":"C","metadata":{"name":"c"}}`
	)
	for name, test := range map[string]struct{ in, names, want string }{
		"first document":       {a + b + c, "a", b + c},
		"document between":     {a + b + c, "b", a + c},
		"last document":        {a + b + c, "c", a + b},
		"all documents":        {a + b, "a b", "(removed)"},
		"beside other YAML":    {a + "---\nother: 1\n", "a", "---\nother: 1\n"},
		"item":                 {rl + ia + ib + "functionConfig: {}\n", "a", rl + ib + "functionConfig: {}\n"},
		"all items":            {rl + ia + ib + "functionConfig: {}\n", "b a", strings.TrimSuffix(rl, "\n") + " []\nfunctionConfig: {}\n"},
		"first in brackets":    {js + ja + ", " + jb + "," + jc + "]}", "a", js + jb + "," + jc + "]}"},
		"middle in brackets":   {js + ja + ", " + jb + "," + jc + "]}", "b", js + ja + ", " + jc + "]}"},
		"last in brackets":     {js + ja + ", " + jb + "," + jc + "]}", "c", js + ja + ", " + jb + "]}"},
		"last two in brackets": {js + ja + ", " + jb + "," + jc + "]}", "b c", js + ja + "]}"},
		"all in brackets":      {js + ja + ", " + jb + "]}", "a b", js + "]}"},
		"item of a List":       {"apiVersion: v1\nkind: List\nitems:\n  # first\n" + ia + "  # second\n" + ib, "a", "apiVersion: v1\nkind: List\nitems:\n  # first\n  # second\n" + ib},
		"all items of a List":  {"apiVersion: v1\nkind: List\nitems:\n" + ia + ib + b, "a b", b},
		"shared anchors": {
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: &v v1\n  kind: A\n  metadata: {name: a}\n- apiVersion: *v\n  kind: B\n  metadata: {name: b}\n", "a",
			"error: A a: cannot be removed: others of its list share its anchors (give it a file of its own)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, without(t, test.in, strings.Fields(test.names)...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRemoveWhatWasAdded(t *testing.T) {
	for name, in := range map[string]string{
		"files":        "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n",
		"ResourceList": "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: v1\n  kind: A\n  metadata:\n    name: a\n",
	} {
		l, err := ReadFiles([]Input{{Path: "in.yaml", Data: []byte(in)}})
		if IsResourceList([]byte(in)) {
			l, err = Read([]byte(in))
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Copy(l.Objects[0], "", "copy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		l.Remove(c)
		if l.Sources[0].Changed() || len(l.Sources) != 1 || len(l.Objects) != 1 {
			t.Errorf("%s: something is left of an object that was added and removed", name)
		}
	}
}

func TestCopy(t *testing.T) {
	const in = `# A comment.
apiVersion: v1
kind: ConfigMap
metadata:
  name: "a"
  annotations:
    internal.config.kubernetes.io/path: a.yaml
    config.kubernetes.io/index: '0'
    own: yes please
data:
  text: |
    one
      two

  folded: >-
    a
    b
  quoted: "true"
  base: &b {x: 1, y: ~}
  alias: *b
  merged:
    <<: *b
    z: []
`
	const want = `apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  annotations:
    own: yes please
data:
  text: |
    one
      two
  folded: a b
  quoted: "true"
  base:
    x: 1
    "y": null
  alias:
    x: 1
    "y": null
  merged:
    z: []
    x: 1
    "y": null
`
	l, err := ReadFiles([]Input{{Path: "a.yaml", Data: []byte(in)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Copy(l.Objects[0], "", "versions/a.yaml"); err != nil {
		t.Fatal(err)
	}
	got, err := l.Sources[1].Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if l.Sources[0].Changed() || l.Sources[1].Path != "versions/a.yaml" || !l.Sources[1].New {
		t.Error("the copy is not a file of its own")
	}
}

func TestAddToStream(t *testing.T) {
	l, err := ReadFiles([]Input{{Data: []byte("apiVersion: v1\nkind: A\nmetadata:\n  name: a"), Stream: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Copy(l.Objects[0], "", ""); err != nil {
		t.Fatal(err)
	}
	got, err := l.Sources[0].Bytes()
	if err != nil {
		t.Fatal(err)
	}
	const want = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: A\nmetadata:\n  name: a\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
