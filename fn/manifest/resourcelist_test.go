package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const twoItems = `apiVersion: config.kubernetes.io/v1
kind: ResourceList
# what is deployed
items:
- apiVersion: v1 # first
  kind: ConfigMap
  metadata:
    name: one
    annotations:
      internal.config.kubernetes.io/path: 'one.yaml'
      internal.config.kubernetes.io/index: '0'
  data:
    "k":   v

# between
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: two}
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: config}
  data: {a: b}
somethingElse: kept
`

func TestReadResourceList(t *testing.T) {
	tests := map[string]string{
		"block": twoItems,
		"indented": "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: one}\n" +
			"  # c\n  -   apiVersion: v1\n      kind: ConfigMap\n      metadata:\n        name: two\nfunctionConfig:\n  data:\n    a: b\n",
		"config first, no line break": "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig: {data: {a: b}}\n" +
			"items:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: two}",
		"config first": "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig: {data: {a: b}}\n" +
			"items:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: two}\n# end\n",
		"start marker": "---\n" + twoItems,
		"CRLF":         strings.ReplaceAll(twoItems, "\n", "\r\n"),
		"json":         `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"}}],"functionConfig":{"data":{"a":"b"}}}`,
		"anchor shared": "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: one}\n  data: &d {k: v}\n" +
			"- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: two}\n  data: *d\nfunctionConfig: {data: {a: b}}\n",
		"v1beta1":  strings.ReplaceAll(twoItems, "io/v1\n", "io/v1beta1\n"),
		"v1alpha1": strings.ReplaceAll(twoItems, "io/v1\n", "io/v1alpha1\n"),
		"a List as item": "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: one}\n" +
			"  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: two}\nfunctionConfig: {data: {a: b}}\n",
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			if !IsResourceList([]byte(in)) {
				t.Error("not taken for a ResourceList")
			}
			if IsResourceList([]byte("apiVersion: v1\nkind: ConfigMap\ndata:\n  example: |\n    " + strings.ReplaceAll(in, "\n", "\n    "))) {
				t.Error("text in a ConfigMap was taken for a ResourceList")
			}
			l, err := Read([]byte(in))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range l.Objects {
				got = append(got, o.ID.String())
			}
			if diff := cmp.Diff([]string{"ConfigMap one", "ConfigMap two"}, got); diff != "" {
				t.Errorf("objects (-want +got)\n%s", diff)
			}
			if got := l.FunctionConfig.Lookup("data", "a").Value(); got != "b" {
				t.Errorf("functionConfig data.a is %q, want b", got)
			}
			out, err := l.Output()
			if err != nil || string(out) != in {
				t.Errorf("changed without an edit: %v\n%s", err, cmp.Diff(in, string(out)))
			}
			checkWritten(t, l)
		})
	}
}

// checkWritten edits the list in every way and reads what comes out.
func checkWritten(t *testing.T, l *List) {
	t.Helper()
	l.Objects[1].SetAnnotation("a", "b")
	if _, err := l.Add(Map{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", Map{{"name", "three"}}}, {"data", Map{{"text", "a\nb\n"}}}}, "pkg", "three.yaml"); err != nil {
		t.Fatal(err)
	}
	l.Report(Result{Severity: Warning, Step: "testing", Object: l.Objects[0], Field: "data.k", Message: "a: b # c"})
	for range 2 { // earlier results are kept
		out, err := l.Output()
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(out), "three.yaml"); n != 2 { // under the name of old and of new
			t.Errorf("an edit was written %d times:\n%s", n, out)
		}
		if l, err = Read(out); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		l.Report(Result{Severity: Info, Message: "again"})
	}
	if got := fmt.Sprintln(len(l.Objects), l.Objects[1].Annotation("a"), l.Objects[2].ID, l.Objects[2].Package, l.Objects[2].File.Path); got != "3 b ConfigMap three pkg three.yaml\n" {
		t.Errorf("objects are %s", got)
	}
	if got := l.Objects[2].Root().Lookup("data", "text").Value(); got != "a\nb\n" {
		t.Errorf("text of the new object is %q", got)
	}
	results := l.Sources[0].doc.root.Get("results").Elems()
	if len(results) != 2 || results[0].Get("message").Value() != "a: b # c" || results[0].Lookup("resourceRef", "name").Value() != "one" || results[1].Get("severity").Value() != "info" {
		t.Errorf("results are %v", values1(l.Sources[0].doc.root.Get("results")))
	}
}

func TestReadResourceListEmpty(t *testing.T) {
	for _, items := range []string{"items: []\n", "items:\n", "items: null\n", ""} {
		in := "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n" + items
		l, err := Read([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		out, err := l.Output()
		if err != nil || string(out) != in || len(l.Objects) != 0 {
			t.Errorf("%q gave %q, %v", in, out, err)
		}
	}
}

// TestReadResourceListRefused reads shapes on which libraries panic, and others
// that cannot be right.
func TestReadResourceListRefused(t *testing.T) {
	const head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n"
	tests := map[string]struct{ in, want string }{
		"item is a string":      {head + "- x\n", "reading the ResourceList: items[0]: is not a mapping"},
		"item is null":          {head + "-\n", "reading the ResourceList: items[0]: is not a mapping"},
		"metadata is a list":    {head + "- {apiVersion: v1, kind: A, metadata: []}\n", "reading the ResourceList: items[0] (A): metadata is not a mapping"},
		"annotations is a list": {head + "- apiVersion: v1\n  kind: A\n  metadata:\n    name: x\n    annotations: []\n", "reading the ResourceList: items[0] (A x): metadata.annotations is not a mapping"},
		"label is a mapping":    {head + "- {apiVersion: v1, kind: A, metadata: {labels: {a: {}}}}\n", "reading the ResourceList: items[0] (A): metadata.labels[a] is not a string"},
		"name is a list":        {head + "- {apiVersion: v1, kind: A, metadata: {name: []}}\n", "reading the ResourceList: items[0] (A): metadata.name is not a string"},
		"no kind":               {head + "- {apiVersion: v1}\n- {kind: A}\n", "reading the ResourceList: items[0]: has no apiVersion and kind\nreading the ResourceList: items[1] (A): has no apiVersion and kind"},
		"items is a mapping":    {strings.Replace(head, "items:", "items: {}", 1), "reading the ResourceList: items is not a list"},
		"not a ResourceList":    {"apiVersion: v1\nkind: ConfigMap\n", "reading the ResourceList: the input is not a ResourceList of config.kubernetes.io/v1, config.kubernetes.io/v1beta1, config.kubernetes.io/v1alpha1"},
		"endless alias":         {head + "- &a {apiVersion: v1, kind: A, x: *a}\n", `reading the ResourceList: yaml: line 4: anchor "a" contains itself`},
		"bad YAML":              {head + "- a: [\n", "reading the ResourceList: yaml: line 4: did not find expected node content"},
		"empty":                 {"", "reading the ResourceList: the input is not a ResourceList of config.kubernetes.io/v1, config.kubernetes.io/v1beta1, config.kubernetes.io/v1alpha1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(tt.in))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestAliasBomb reads a few lines that would expand to billions of values.
func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: A\nl0: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", "))
	}
	_, err := ReadFiles([]Input{{Path: "bomb.yaml", Data: []byte(b.String())}})
	if err == nil || !strings.Contains(err.Error(), "aliases expand to too many values") {
		t.Errorf("got error %v", err)
	}
}

func TestReadFilesSkips(t *testing.T) {
	tests := []struct {
		name, in string
		skipped  Skip
		err      string
	}{
		{"values.yaml", "replicas: 3\n", NotKubernetes, ""},
		{"empty.yaml", "", NotKubernetes, ""},
		{"comment.yaml", "# nothing\n---\n", NotKubernetes, ""},
		{"broken values.yaml", "a: [\n", NotKubernetes, ""},
		{"template.yaml", "apiVersion: v1\nkind: A\nmetadata:\n  name: {{ .Values.name }}\n", IsTemplate, ""},
		{"template that does not parse.yaml", "apiVersion: v1\nkind: A\n{{- if .x }}\nspec: {}\n{{- end }}\n", IsTemplate, ""},
		{"braces in text.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: x}\ndata: '{{ x }}'\n", "", ""},
		{"broken.yaml", "# c\n---\napiVersion: v1\nkind: A\nmetadata:\n  name: [\n", "", "broken.yaml:6: did not find expected node content"},
		{"two.yaml", "apiVersion: v1\nkind: A\nmetadata: []\n---\nkind: B\napiVersion: v1\nmetadata: {labels: []}\n", "", "two.yaml:1: A: metadata is not a mapping\ntwo.yaml:4: B: metadata.labels is not a mapping"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := ReadFiles([]Input{{Path: tt.name, Data: []byte(tt.in)}})
			if got := fmt.Sprint(err); tt.err != "" && got != tt.err || tt.err == "" && err != nil {
				t.Errorf("got error %v, want %s", err, tt.err)
			}
			if got := l.Sources[0].Skipped; got != tt.skipped {
				t.Errorf("skipped is %q, want %q", got, tt.skipped)
			}
			if out, err := l.Sources[0].Bytes(); err != nil || string(out) != tt.in {
				t.Errorf("changed without an edit: %q, %v", out, err)
			}
		})
	}
}

func TestPathAndLine(t *testing.T) {
	l, err := ReadFiles([]Input{{Path: "a.yaml", Data: []byte("# c\napiVersion: v1\nkind: A\nmetadata:\n  annotations:\n    a.b/c: d\nspec:\n  list:\n  - x\n  - y: [1, 2]\n")}})
	if err != nil {
		t.Fatal(err)
	}
	o := l.Objects[0]
	for want, n := range map[string]*Node{
		"metadata.annotations[a.b/c] 6": o.Root().Lookup("metadata", "annotations", "a.b/c"),
		"spec.list[1].y[1] 10":          o.Root().Lookup("spec", "list").Elems()[1].Get("y").Elems()[1],
	} {
		if got := fmt.Sprint(o.Path(n), " ", o.Line(n)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := o.Find(o.Path(n)); got != n {
			t.Errorf("%s: not found again", o.Path(n))
		}
	}
	if got := o.Find("spec.nothing"); got != nil {
		t.Errorf("found %v at a path that is not there", got)
	}
}
