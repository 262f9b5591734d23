package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example gives an object with an image at the path of a row.
func example(r ImageRow) string {
	version := r.Group + "/v1"
	kind := "Any"
	if len(r.Kinds) > 0 {
		kind = r.Kinds[len(r.Kinds)-1]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata: {name: x}\n", version, kind)
	indent := ""
	for i, key := range r.Path {
		switch key {
		case "**":
			key = "deep"
		case "*":
			key = "any"
		case "steps", "sidecars":
			// Lists are entered.
			fmt.Fprintf(&b, "%s%s:\n%s- name: first\n", indent, key, indent)
			indent += "  "
			continue
		}
		fmt.Fprintf(&b, "%s%s:", indent, key)
		if i == len(r.Path)-1 {
			fmt.Fprintf(&b, " %squay.io/a/b:1\n", r.Prefix)
		} else {
			b.WriteString("\n")
		}
		indent += "  "
	}
	return b.String()
}

// imagesOf gives the images of the only object of a text.
func imagesOf(t *testing.T, table *ImageTable, text string) []ImageField {
	t.Helper()
	l, err := ReadFiles([]Input{{Data: []byte(text)}})
	if err != nil || len(l.Objects) == 0 {
		t.Fatalf("%v\n%s", err, text)
	}
	return table.Images(l.Objects[0])
}

// TestImageRows wants the field of each row found in its kinds, and in no
// other group or kind, nor in the status.
func TestImageRows(t *testing.T) {
	table := NewImageTable()
	for _, r := range imageRows() {
		text := example(r)
		got := imagesOf(t, table, text)
		if len(got) != 1 || got[0].Text() != "quay.io/a/b:1" || got[0].Pod {
			t.Errorf("%s %v: %v\n%s", r.Group, r.Kinds, got, text)
		}
		for _, other := range []string{strings.Replace(text, "apiVersion: "+r.Group, "apiVersion: other.example.com", 1), strings.Replace(text, "\nspec:", "\nstatus:", 1)} {
			if got := imagesOf(t, table, other); len(got) != 0 {
				t.Errorf("%s: found in\n%s", r.Group, other)
			}
		}
	}
}

// TestNotImages wants fields left alone that look like images and are not
// deployed.
func TestNotImages(t *testing.T) {
	for title, text := range map[string]string{
		"status of a pod":       "apiVersion: v1\nkind: Pod\nstatus: {containers: [{image: a}], containerStatuses: [{image: a}]}\n",
		"what Strimzi builds":   "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaConnect\nspec: {build: {output: {image: a}}}\n",
		"what Flux watches":     "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nspec: {image: a}\n",
		"what CDI follows":      "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataImportCron\nspec: {template: {spec: {source: {registry: {url: 'docker://a'}}}}}\n",
		"a disk by HTTP":        "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nspec: {source: {registry: {url: 'oci-archive://a'}}}\n",
		"containers, a mapping": "apiVersion: apps.kruise.io/v1alpha1\nkind: DaemonSet\nspec: {template: {spec: {containers: {image: a}}}}\n",
		"an rbd":                "apiVersion: v1\nkind: Pod\nspec: {volumes: [{rbd: {image: foo}}]}\n",
	} {
		if got := imagesOf(t, NewImageTable(), text); len(got) != 0 {
			t.Errorf("%s: %s", title, got[0].Text())
		}
	}
}

// TestAskedForImages wants what the user names: fields, references in parts,
// variables and arguments.
func TestAskedForImages(t *testing.T) {
	const text = `apiVersion: example.com/v1
kind: Thing
metadata:
  name: x
  labels: {app: web}
  annotations: {a.b/image: c:1}
spec:
  deep: {list: [{image: d:1}, {image: e:1}]}
  names: [f:1, g:1]
  values: {registry: quay.io, repository: team/h, tag: 1.10, pullPolicy: Never}
  bare: {repository: i, digest: 'sha256:x'}
  empty: {tag: 1}
  containers:
  - image: k:1
    command: [run, --image, l:1, --other, m:1, --image, --image=z:1]
    args: ["--reloader=n:1", "--reloaders=o:1", "-x", --image]
    env:
    - {name: RELATED_IMAGE_A, value: p:1}
    - {name: IMAGE, value: q:1}
    - {name: RELATED_IMAGE_B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
`
	parts := &ImageParts{Registry: "registry", Repository: "repository", Tag: "tag", Digest: "digest"}
	table := NewImageTable(
		ImageRow{Path: []string{"metadata", "annotations", "a.b/image"}},
		ImageRow{Group: "example.com", Version: "v1", Kinds: []string{"Thing"}, Path: []string{"spec", "deep", "list", "image"}},
		ImageRow{Group: "example.com", Version: "v2", Path: []string{"spec", "nothing"}},
		ImageRow{Selects: func(o *Object) bool { return o.Label("app") == "web" }, Path: []string{"spec", "names"}},
		ImageRow{Selects: func(o *Object) bool { return o.Label("app") != "web" }, Path: []string{"spec", "names"}},
		ImageRow{Path: []string{"spec", "*"}, Parts: parts},
		ImageRow{Path: []string{"spec", "**", "image"}},
	)
	table.Env, table.Args = []string{"RELATED_IMAGE_*"}, []string{"--image", "--reloader"}
	var got []string
	for _, f := range imagesOf(t, table, text) {
		got = append(got, f.Text())
	}
	want := []string{"c:1", "d:1", "e:1", "f:1", "g:1", "quay.io/team/h:1.10", "i@sha256:x", "k:1", "l:1", "z:1", "n:1", "p:1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got)\n%s", diff)
	}
}

// TestPartsAreText wants a tag refused that a program reads as another number.
func TestPartsAreText(t *testing.T) {
	row := ImageRow{Path: []string{"i"}, Parts: &ImageParts{Repository: "repository", Tag: "tag"}}
	for tag, want := range map[string]bool{"1.27": true, "7": true, "v1": true, "'1.10'": true, "": true, "1.10": false, "1e3": false, "0x10": false, "true": false} {
		fields := imagesOf(t, NewImageTable(row), "apiVersion: v1\nkind: X\ni: {repository: a, tag: "+tag+"}\n")
		if len(fields) != 1 || fields[0].IsString() != want {
			t.Errorf("%s: %t, want %t", tag, !want, want)
		}
	}
}

// TestSetImage wants the rest of a scalar, and the other parts, to stay.
func TestSetImage(t *testing.T) {
	parts := func(digest string) *ImageParts {
		return &ImageParts{Registry: "registry", Repository: "repository", Tag: "tag", Digest: digest}
	}
	for title, tt := range map[string]struct {
		row      ImageRow
		in, want string
	}{
		"whole":               {ImageRow{Path: []string{"i"}}, "i: 'a:1' # why", "i: 'a:2@d' # why"},
		"prefix":              {ImageRow{Path: []string{"i"}, Prefix: "docker://"}, "i: \"docker://a:1\"", "i: \"docker://a:2@d\""},
		"parts":               {ImageRow{Path: []string{"i"}, Parts: parts("digest")}, "i:\n  repository: a # why\n  tag: 1.10", "i:\n  repository: a # why\n  tag: 1.10\n  digest: d"},
		"parts with digest":   {ImageRow{Path: []string{"i"}, Parts: parts("digest")}, "i: {repository: a, digest: '', tag: v1}", "i: {repository: a, digest: 'd', tag: v1}"},
		"digest at the tag":   {ImageRow{Path: []string{"i"}, Parts: parts("")}, "i:\n  repository: a\n  tag: \"1.10\" # why", "i:\n  repository: a\n  tag: \"1.10@d\" # why"},
		"new digest":          {ImageRow{Path: []string{"i"}, Parts: parts("")}, "i:\n  repository: a\n  tag: v1@old", "i:\n  repository: a\n  tag: v1@d"},
		"a tag like a number": {ImageRow{Path: []string{"i"}, Parts: parts("")}, "i:\n  repository: a\n  tag: 1.10", "i:\n  repository: a\n  tag: 1.10@d"},
	} {
		t.Run(title, func(t *testing.T) {
			const head = "apiVersion: v1\nkind: X\n"
			l, err := ReadFiles([]Input{{Data: []byte(head + tt.in + "\n")}})
			if err != nil {
				t.Fatal(err)
			}
			if err := NewImageTable(tt.row).Images(l.Objects[0])[0].Set("a:2", "d"); err != nil {
				t.Fatal(err)
			}
			got, err := l.Sources[0].Bytes()
			if diff := cmp.Diff(head+tt.want+"\n", string(got)); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

// TestEqual wants meaning compared, and not spelling.
func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"{a: 1, b: [x, 'y']}", "b:\n- \"x\"\n- y\na: 1", true},
		{"{a: 1}", "{a: '1'}", false},
		{"{a: 1}", "{a: 1, b: 2}", false},
		{"{a: 1, b: 2}", "{a: 1, c: 2}", false},
		{"[a, b]", "[b, a]", false},
		{"[a]", "a", false},
		{"null", "~", true},
	} {
		l, err := ReadFiles([]Input{{Data: []byte("apiVersion: v1\nkind: X\nspec:\n  a: " + strings.ReplaceAll(tt.a, "\n", "\n    ") + "\n  b:\n    " + strings.ReplaceAll(tt.b, "\n", "\n    ") + "\n")}})
		if err != nil {
			t.Fatal(err)
		}
		spec := l.Objects[0].Root().Get("spec")
		if got := Equal(spec.Get("a"), spec.Get("b")); got != tt.want {
			t.Errorf("%s and %s: %t", tt.a, tt.b, got)
		}
	}
	if !Equal(nil, nil) || Equal(nil, &Node{}) {
		t.Error("nil is equal to nil alone")
	}
}
