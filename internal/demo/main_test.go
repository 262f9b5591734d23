package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemo wants the two diffs, and a third run without changes and requests.
func TestDemo(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), &out, filepath.Join("..", "..", "examples", "quickstart")); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(out.String(), "\n## ")
	if len(parts) != 4 {
		t.Fatalf("%d runs, want 3:\n%s", len(parts)-1, out.String())
	}
	for i, wants := range [][]string{
		{"+  name: app-config-v000", "my-application:1.0.0@sha256:", "FOO: bar # read at start"},
		{"-  name: app-config-v000", "+  name: app-config-v001"},
		{"0 requests", "wrote 0 files"},
	} {
		for _, want := range wants {
			if !strings.Contains(parts[i+1], want) {
				t.Errorf("run %d lacks %q:\n%s", i+1, want, parts[i+1])
			}
		}
	}
	if strings.Contains(parts[3], "+++") {
		t.Errorf("the third run changed something:\n%s", parts[3])
	}
}
