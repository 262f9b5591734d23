package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/manifest"
)

func newImages(env Env) *cobra.Command {
	j := &job{env: env, offline: true}
	others := false
	cmd := &cobra.Command{
		Use:   "images PATH... | -",
		Short: "List every image, where it stands and how far it is pinned",
		Long: `Images lists every field that names an image, with its file and line, and one of
these states: pinned; locked (the lock has its digest); open; edited (it has the
digest of another tag); left alone; malformed. It changes nothing and never opens
a connection.`,
		RunE: func(*cobra.Command, []string) error { return j.images(others) },
	}
	j.flags(cmd, "text", "json")
	cmd.Flags().BoolVar(&others, "others", false, "list too what looks like an image in fields that are not considered")
	return cmd
}

// An imageLine is one image of the list.
type imageLine struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Object string `json:"object"`
	Field  string `json:"field"`
	Image  string `json:"image"`
	State  string `json:"state"`
	Digest string `json:"digest,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func (j *job) images(others bool) error {
	if err := j.readAny(); err != nil {
		return err
	}
	lines := []imageLine{}
	for _, p := range j.packs {
		for _, f := range fn.Images(p.list, p.config, others) {
			lines = append(lines, newImageLine(f))
		}
	}
	j.printer(time.Now()).findings(j.lists()...)
	if j.failed() {
		return errFindings
	}
	if j.format == "json" {
		return writeJSON(j.env.Stdout, lines)
	}
	w := tabwriter.NewWriter(j.env.Stdout, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		// A tabwriter gives its errors when it is flushed.
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s%s %s", l.State, quoted(l.Image), l.place(), l.Object, l.Field)
		if l.Reason != "" {
			_, _ = fmt.Fprintf(w, "\t%s", l.Reason)
		}
		_, _ = fmt.Fprintln(w)
	}
	return w.Flush()
}

func newImageLine(f digest.Found) imageLine {
	return imageLine{
		File: f.Object.File.Path, Line: f.Line, Object: f.Object.ID.String(), Field: f.Field,
		Image: f.Image, State: string(f.State), Digest: f.Digest, Reason: strings.TrimPrefix(f.Reason, f.Image+": "),
	}
}

func (l imageLine) place() string {
	return place(manifest.Result{Object: &manifest.Object{File: manifest.File{Path: l.File}}, Line: l.Line})
}

// quoted keeps a text in its column.
func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, "\t\n ") {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// readAny reads files, or a stream.
func (j *job) readAny() error {
	if j.stream() {
		return j.openStream()
	}
	return j.read()
}
