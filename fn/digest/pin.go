package digest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

const step = "pinning images"

// Stats says what Pin did.
type Stats struct {
	// Images counts the fields that name an image, those left alone included.
	Images int
	// Unique counts the canonical references that had no digest.
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

// Pin appends digests to the images of all objects. locks holds the lock of
// each package; what one holds is not asked for, and it learns what was. r may
// be nil: then, as in mode locked, what no lock holds is an error.
// Findings are added to list.Results. Configuration of tools, and objects that
// Spinnaker was told to ignore, are left alone.
func Pin(ctx context.Context, list *manifest.List, cfg Config, locks map[string]*lock.Lock, r Resolver) Stats {
	if cfg.Mode == "off" {
		return Stats{}
	}
	if cfg.Mode == "locked" {
		r = nil
	}
	p := &pinner{list: list, cfg: cfg, locks: locks, resolver: r, digests: map[string]*answer{}}
	p.find()
	p.lookUp()
	p.resolve(ctx)
	p.write()
	p.tidyLocks()
	return p.stats
}

// A pinner is one run of Pin.
type pinner struct {
	list     *manifest.List
	cfg      Config
	locks    map[string]*lock.Lock
	resolver Resolver
	uses     []*use
	digests  map[string]*answer // by package and canonical reference
	stats    Stats
}

// An answer is what is known of one canonical reference of a package.
type answer struct {
	use    *use // the first use
	digest string
	err    error
	locked bool
}

func (u *use) key() string { return u.object.Package + "\x00" + u.tag.Name() }

// find collects the uses, and reports what is no image.
func (p *pinner) find() {
	skip := make([]pattern, 0, len(p.cfg.Skip))
	for _, s := range p.cfg.Skip {
		if pat, err := parsePattern(s); err == nil { // Validate reported the rest
			skip = append(skip, pat)
		}
	}
	for _, o := range p.list.Objects {
		if o.IsLocal() || o.IsIgnored() {
			continue
		}
		for _, f := range o.Images() {
			p.stats.Images++
			u := &use{object: o, node: f.Node, text: f.Node.Value()}
			err := u.parse(f.Pull, skip)
			var s errSkip
			switch {
			case errors.As(err, &s):
				p.report(u, manifest.Info, s.Error(), nil)
			default:
				u.err = err
				p.uses = append(p.uses, u)
			}
		}
	}
}

// lookUp takes from the locks what they hold.
func (p *pinner) lookUp() {
	for _, u := range p.uses {
		if u.err != nil || u.pinned != "" || p.digests[u.key()] != nil {
			continue
		}
		a := &answer{use: u}
		p.digests[u.key()] = a
		p.stats.Unique++
		held, ok := p.locks[u.object.Package].Images[u.tag.Name()]
		if !ok {
			continue
		}
		if _, err := v1.NewHash(held); err != nil {
			a.err = &Error{Class: Malformed, Hint: "remove the line, and run belay hydrate", Err: fmt.Errorf("the lock's digest of %s is not a digest", u.tag.Name())}
			continue
		}
		a.digest, a.locked = held, true
		p.stats.FromLock++
	}
}

// resolve asks for what the locks did not hold, so that neighbours in the queue
// are of different repositories: otherwise all workers would wait for the
// handshake of one.
func (p *pinner) resolve(ctx context.Context) {
	open := p.unresolved()
	if p.resolver == nil {
		for _, a := range open {
			a.err = &Error{Class: NotLocked, Hint: "run belay hydrate, and commit the lock", Err: errors.New("is not pinned, and not in the lock")}
		}
		return
	}
	var g errgroup.Group
	g.SetLimit(max(p.cfg.Jobs, 1))
	for _, a := range open {
		if ctx.Err() != nil {
			a.err = ctx.Err()
			continue
		}
		g.Go(func() error {
			h, err := p.resolver.Resolve(ctx, a.use.tag)
			if a.err = err; err == nil {
				a.digest = h.String()
			}
			return nil // every failure is reported, none ends the others
		})
	}
	// No function of the group fails.
	_ = g.Wait()
}

// unresolved gives the answers that are still open, in the order of the queue.
func (p *pinner) unresolved() []*answer {
	var out []*answer
	nth := map[string]int{}
	order := map[*answer]int{}
	for _, u := range p.uses {
		a := p.digests[u.key()]
		if a == nil || a.digest != "" || a.err != nil || order[a] != 0 {
			continue
		}
		nth[u.repo]++
		order[a] = nth[u.repo]
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b *answer) int { return cmp.Compare(order[a], order[b]) })
	return out
}

// write appends the digests, and reports what has none.
func (p *pinner) write() {
	for _, u := range p.uses {
		if u.err != nil {
			p.fail(u, u.err)
			continue
		}
		if u.pinned != "" {
			continue
		}
		a := p.digests[u.key()]
		if a.err != nil {
			p.fail(u, fmt.Errorf("%s: %w", u.text, a.err))
			continue
		}
		to := u.text + "@" + a.digest
		p.stats.Pins = append(p.stats.Pins, Pinned{u.object, u.object.Path(u.node), u.text, to})
		if u.tag.TagStr() == "latest" {
			p.warnLatest(u)
		}
		u.object.Set(u.node, to)
		if l := p.locks[u.object.Package]; !a.locked {
			if l.Images == nil {
				l.Images = map[string]string{}
			}
			l.Images[u.tag.Name()] = a.digest
		}
	}
}

// warnLatest says that a digest is pinned, but not of a release that anybody
// chose.
func (p *pinner) warnLatest(u *use) {
	what := "has no tag"
	if u.tagged {
		what = "has the tag latest"
	}
	p.report(u, manifest.Warning, u.text+": "+what+", so that the digest is of whatever is newest now (name a release)", nil)
}

// tidyLocks drops the entries of the locks that no image uses any more: neither
// by its tag, nor, where no tag is written, by its digest.
func (p *pinner) tidyLocks() {
	used := map[string]bool{}
	byDigest := map[string]bool{}
	for _, u := range p.uses {
		if u.pinned != "" && !u.tagged {
			byDigest[u.object.Package+"\x00"+u.repo+"@"+u.pinned] = true
		} else if u.err == nil {
			used[u.key()] = true
		}
	}
	for pkg, l := range p.locks {
		for ref, digest := range l.Images {
			repo := ref[:max(lastColon(ref), 0)]
			if !used[pkg+"\x00"+ref] && !byDigest[pkg+"\x00"+repo+"@"+digest] {
				delete(l.Images, ref)
			}
		}
	}
}

func lastColon(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == ':' {
			return i
		}
	}
	return -1
}

// fail reports a use that cannot be pinned.
func (p *pinner) fail(u *use, err error) {
	p.report(u, manifest.Error, err.Error(), map[string]string{"class": string(classOf(err))})
}

func (p *pinner) report(u *use, s manifest.Severity, message string, tags map[string]string) {
	p.list.Report(manifest.Result{
		Severity: s, Step: step, Object: u.object, Field: u.object.Path(u.node), Line: u.object.Line(u.node),
		Current: u.text, Message: message, Tags: tags,
	})
}
