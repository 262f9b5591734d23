package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/internal/cli"
)

// section gives the lines between two markers of the README.
func section(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	part, _, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("the README has no part between %s and %s", from, to)
	}
	return part
}

// optionTable gives the README's table of options.
func optionTable() string {
	var b strings.Builder
	b.WriteString("| option | type | default | what it does |\n| --- | --- | --- | --- |\n")
	for _, o := range fn.AllOptions() {
		value := o.Default
		if value != "" {
			value = "`" + value + "`"
		}
		kind := o.Type
		if len(o.Allowed) > 0 {
			kind = strings.Join(o.Allowed, ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Path, kind, value, o.Doc)
	}
	return b.String()
}

// TestReadmeOptions keeps the table of options in step with the code.
func TestReadmeOptions(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- options -->\n", "<!-- /options -->"
	have, want := section(t, string(data), from, to), optionTable()
	if *update {
		text := strings.Replace(string(data), from+have+to, from+want+to, 1)
		if err := os.WriteFile("README.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the README's options are stale (run make golden): (-want +got)\n%s", diff)
	}
}

// TestDocumentedConfigurations reads every configuration that the documents show.
func TestDocumentedConfigurations(t *testing.T) {
	docs, err := filepath.Glob(filepath.Join("docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, doc := range append(docs, "README.md") {
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(data), "```yaml\n")[1:] {
			block, _, _ := strings.Cut(part, "```")
			if !strings.Contains(block, "kind: Belay\n") {
				continue
			}
			found++
			if _, err := fn.ParseConfigFile([]byte(block)); err != nil {
				t.Errorf("%s: %v\n%s", doc, err, block)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d configurations were found: are the fences still yaml?", found)
	}
}

// TestReadmeExample runs what the README shows.
func TestReadmeExample(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example := func(name string) string {
		return section(t, string(data), "<!-- "+name+" -->\n```yaml\n", "```")
	}
	dir := t.TempDir()
	app := filepath.Join(dir, "app.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "belay.yaml"), "apiVersion: fn.belay.dev/v1alpha1\nkind: Belay\nspec: {versions: {naming: sequence}}\n")
	text := example("in")
	for _, step := range []struct{ from, to, want string }{
		{"", "", "v000"},
		{"FOO: bar", "FOO: baz", "v001"},
		{"FOO: baz", "FOO: bar", "v000"},
	} {
		write(app, strings.Replace(text, step.from, step.to, 1))
		var stderr strings.Builder
		code := cli.Run(t.Context(), cli.Env{Stderr: &stderr, Dial: func(digest.NetworkConfig) (cli.Client, error) { return &fixedClient{}, nil }}, []string{"hydrate", dir})
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
		got, err := os.ReadFile(app)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(example(step.want), string(got)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.want, diff)
		}
		text = string(got)
	}
}
