package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-krm/belay/fn/strategy"
)

// TestSpinnakerPage keeps docs/spinnaker.md in step with the annotations that the
// code knows, and wants the scripts that it names to be there.
func TestSpinnakerPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "spinnaker.md"))
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+\\.spinnaker\\.io/[a-z-]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		named = append(named, m[1])
	}
	slices.Sort(named)
	if diff := cmp.Diff(strategy.Known(), named); diff != "" {
		t.Errorf("annotations (-code +page)\n%s", diff)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], " ---") || strings.TrimSpace(cells[len(cells)-2]) == "shown in" {
			continue
		}
		rows++
		script := strings.TrimSpace(cells[len(cells)-2])
		if _, err := os.Stat(filepath.Join("testdata", "golden", script+".txtar")); err != nil {
			t.Errorf("%s: there is no script %q", strings.TrimSpace(cells[1]), script)
		}
	}
	if rows < 25 {
		t.Errorf("only %d rows were read", rows)
	}
}
