package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn/manifest"
)

func newDiff(env Env) *cobra.Command {
	j := &job{env: env}
	cmd := &cobra.Command{
		Use:   "diff PATH... | -",
		Short: "Say what a hydrate would change, as a person reads it",
		Long: `Diff prints which images would be pinned, which versions would be made and which
workloads would roll, and writes nothing. It asks registries as hydrate does.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return j.diff(cmd.Context()) },
	}
	j.flags(cmd, "text", "markdown", "json")
	return cmd
}

// A review is what a hydrate would change.
type review struct {
	Images     []reviewLine `json:"images"`
	Versions   []reviewLine `json:"versions"`
	References []reviewLine `json:"references"`
	// Dropped are versions that no rollback needs any more.
	Dropped []reviewLine `json:"dropped"`
	// Files are what would be written or removed, and how.
	Files []reviewFile `json:"files"`
	// Rolls are the workloads whose pods would be replaced.
	Rolls []reviewLine `json:"rolls"`
}

// A reviewFile is a file that would be new, changed or removed.
type reviewFile struct {
	File   string `json:"file"`
	Change string `json:"change"`
}

// A reviewLine is one change. It names objects and never holds their data.
type reviewLine struct {
	File   string `json:"file,omitempty"`
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
}

func (j *job) diff(ctx context.Context) error {
	p := j.printer(time.Now())
	if err := j.processAny(ctx); err != nil {
		return err
	}
	p.findings(j.lists()...)
	if j.failed() {
		return errFindings
	}
	rev := review{Images: []reviewLine{}, Versions: []reviewLine{}, References: []reviewLine{}, Dropped: []reviewLine{}, Files: []reviewFile{}, Rolls: []reviewLine{}}
	for _, pk := range j.packs {
		rev.add(pk, templateEdited)
	}
	switch j.format {
	case "json":
		return writeJSON(j.env.Stdout, rev)
	case "markdown":
		return rev.markdown(j.env.Stdout)
	}
	return rev.text(j.env.Stdout)
}

// add takes in what would change in a package. newTemplate tells whether the pod
// template of an object is another than before.
func (r *review) add(p *pack, newTemplate func(*manifest.Object) bool) {
	for _, x := range p.report.Digests.Pins {
		r.Images = append(r.Images, reviewLine{x.Object.File.Path, x.Object.ID.String(), x.Field, x.From, x.To})
	}
	for _, x := range p.report.Versions.Renames {
		r.Versions = append(r.Versions, reviewLine{x.Object.File.Path, x.Object.ID.String(), "", x.From, x.To})
	}
	for _, x := range p.report.Versions.Rewrites {
		r.References = append(r.References, reviewLine{x.Object.File.Path, x.Object.ID.String(), x.Field, x.From, x.To})
	}
	for _, o := range p.report.Versions.Dropped {
		r.Dropped = append(r.Dropped, reviewLine{File: o.File.Path, Object: o.ID.String()})
	}
	for _, s := range p.list.Sources {
		switch {
		case s.Removed():
			r.Files = append(r.Files, reviewFile{s.Path, "removed"})
		case s.New:
			r.Files = append(r.Files, reviewFile{s.Path, "new"})
		case s.Changed():
			r.Files = append(r.Files, reviewFile{s.Path, "changed"})
		}
	}
	for _, o := range p.list.Objects {
		if isRolled(o) && newTemplate(o) {
			r.Rolls = append(r.Rolls, reviewLine{File: o.File.Path, Object: o.ID.String()})
		}
	}
}

// isRolled tells whether o is a workload whose controller replaces pods when
// their template changes.
// https://kubernetes.io/docs/concepts/workloads/controllers/
func isRolled(o *manifest.Object) bool {
	switch o.ID.Kind {
	case "Deployment", "DaemonSet", "StatefulSet", "Rollout":
		return true
	}
	return false
}

// templateEdited tells whether this run edits a pod template.
func templateEdited(o *manifest.Object) bool { return o.ChangedBelow("spec", "template") }

func (r *review) text(w io.Writer) error {
	var b strings.Builder
	section(&b, "images", r.Images)
	section(&b, "versions", r.Versions)
	section(&b, "references", r.References)
	section(&b, "versions that go", r.Dropped)
	if len(r.Files) > 0 {
		b.WriteString("files:\n")
	}
	for _, f := range r.Files {
		fmt.Fprintf(&b, "  %s: %s\n", f.File, f.Change)
	}
	section(&b, "workloads that will roll", r.Rolls)
	if b.Len() == 0 {
		b.WriteString("nothing would change\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func section(b *strings.Builder, title string, lines []reviewLine) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "  %s", l.Object)
		if l.Field != "" {
			fmt.Fprintf(b, " %s", l.Field)
		}
		if l.To != "" {
			fmt.Fprintf(b, ": %s -> %s", l.From, l.To)
		}
		b.WriteString("\n")
	}
}

func (r *review) markdown(w io.Writer) error {
	var b strings.Builder
	table(&b, "Images", r.Images)
	table(&b, "Versions", r.Versions)
	table(&b, "References", r.References)
	bullets(&b, "Versions that go", r.Dropped)
	bullets(&b, "Workloads that will roll", r.Rolls)
	var files []reviewLine
	for _, f := range r.Files {
		files = append(files, reviewLine{Object: f.File + ": " + f.Change})
	}
	bullets(&b, "Files", files)
	if b.Len() == 0 {
		b.WriteString("Nothing would change.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func table(b *strings.Builder, title string, lines []reviewLine) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "### %s\n\n| object | field | old | new |\n| --- | --- | --- | --- |\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "| %s | %s | `%s` | `%s` |\n", cell(l.Object), cell(l.Field), cell(l.From), cell(l.To))
	}
	b.WriteString("\n")
}

func bullets(b *strings.Builder, title string, lines []reviewLine) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "### %s\n\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", l.Object)
	}
	b.WriteString("\n")
}

// cell keeps text inside of its cell.
func cell(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ", "`", "'").Replace(s) }
