package digest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/belay-krm/belay/fn/manifest"
)

// write gives the uses their digests, and reports what was found. Nothing is
// written for a use that failed.
func (p *pinner) write() {
	for _, u := range p.uses {
		var skip errSkip
		switch {
		case errors.As(u.err, &skip):
			p.report(u, manifest.Info, skip.Error(), nil)
		case u.err != nil:
			p.fail(u, u.err)
		case u.want == wantNothing:
			p.leave(u)
		case u.answer.err != nil:
			p.fail(u, fmt.Errorf("%s: %w", u.text, u.answer.err))
		default:
			p.settleAnswer(u, u.answer)
		}
	}
	p.warnSingle()
}

// warnSingle says in one line which images nodes of another platform cannot
// run: where a team builds for one, that is all of them.
func (p *pinner) warnSingle() {
	if len(p.single) == 0 {
		return
	}
	which := p.single[0] + " is"
	if n := len(p.single) - 1; n > 0 {
		which = fmt.Sprintf("%s and %d more are", p.single[0], n)
	}
	p.list.Report(manifest.Result{Severity: manifest.Warning, Step: step, Message: which + " built for a single platform, which nodes of another cannot run"})
}

// leave treats a reference whose digest stays. Its tag is dropped only where
// the lock remembers it.
func (p *pinner) leave(u *use) {
	p.learnAlias(u)
	switch {
	case u.mode == "update":
		p.report(u, manifest.Info, u.text+": has no tag that could be resolved again", nil)
	case u.tagForm == "drop" && u.tagged && p.locks[u.object.Package].Images[u.tag.Name()] == u.pinned:
		p.set(u, u.pinned)
	case u.tagForm == "drop" && u.tagged:
		p.report(u, manifest.Info, u.text+": keeps its tag, since the lock does not know it (digests.mode: update asks for it)", nil)
	}
}

// learnAlias notes that a tag has a digest that a registry gave for another tag
// in this run: the author says so, and without the note the next run would take
// it for the digest of a tag that was edited.
func (p *pinner) learnAlias(u *use) {
	l := p.locks[u.object.Package]
	if u.tagged && l.Images[u.tag.Name()] == "" && p.given[tagsKey(u.object.Package, u.repo, u.pinned)] {
		p.learn(u, u.pinned)
	}
}

// learn notes in the lock what digest a tag has.
func (p *pinner) learn(u *use, digest string) {
	l := p.locks[u.object.Package]
	if l.Images == nil {
		l.Images = map[string]string{}
	}
	l.Images[u.tag.Name()] = digest
}

// settleAnswer treats a use whose answer is known.
func (p *pinner) settleAnswer(u *use, a *answer) {
	before := u.pinned
	if before == "" {
		before = a.held
	}
	moved := before != "" && before != a.digest
	p.warn(u, a, moved)
	if u.mode == "verify" {
		if moved {
			p.fail(u, &Error{Class: Moved, Hint: "run belay hydrate with digests.mode: update, and review what changed", Err: fmt.Errorf("%s: the tag %s has moved from %s to %s", u.text, u.tag.TagStr(), before, a.digest)})
		}
		return
	}
	switch {
	case moved && u.edited:
		p.report(u, manifest.Warning, fmt.Sprintf("%s: had the digest of another tag, and gets that of %s: %s → %s", u.text, u.tag.TagStr(), before, a.digest), nil)
	case moved && u.want == wantFresh && !a.toldMoved:
		a.toldMoved = true
		p.report(u, manifest.Warning, fmt.Sprintf("%s: the tag %s has moved: %s → %s", u.text, u.tag.TagStr(), before, a.digest), map[string]string{"class": string(Moved)})
	}
	p.set(u, a.digest)
	if !a.locked {
		p.learn(u, a.digest)
	}
}

// set writes a digest, if that changes anything.
func (p *pinner) set(u *use, digest string) {
	base := u.base
	if u.tagForm == "drop" && u.tagged {
		base = base[:strings.LastIndex(base, ":")]
	}
	to := base + "@" + digest
	if to == u.text {
		return
	}
	if u.pinned == "" && u.tag.TagStr() == "latest" {
		p.warnLatest(u)
	}
	if err := u.field.Set(base, digest); err != nil {
		p.fail(u, malformed(fmt.Errorf("%s: %w", u.text, err), "write the parts as strings"))
		return
	}
	p.stats.Pins = append(p.stats.Pins, Pinned{u.object, u.path(), u.text, to})
}

func (u *use) path() string { return u.object.Path(u.field.Node) }

// warnLatest says that a digest is pinned, but not of a release that anybody
// chose.
func (p *pinner) warnLatest(u *use) {
	what := "has no tag"
	if u.tagged {
		what = "has the tag latest"
	}
	p.report(u, manifest.Warning, u.text+": "+what+", so that the digest is of whatever is newest now (name a release)", nil)
}

// warn says what is wrong with an image that a registry has just answered for,
// at its first use.
func (p *pinner) warn(u *use, a *answer, moved bool) {
	if missing := missingPlatforms(u.platforms, a.has); len(missing) > 0 && a.hasErr == nil && len(a.has) > 0 && !a.toldPlatforms {
		a.toldPlatforms = true
		p.report(u, manifest.Warning, fmt.Sprintf("%s: has no %s (it has %s)", u.text, strings.Join(missing, ", "), strings.Join(a.has, ", ")), nil)
	}
	if a.told || a.locked {
		return
	}
	a.told = true
	if a.hasErr != nil {
		p.report(u, manifest.Warning, fmt.Sprintf("%s: its platforms are not known: %v", u.text, a.hasErr), nil)
	}
	switch {
	case a.image.MediaType == types.DockerManifestSchema1 || a.image.MediaType == types.DockerManifestSchema1Signed:
		p.report(u, manifest.Warning, u.text+": is in the old format schema 1, which containerd 2.1 no longer pulls (push it again)", nil)
	case a.image.MediaType.IsImage() && (u.pinned == "" || moved):
		p.report(u, manifest.Info, u.text+": is built for a single platform", nil)
		p.single = append(p.single, u.text)
	}
}

// missingPlatforms gives those that were asked for and are not there. A variant
// counts only where it was asked for.
func missingPlatforms(want, have []string) []string {
	var out []string
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || h == w || strings.HasPrefix(h, w+"/")
		}
		if !found {
			out = append(out, w)
		}
	}
	return out
}

// tidyLocks drops the entries of the locks that no image uses any more: neither
// by its tag, nor, where no tag is written, by its digest.
func (p *pinner) tidyLocks() {
	used := map[string]bool{}
	byDigest := map[string]bool{}
	for _, u := range p.uses {
		switch {
		case u.pinned != "" && !u.tagKnown():
			byDigest[tagsKey(u.object.Package, u.repo, u.pinned)] = true
		case u.repo != "":
			used[u.object.Package+"\x00"+u.tag.Name()] = true
		}
	}
	for pkg, l := range p.locks {
		for ref, digest := range l.Images {
			if !used[pkg+"\x00"+ref] && !byDigest[tagsKey(pkg, repoOf(ref), digest)] {
				delete(l.Images, ref)
			}
		}
	}
}

// fail reports a use that cannot be pinned.
func (p *pinner) fail(u *use, err error) {
	p.report(u, manifest.Error, err.Error(), map[string]string{"class": string(classOf(err))})
}

func (p *pinner) report(u *use, s manifest.Severity, message string, tags map[string]string) {
	p.list.Report(manifest.Result{
		Severity: s, Step: step, Object: u.object, Field: u.path(), Line: u.object.Line(u.field.Node),
		Current: u.text, Message: message, Tags: tags,
	})
}
