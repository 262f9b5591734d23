package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

func newCheck(env Env) *cobra.Command {
	j := &job{env: env, offline: true}
	cmd := &cobra.Command{
		Use:   "check PATH... | -",
		Short: "Say what is not pinned, not versioned or stale; exit 1 if anything is",
		Long: `Check lists what a hydrate would change, and exits 1 when there is anything. It
never writes and never opens a connection, so that it can run on every commit
and on what a build rendered.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return j.check(cmd.Context()) },
	}
	j.flags(cmd, "text", "github")
	return cmd
}

func (j *job) check(ctx context.Context) error {
	p := j.printer(time.Now())
	if err := j.processAny(ctx); err != nil {
		return err
	}
	findings := 0
	for _, pk := range j.packs {
		for _, r := range pk.stale() {
			p.line(r)
			findings++
		}
	}
	p.notes(j.lists()...)
	if findings > 0 {
		_, _ = fmt.Fprintf(j.env.Stderr, "belay: %s (run belay hydrate, and commit what it writes)\n", count(findings, "finding"))
		return errFindings
	}
	_, _ = fmt.Fprintf(j.env.Stderr, "belay: %s checked: everything is fast\n", count(j.objects(), "object"))
	return nil
}

func (j *job) objects() int {
	n := 0
	for _, l := range j.lists() {
		n += len(l.Objects)
	}
	return n
}

// line prints a finding on stdout, which is what check is for.
func (p printer) line(r manifest.Result) {
	if p.github {
		p.finding(r)
		return
	}
	_, _ = fmt.Fprintf(p.env.Stdout, "%s%s\n", place(r), r)
}

// notes prints what is neither an error nor a change.
func (p printer) notes(lists ...*manifest.List) {
	for _, l := range lists {
		for _, r := range l.Results {
			if r.Severity == manifest.Warning || r.Severity == manifest.Info && p.verbose {
				p.finding(r)
			}
		}
	}
}

// stale gives all that is not as a hydrate would leave it, as errors: what
// failed, and what would be changed.
func (p *pack) stale() []manifest.Result {
	var out []manifest.Result
	told := map[*manifest.Object]bool{}
	add := func(step string, o *manifest.Object, field, message string) {
		told[o] = true
		out = append(out, manifest.Result{Severity: manifest.Error, Step: step, Object: o, Field: field, Line: lineOf(o, field), Message: message})
	}
	for _, r := range p.list.Results {
		if r.Severity == manifest.Error {
			out = append(out, r)
			told[r.Object] = true
		}
	}
	for _, pin := range p.report.Digests.Pins {
		add("pinning images", pin.Object, pin.Field, pin.From+" is not pinned (the lock has its digest)")
	}
	for _, r := range p.report.Versions.Renames {
		add("versioning", r.Object, "", fmt.Sprintf("is not versioned by its content (its name would be %s)", r.To))
	}
	for _, r := range p.report.Versions.Rewrites {
		add("versioning", r.Object, r.Field, fmt.Sprintf("%s would become %s", r.From, r.To))
	}
	for _, s := range p.list.Sources {
		for _, o := range s.Objects() {
			told[o] = told[o] || s.New // the file is missing
		}
	}
	for _, o := range p.list.Objects {
		switch {
		case !o.Changed() || told[o]:
		case lock.IsLock(o):
			add("hydrating", o, "", "is stale: a hydrate would change it (images, versions or pod templates are others than it remembers)")
		default:
			add("hydrating", o, "", "is stale: a hydrate would change it")
		}
	}
	for _, o := range p.report.Versions.Dropped {
		add("versioning", o, "", "is not needed any more: a hydrate would remove it")
	}
	for _, s := range p.list.Sources {
		if s.New {
			out = append(out, manifest.Result{Severity: manifest.Error, Step: "hydrating", Message: s.Path + " is missing: a hydrate would write it"})
		}
	}
	return out
}

// lineOf gives the line of a field; 0 where it is not known.
func lineOf(o *manifest.Object, field string) int { return o.Line(o.Find(field)) }
