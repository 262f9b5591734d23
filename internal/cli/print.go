package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/manifest"
)

// What people see, on stderr: every line begins with "belay: ", in lower case
// and without a full stop, the most important first, since kpt shows four
// lines. Stdout is for manifests, lists and diffs alone.

// A printer writes the findings and the summary of a run.
type printer struct {
	env     Env
	start   time.Time
	verbose bool
	github  bool // findings as workflow commands, on stdout
}

func printLines(w io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		line = strings.TrimPrefix(line, "belay: ")
		// Nothing can be done about a stderr that cannot be written.
		_, _ = fmt.Fprintf(w, "belay: %s\n", line)
	}
}

// findings prints errors, then warnings, then notes when they are asked for.
func (p printer) findings(lists ...*manifest.List) {
	for _, severity := range []manifest.Severity{manifest.Error, manifest.Warning, manifest.Info} {
		if severity == manifest.Info && !p.verbose {
			continue
		}
		for _, l := range lists {
			for _, r := range l.Results {
				if r.Severity == severity {
					p.finding(r)
				}
			}
		}
	}
}

// finding prints one result: as a line on stderr, or for GitHub as a command
// that puts it on the line of the pull request.
// https://docs.github.com/actions/reference/workflow-commands-for-github-actions
func (p printer) finding(r manifest.Result) {
	text := strings.ReplaceAll(r.String(), "\n", " ")
	if p.github {
		_, _ = fmt.Fprintf(p.env.Stdout, "::%s%s::%s\n", githubLevel(r.Severity), githubPlace(r), githubEscape(text))
		return
	}
	lead := ""
	if r.Severity == manifest.Warning {
		lead = "warning: "
	}
	_, _ = fmt.Fprintf(p.env.Stderr, "belay: %s%s%s\n", lead, place(r), text)
}

// place gives "file:line: " as far as it is known.
func place(r manifest.Result) string {
	if r.Object == nil || r.Object.File.Path == "" {
		return ""
	}
	if r.Line > 0 {
		return fmt.Sprintf("%s:%d: ", r.Object.File.Path, r.Line)
	}
	return r.Object.File.Path + ": "
}

func githubLevel(s manifest.Severity) string {
	if s == manifest.Info {
		return "notice"
	}
	return string(s)
}

func githubPlace(r manifest.Result) string {
	if r.Object == nil || r.Object.File.Path == "" {
		return ""
	}
	return fmt.Sprintf(" file=%s,line=%d", githubEscapeProperty(r.Object.File.Path), max(r.Line, 1))
}

func githubEscape(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func githubEscapeProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubEscape(s))
}

// summary prints what was done in one line.
func (p printer) summary(reps []fn.Report, requests int, more ...string) {
	var pinned, unique, locked, versioned, versionable, references int
	for _, r := range reps {
		pinned += len(r.Digests.Pins)
		unique += r.Digests.Unique
		locked += r.Digests.FromLock
		versioned += r.Versions.Versioned
		versionable += r.Versions.Versionable
		references += r.Versions.References
	}
	parts := []string{
		fmt.Sprintf("pinned %s (%d unique, %d from the lock, %s)", count(pinned, "image"), unique, locked, count(requests, "request")),
		fmt.Sprintf("versioned %d of %d", versioned, versionable),
		"rewrote " + count(references, "reference"),
	}
	parts = append(parts, more...)
	parts = append(parts, fmt.Sprintf("%.1f s", time.Since(p.start).Seconds()))
	_, _ = fmt.Fprintf(p.env.Stderr, "belay: %s\n", strings.Join(parts, " · "))
}

// writeJSON writes a value for machines.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// count gives "1 image" or "2 images".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
