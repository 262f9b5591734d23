package digest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

const step = "pinning images"

// Options are what a run is given besides its configuration.
type Options struct {
	// Resolver may be nil: then, as in mode locked, what no lock holds is an
	// error.
	Resolver Resolver
	// Progress, if not nil, is told how many of the references that have to be
	// asked for are done, first that it is none. It is called from several
	// goroutines.
	Progress func(done, total int)
	// Skip, if not nil, tells which objects are left alone.
	Skip func(*manifest.Object) bool
	// Start is when the run began, from which the deadline counts; zero for now.
	Start time.Time
}

// Stats says what Pin did.
type Stats struct {
	// Images counts the fields that name an image, those left alone included.
	Images int
	// Unique counts the canonical references whose digest had to be found.
	Unique int
	// FromLock counts those of them that the lock held.
	FromLock int
	// Pins are the fields that got a digest, in input order.
	Pins []Pinned
}

// A Pinned is one field that got a digest.
type Pinned struct {
	Object   *manifest.Object
	Field    string
	From, To string
}

// Pin gives the images of all objects their digests, as cfg says. locks holds
// the lock of each package; what one holds is not asked for, and it learns what
// was. Findings are added to list.Results. Configuration of tools, and objects
// that Spinnaker was told to ignore, are left alone.
func Pin(ctx context.Context, list *manifest.List, cfg Config, locks map[string]*lock.Lock, opt Options) Stats {
	if cfg.Mode == "off" && len(cfg.Rules) == 0 {
		return Stats{}
	}
	p := newPinner(list, cfg, locks)
	p.opt = opt
	p.find()
	p.lookUp()
	p.resolve(ctx)
	p.write()
	p.tidyLocks()
	return p.stats
}

// A pinner is one run of Pin.
type pinner struct {
	list    *manifest.List
	cfg     Config
	rules   []rule
	locks   map[string]*lock.Lock
	opt     Options
	tags    map[string][]string // by package, repository and digest: the tags that the locks know it by
	uses    []*use
	answers []*answer       // in the order of their first uses
	given   map[string]bool // by package, repository and digest: what the answers say
	single  []string        // images for a single platform
	stats   Stats
}

func newPinner(list *manifest.List, cfg Config, locks map[string]*lock.Lock) *pinner {
	p := &pinner{list: list, cfg: cfg, rules: cfg.rules(), locks: locks, tags: map[string][]string{}, given: map[string]bool{}}
	for pkg, l := range locks {
		for ref, digest := range l.Images {
			key := tagsKey(pkg, repoOf(ref), digest)
			p.tags[key] = append(p.tags[key], ref)
		}
	}
	return p
}

func tagsKey(pkg, repo, digest string) string { return pkg + "\x00" + repo + "@" + digest }

// repoOf gives the repository of a canonical reference with a tag.
func repoOf(ref string) string { return ref[:max(strings.LastIndexByte(ref, ':'), 0)] }

// An answer is what is known of one canonical reference of a package.
type answer struct {
	use  *use           // the first use
	ref  name.Reference // what is asked for
	held string         // what the lock had; "" for nothing

	image  Image
	digest string
	err    error
	locked bool

	platforms bool // some are asked for

	has    []string
	hasErr error
	// told and toldMoved are set when warnings were given, once for all uses.
	told, toldMoved, toldPlatforms bool
}

// reference gives what has to be asked for.
func (u *use) reference() name.Reference {
	if u.want == wantExists {
		return u.tag.Digest(u.pinned)
	}
	return u.tag
}

// find collects the uses, and says what each wants.
func (p *pinner) find() {
	table := p.cfg.table()
	skip := patterns(p.cfg.Skip)
	for _, o := range p.list.Objects {
		if o.IsLocal() || o.IsIgnored() || p.opt.Skip != nil && p.opt.Skip(o) {
			continue
		}
		for _, f := range table.Images(o) {
			p.stats.Images++
			u := &use{object: o, field: f, text: f.Text()}
			if u.err = u.parse(skip); u.err == nil {
				u.err = p.settle(u)
			}
			p.uses = append(p.uses, u)
		}
	}
	p.agree()
}

// agree makes all who follow a tag follow it in the same run, where a rule
// updates it for one of them: the lock has but one digest for it.
func (p *pinner) agree() {
	updated := map[string]bool{}
	for _, u := range p.uses {
		if u.want == wantFresh && u.mode == "update" {
			updated[u.object.Package+"\x00"+u.tag.Name()] = true
		}
	}
	for _, u := range p.uses {
		held := p.locks[u.object.Package].Images[u.tag.Name()]
		if u.want == wantAny && (held == "" || updated[u.object.Package+"\x00"+u.tag.Name()]) {
			u.want = wantFresh
		}
	}
}

// lookUp gives each use its answer, and takes from the locks what they hold.
func (p *pinner) lookUp() {
	known := map[string]*answer{} // by package, canonical reference and want
	for _, u := range p.uses {
		if u.err != nil || u.want == wantNothing {
			continue
		}
		key := fmt.Sprintf("%s\x00%s\x00%d", u.object.Package, u.reference().Name(), u.want)
		if known[key] == nil {
			known[key] = p.lookUpAnswer(u)
			p.answers = append(p.answers, known[key])
		}
		u.answer = known[key]
		u.answer.platforms = u.answer.platforms || len(u.platforms) > 0
	}
	p.stats.Unique = len(p.answers)
}

// lookUpAnswer gives what the lock knows for a use.
func (p *pinner) lookUpAnswer(u *use) *answer {
	a := &answer{use: u, ref: u.reference(), held: p.locks[u.object.Package].Images[u.tag.Name()]}
	switch {
	case a.held != "" && !isDigest(a.held):
		a.err = &Error{Class: Malformed, Hint: "remove the line, and run belay hydrate", Err: fmt.Errorf("the lock's digest of %s is not a digest", u.tag.Name())}
	case a.held != "" && (u.want == wantLocked || u.want == wantAny):
		a.digest, a.locked = a.held, true
		p.stats.FromLock++
	case u.want == wantLocked:
		a.err = &Error{Class: NotLocked, Hint: "run belay hydrate, and commit the lock", Err: errors.New(u.unlocked())}
	}
	return a
}

func isDigest(s string) bool {
	_, err := v1.NewHash(s)
	return err == nil
}

// unlocked says what the lock lacks.
func (u *use) unlocked() string {
	if u.edited {
		return "has the digest of another tag, and its own is not in the lock"
	}
	return "is not pinned, and not in the lock"
}

// errDeadline ends a run that takes too long.
var errDeadline = errors.New("deadline")

// resolve asks for what the locks did not hold. Each registry has workers of
// its own, so that one that does not answer does not hold up the others.
func (p *pinner) resolve(ctx context.Context) {
	open := p.unresolved()
	if len(open) == 0 {
		return
	}
	if d := p.cfg.Network.Deadline; d > 0 {
		var cancel context.CancelFunc
		start := p.opt.Start
		if start.IsZero() {
			start = time.Now()
		}
		ctx, cancel = context.WithDeadlineCause(ctx, start.Add(time.Duration(d)*time.Second), errDeadline)
		defer cancel()
	}
	var done atomic.Int64
	progress := func(n int64) {
		if p.opt.Progress != nil {
			p.opt.Progress(int(done.Add(n)), len(open))
		}
	}
	progress(0)
	var registries sync.WaitGroup
	for _, queue := range byRegistry(open) {
		registries.Go(func() {
			var g errgroup.Group
			g.SetLimit(max(p.cfg.Jobs, 1))
			for _, a := range queue {
				g.Go(func() error {
					p.ask(ctx, a)
					progress(1)
					return nil // every failure is reported, none ends the others
				})
			}
			// No function of the group fails.
			_ = g.Wait()
		})
	}
	registries.Wait()
	for _, a := range open {
		p.given[tagsKey(a.use.object.Package, a.use.repo, a.digest)] = true
	}
}

// unresolved gives the answers that are still open, so that neighbours are of
// different repositories: otherwise all workers would wait for the token of one.
func (p *pinner) unresolved() []*answer {
	var out []*answer
	nth := map[string]int{}
	order := map[*answer]int{}
	for _, a := range p.answers {
		if a.digest == "" && a.err == nil {
			nth[a.use.repo]++
			order[a] = nth[a.use.repo]
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b *answer) int { return cmp.Compare(order[a], order[b]) })
	return out
}

func byRegistry(open []*answer) map[string][]*answer {
	out := map[string][]*answer{}
	for _, a := range open {
		host := a.use.tag.RegistryStr()
		out[host] = append(out[host], a)
	}
	return out
}

// ask fills in one answer.
func (p *pinner) ask(ctx context.Context, a *answer) {
	if a.err = p.ended(ctx); a.err != nil {
		return
	}
	image, err := p.opt.Resolver.Resolve(ctx, a.ref)
	if err != nil {
		a.err = cmp.Or(p.ended(ctx), err)
		return
	}
	a.image, a.digest = image, image.Digest.String()
	if a.platforms {
		a.has, a.hasErr = p.opt.Resolver.Platforms(ctx, a.use.tag.Digest(a.digest))
	}
}

// ended gives the error of a context that ended: its own, or that of the
// deadline of the configuration.
func (p *pinner) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errDeadline) {
		return &Error{Class: Network, Hint: "raise digests.network.deadline", Err: fmt.Errorf("no answer before the deadline of %d s", p.cfg.Network.Deadline)}
	}
	return ctx.Err()
}
