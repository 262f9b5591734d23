package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inputs reads every YAML and JSON file below dir.
func inputs(t *testing.T, dir string) []Input {
	t.Helper()
	var out []Input
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		if err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			return err
		}
		data, err := os.ReadFile(path)
		out = append(out, Input{Path: path, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCorpus reads real manifests and writes them with no edit, and with one
// annotation for each object: the first must give the same bytes, the second
// may only add lines. BELAY_CORPUS names a folder of manifests to try besides
// the sample that is always there.
func TestCorpus(t *testing.T) {
	dirs := []string{"testdata/awkward"}
	if dir := os.Getenv("BELAY_CORPUS"); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		objects := 0
		for _, in := range inputs(t, dir) {
			objects += checkRoundTrip(t, in)
		}
		if objects == 0 {
			t.Errorf("%s: no object was read", dir)
		}
		t.Logf("%s: %d objects", dir, objects)
	}
}

func checkRoundTrip(t *testing.T, in Input) int {
	t.Helper()
	l, err := ReadFiles([]Input{in})
	if err != nil {
		t.Logf("not read: %v", err)
		return 0
	}
	s := l.Sources[0]
	same, err := s.Bytes()
	if err != nil || string(same) != string(in.Data) {
		t.Errorf("%s: changed without an edit: %v", in.Path, err)
	}
	for _, o := range l.Objects {
		o.SetAnnotation("belay.test/seen", "yes: it was")
	}
	got, err := s.Bytes()
	if err != nil {
		t.Errorf("%s: %v", in.Path, err)
		return 0
	}
	if len(l.Objects) > 0 && !hasExplicitKey(string(in.Data)) { // those are encoded again
		checkOnlyAdded(t, in.Path, string(in.Data), string(got))
	}
	checkAnnotated(t, in.Path, got, len(l.Objects))
	return len(l.Objects)
}

// checkOnlyAdded checks that every line of before is in after, in order.
// Lines with brackets do not count: there the annotation stands beside others.
func checkOnlyAdded(t *testing.T, path, before, after string) {
	t.Helper()
	rest := strings.SplitAfter(after, "\n")
	for i, line := range strings.SplitAfter(before, "\n") {
		if strings.ContainsAny(line, "{}") {
			continue
		}
		for len(rest) > 0 && !sameLine(rest[0], line) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			t.Errorf("%s:%d: line lost or changed: %q", path, i+1, line)
			return
		}
		rest = rest[1:]
	}
}

// sameLine compares lines, but for the line break that the last one may lack.
func sameLine(a, b string) bool {
	return strings.TrimSuffix(a, "\n") == strings.TrimSuffix(b, "\n")
}

// checkAnnotated reads the result and looks for the annotation.
func checkAnnotated(t *testing.T, path string, data []byte, want int) {
	t.Helper()
	l, err := ReadFiles([]Input{{Path: path, Data: data}})
	if err != nil {
		t.Errorf("reading again: %v", err)
		return
	}
	if len(l.Objects) != want {
		t.Errorf("%s: %d objects, want %d", path, len(l.Objects), want)
	}
	for _, o := range l.Objects {
		if got := o.Annotation("belay.test/seen"); got != "yes: it was" {
			t.Errorf("%s: %s: annotation is %q", path, o.ID, got)
		}
	}
}
