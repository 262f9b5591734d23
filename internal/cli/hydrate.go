package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// A job is one run over files or a stream: what the flags of hydrate, check and
// diff say.
type job struct {
	env     Env
	paths   []string
	output  string // -o; "" for in place
	config  string // --config; "" for belay.yaml
	set     []string
	lock    string // --lock, for a stream
	verbose bool
	format  string
	offline bool // ask no registry
	// recordTo is the file of --record; "" for that of the configuration.
	recordTo string
	// records is set for runs that are recorded.
	records bool

	// resourceList is set when stdin held one.
	resourceList bool
	clients      *clients
	progress     *progress
	packs        []*pack
}

func (j *job) flags(cmd *cobra.Command, formats ...string) {
	cmd.Flags().StringVar(&j.config, "config", "", "configuration `FILE` to use in place of each package's belay.yaml")
	cmd.Flags().StringArrayVar(&j.set, "set", nil, "`OPTION=VALUE` in place of what the configuration says, such as digests.mode=update; may be repeated")
	cmd.Flags().StringVar(&j.lock, "lock", "", "lock `FILE` of a stream (-); files keep theirs in belay.lock.yaml")
	cmd.Flags().BoolVarP(&j.verbose, "verbose", "v", false, "print notes too: what was left alone, and why")
	cmd.Flags().StringVar(&j.format, "format", formats[0], "how to print: "+strings.Join(formats, " or "))
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(formats, j.format) {
			return usagef("--format %s: must be %s", j.format, strings.Join(formats, " or "))
		}
		j.paths = args
		if err := somePaths(cmd, args); err != nil {
			return err
		}
		if j.lock != "" && !j.stream() {
			return usagef("--lock is for a stream (-); files keep their lock in %s", lock.File)
		}
		if j.output != "" && slices.ContainsFunc(args, func(p string) bool { return isFolderOf(j.output, p) }) {
			return usagef("-o %s: is where the sources are (leave -o out to change them in place)", j.output)
		}
		if j.output != "" && j.stream() {
			return usagef("-o writes files, and a stream has none: send stdout to a file instead")
		}
		return nil
	}
}

// isFolderOf tells whether dir is a path, or the folder of a file.
func isFolderOf(dir, path string) bool {
	a, errA := os.Stat(dir)
	b, errB := os.Stat(path)
	if errA == nil && errB == nil && !b.IsDir() {
		b, errB = os.Stat(filepath.Dir(path))
	}
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func (j *job) stream() bool { return len(j.paths) == 1 && j.paths[0] == "-" }

func (j *job) printer(start time.Time) printer {
	return printer{env: j.env, start: start, verbose: j.verbose, github: j.format == "github"}
}

func newHydrate(env Env) *cobra.Command {
	j := &job{env: env, records: true}
	cmd := &cobra.Command{
		Use:   "hydrate PATH... | -",
		Short: "Pin images and version ConfigMaps and Secrets, in files or a stream",
		Long: `Hydrate rewrites the manifests below each PATH in place: only bytes that must
change do, and nothing is written unless everything succeeded. With -o the
result goes to another folder. With - a stream is read from stdin and written to
stdout.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return j.hydrate(cmd.Context()) },
	}
	j.flags(cmd, "text", "github")
	cmd.Flags().StringVarP(&j.output, "output", "o", "", "`DIR` to write to, in place of changing the files")
	cmd.Flags().StringVar(&j.recordTo, "record", "", "audit record: `FILE` to append a line of JSON to, in place of what the configuration says")
	return cmd
}

func (j *job) hydrate(ctx context.Context) error {
	start := time.Now()
	p := j.printer(start)
	if j.stream() {
		return j.hydrateStream(ctx, p)
	}
	if err := j.process(ctx); err != nil {
		return err
	}
	p.findings(j.lists()...)
	if j.failed() {
		return j.recordFailure(start)
	}
	changes, err := j.changes()
	if err == nil {
		err = writeAll(changes)
	}
	if err != nil {
		return errors.Join(err, j.record(start, true))
	}
	if err := j.record(start, false); err != nil {
		return err
	}
	j.warnStale(changes)
	p.summary(j.reports(), j.clients.Requests(), j.counts(changes)...)
	return nil
}

// processAny hydrates files or a stream in memory.
func (j *job) processAny(ctx context.Context) error {
	if j.stream() {
		return j.processStream(ctx)
	}
	return j.process(ctx)
}

// packsAtOnce is how many packages are hydrated at a time.
const packsAtOnce = 16

// process reads the packages and hydrates each in memory.
func (j *job) process(ctx context.Context) error {
	if err := j.read(); err != nil {
		return err
	}
	if err := j.openRecords(); err != nil {
		return err
	}
	for _, p := range j.packs {
		if err := j.readCommitted(ctx, p); err != nil {
			return err
		}
	}
	resolvers := make([]digest.Resolver, len(j.packs))
	for i, p := range j.packs {
		var err error
		if resolvers[i], err = j.resolver(p); err != nil {
			return err
		}
	}
	// Packages wait for registries together, not one after the other.
	var g errgroup.Group
	g.SetLimit(packsAtOnce)
	start := time.Now()
	for i, p := range j.packs {
		g.Go(func() error {
			p.report = fn.Process(ctx, p.list, p.config, fn.Options{
				Resolver: resolvers[i],
				Start:    start,
				Progress: j.progress.part(),
				Previous: j.previous(p),
				Versions: p.versions,
				Retain:   j.hasOutput(p),

				Committed: p.committed,
				LockFile:  j.lockFile(p),
				Partial:   p.partial,
				Twins:     len(p.kustomized) > 0,
			})
			p.refuseKustomized()
			return nil // what fails is in the results
		})
	}
	// No function of the group fails.
	_ = g.Wait()
	j.progress.end()
	if len(j.packs) > 0 {
		j.clients.report(j.packs[len(j.packs)-1].list)
	}
	return ctx.Err()
}

// read loads the packages and decodes their files.
func (j *job) read() error {
	j.clients = newClients(j.env)
	j.progress = newProgress(j.env)
	var config *fn.Config
	if j.config != "" {
		cfg, err := readConfigFile(j.config)
		if err != nil {
			return err
		}
		config = &cfg
	}
	var err error
	if j.packs, err = load(j.paths, config, filepath.Dir(j.config), j.output); err != nil {
		return err
	}
	var errs []error
	objects := 0
	for _, p := range j.packs {
		if p.config, err = fn.Override(p.config, j.set); err != nil {
			return usageError{err}
		}
		if p.config, err = withConfigurations(p.config, p.configDir); err != nil {
			return err
		}
		errs = append(errs, j.usePrevious(p))
		var err error
		p.list, err = manifest.ReadFiles(p.inputs)
		errs = append(errs, err, refuseBadLock(p.list))
		objects += len(p.list.Objects)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if objects == 0 {
		return fmt.Errorf("%s: no Kubernetes objects there (nothing was done)", strings.Join(j.paths, ", "))
	}
	return nil
}

// refuseBadLock refuses a file that has the name of the lock and is none: taken for
// no lock, it would be written over, and numbers given twice.
func refuseBadLock(list *manifest.List) error {
	for _, s := range list.Sources {
		if filepath.Base(s.Path) == lock.File && !slices.ContainsFunc(s.Objects(), lock.IsLock) {
			return fmt.Errorf("%s: is no lock: a ConfigMap %s with the annotation %s is expected (restore it from git, or remove it)", s.Path, lock.Name, manifest.LocalConfigAnnotation)
		}
	}
	return nil
}

// resolver gives what finds digests; nil where no registry may be asked.
func (j *job) resolver(p *pack) (digest.Resolver, error) {
	if j.offline || !asksRegistries(p.config.Digests) {
		return nil, nil
	}
	c, err := j.clients.of(p.config.Digests, p.configDir)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// asksRegistries tells whether a configuration can open a connection at all.
func asksRegistries(c digest.Config) bool {
	return c.Mode != "locked" && (c.Mode != "off" || len(c.Rules) > 0)
}

func (j *job) lockFile(p *pack) string { return filepath.Join(p.dir, lock.File) }

func (j *job) lists() []*manifest.List {
	var out []*manifest.List
	for _, p := range j.packs {
		out = append(out, p.list)
	}
	return out
}

func (j *job) reports() []fn.Report {
	var out []fn.Report
	for _, p := range j.packs {
		out = append(out, p.report)
	}
	return out
}

func (j *job) failed() bool {
	return slices.ContainsFunc(j.packs, func(p *pack) bool { return p.list.Failed() })
}

// target gives the place of a file in the output folder.
func (j *job) target(p *pack, path string) string {
	if j.output == "" {
		return path
	}
	rel, err := filepath.Rel(p.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		rel = filepath.Base(path)
	}
	return filepath.Join(j.output, rel)
}

// changes gives the files to write: in place those that changed, elsewhere all
// that hold objects to deploy, and the lock; and those to remove.
func (j *job) changes() ([]change, error) {
	var out []change
	seen := map[string]string{}
	for _, p := range j.packs {
		for _, s := range p.list.Sources {
			if j.output == "" && !s.Changed() || s.Skipped != "" {
				continue
			}
			c, err := j.change(p, s)
			if err != nil {
				return nil, err
			}
			if other, ok := seen[c.path]; ok {
				return nil, usagef("%s and %s would both be written to %s (hydrate one after the other, to folders of their own)", other, s.Path, c.path)
			}
			seen[c.path] = s.Path
			if j.output == "" || !sameFile(c) {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// change gives what becomes of a file.
func (j *job) change(p *pack, s *manifest.Source) (change, error) {
	c := change{path: j.target(p, s.Path), root: p.root, remove: s.Removed()}
	if j.output != "" {
		c.root = j.output
	}
	if c.remove {
		return c, nil
	}
	var err error
	if c.data, err = s.Bytes(); err != nil {
		return c, fmt.Errorf("%s: %w", s.Path, err)
	}
	if s.New && isThere(c.path) && !sameFile(c) {
		return c, fmt.Errorf("%s: is there already, and is not what belongs there (move it out of the way)", c.path)
	}
	if info, err := os.Stat(cmp.Or(s.Origin, s.Path)); err == nil {
		c.mode = info.Mode().Perm() // manifests may hold Secrets
	}
	return c, nil
}

// sameFile tells whether the file is there already as it would be written, or
// gone as it should be.
func sameFile(c change) bool {
	have, err := os.ReadFile(c.path)
	if c.remove {
		return errors.Is(err, os.ErrNotExist)
	}
	return err == nil && bytes.Equal(have, c.data)
}

// counts gives the parts of the summary that are about files.
func (j *job) counts(changes []change) []string {
	var out []string
	written, removed := 0, 0
	for _, c := range changes {
		if c.remove {
			removed++
		} else {
			written++
		}
	}
	notes, templates, others := 0, 0, 0
	for _, p := range j.packs {
		for _, r := range p.list.Results {
			if r.Severity == manifest.Info {
				notes++
			}
		}
		for _, s := range p.list.Sources {
			switch s.Skipped {
			case manifest.IsTemplate:
				templates++
			case manifest.NotKubernetes:
				others++
			}
		}
	}
	out = append(out, "wrote "+count(written, "file"))
	if removed > 0 {
		out = append(out, "removed "+count(removed, "file"))
	}
	if templates+others > 0 {
		out = append(out, fmt.Sprintf("left alone %s", count(templates+others, "other file")))
	}
	if notes > 0 && !j.verbose {
		out = append(out, count(notes, "note")+" (-v)")
	}
	return out
}

// warnStale names the manifests in the output folder that this run did not
// write: left there, they would be deployed.
func (j *job) warnStale(changes []change) {
	if j.output == "" {
		return
	}
	written := map[string]bool{}
	for _, p := range j.packs {
		for _, s := range p.list.Sources {
			written[j.target(p, s.Path)] = true
		}
	}
	err := filepath.WalkDir(j.output, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ext := filepath.Ext(path); (ext == ".yaml" || ext == ".yml" || ext == ".json") && !written[path] {
			_, _ = fmt.Fprintf(j.env.Stderr, "belay: warning: %s: is in the output folder, but has no source any more (delete it unless it belongs there)\n", path)
		}
		return nil
	})
	if err != nil && len(changes) > 0 {
		printLines(j.env.Stderr, plain(err))
	}
}

// refuseKustomized reports objects that would be renamed in a folder that is a
// source for kustomize: overlays would lose what they patch.
func (p *pack) refuseKustomized() {
	for _, r := range p.report.Versions.Renames {
		dir := filepath.Dir(r.Object.File.Path)
		i := slices.IndexFunc(p.kustomized, func(k string) bool {
			rel, err := filepath.Rel(k, dir)
			return err == nil && filepath.IsLocal(rel)
		})
		if i < 0 {
			continue
		}
		why := "whose overlays would no longer find this name"
		if r.Object.IsSource() {
			why = "which leaves out what is not deployed itself"
		}
		p.list.Report(manifest.Result{
			Severity: manifest.Error, Step: "versioning", Object: r.Object,
			Message: fmt.Sprintf("%s is a source for kustomize, "+why+" (hydrate what it builds: kustomize build %s | belay hydrate -; or set versions.naming: off to pin images alone)", p.kustomized[i], p.kustomized[i]),
		})
	}
}
