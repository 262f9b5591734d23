package digest

import (
	"errors"
	"slices"
)

// settle says how a use is treated: it finds the rule that speaks of it, and
// what has to be found out. The error is an errSkip for what is left alone.
func (p *pinner) settle(u *use) error {
	p.recall(u)
	u.mode, u.tagForm, u.platforms = p.cfg.Mode, p.cfg.Tag, p.cfg.Platforms
	if i := slices.IndexFunc(p.rules, func(r rule) bool { return r.covers(u) }); i >= 0 {
		p.rules[i].apply(u)
	}
	switch {
	case u.field.NoTag:
		u.tagForm = "drop"
	case !u.field.Pod:
		u.tagForm = "keep" // operators read the version from the tag
	}
	if u.mode == "off" {
		return errSkip(u.text + ": is left alone, since the mode is off")
	}
	if p.opt.Resolver == nil {
		u.mode = "locked"
	}
	if u.pinned == "" {
		return p.settleBare(u)
	}
	p.settlePinned(u)
	return nil
}

// apply overrides the configuration of a use.
func (r *rule) apply(u *use) {
	// Locked opens no connection, and verify changes nothing, whatever a rule says.
	strict := u.mode == "locked" || u.mode == "verify"
	if r.Mode != "" && (!strict || r.Mode == "off" || r.Mode == "locked") {
		u.mode = r.Mode
	}
	if r.Tag != "" {
		u.tagForm = r.Tag
	}
	if len(r.Platforms) > 0 {
		u.platforms = r.Platforms
	}
}

// recall finds the tag of a digest without one, where the lock knows exactly
// one that the digest came from.
func (p *pinner) recall(u *use) {
	if u.pinned == "" || u.tagged {
		return
	}
	known := p.tags[tagsKey(u.object.Package, u.repo, u.pinned)]
	if len(known) == 1 {
		u.tag = u.tag.Tag(known[0][len(repoOf(known[0]))+1:])
		u.recalled = true
	}
}

// settleBare says what a reference without digest wants.
func (p *pinner) settleBare(u *use) error {
	switch u.mode {
	case "locked":
		u.want = wantLocked
	case "update":
		u.want = wantFresh
	case "verify":
		if p.locks[u.object.Package].Images[u.tag.Name()] == "" {
			return &Error{Class: NotPinned, Hint: "run belay hydrate with digests.mode: missing", Err: errors.New(u.text + ": is not pinned")}
		}
		u.want = wantFresh
	default:
		u.want = wantAny
	}
	return nil
}

// settlePinned says what a reference with a digest wants.
func (p *pinner) settlePinned(u *use) {
	u.edited = u.tagged && p.isEdited(u)
	switch {
	case u.mode == "verify" && !u.tagKnown():
		u.want = wantExists
	case (u.mode == "verify" || u.mode == "update") && u.tagKnown():
		u.want = wantFresh
	case u.mode == "missing" && u.edited:
		u.want = wantAny
	case u.mode == "locked" && u.edited:
		u.want = wantLocked
	}
}

// isEdited tells whether the tag was changed and the digest of the old one was
// left: the lock knows the digest by other tags alone.
func (p *pinner) isEdited(u *use) bool {
	l := p.locks[u.object.Package]
	return l.Images[u.tag.Name()] != u.pinned && len(p.tags[tagsKey(u.object.Package, u.repo, u.pinned)]) > 0
}
