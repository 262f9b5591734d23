package digest

import (
	"errors"
	"strings"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// A State says how far an image is pinned.
type State string

// The states of an image.
const (
	// StatePinned images have a digest.
	StatePinned State = "pinned"
	// StateLocked images have none, and the lock has it.
	StateLocked State = "locked"
	// StateOpen images have none, and nobody knows it.
	StateOpen State = "open"
	// StateEdited images have the digest of another tag.
	StateEdited State = "edited"
	// StateLeftAlone images need not be pinned.
	StateLeftAlone State = "left alone"
	// StateUnusable images are none.
	StateUnusable State = "malformed"
	// StateOther is that of texts that look like images in fields that are not
	// considered.
	StateOther State = "not considered"
)

// A Found is a field that names an image.
type Found struct {
	Object *manifest.Object
	Field  string
	Line   int // in the file; 0 where that is not known
	Image  string
	State  State
	// Digest is the one that the image has, or that the lock has for it; "" for
	// none.
	Digest string
	// Reason says why, where the state alone does not.
	Reason string
}

// List gives all fields that name images, in input order, and with others those
// that look so and are not considered. It changes nothing and asks nobody.
func List(list *manifest.List, cfg Config, locks map[string]*lock.Lock, others bool) []Found {
	p := newPinner(list, cfg, locks)
	p.find()
	out := make([]Found, 0, len(p.uses))
	for _, u := range p.uses {
		f := Found{Object: u.object, Field: u.path(), Line: u.object.Line(u.field.Node), Image: u.text, Digest: u.pinned}
		p.describe(&f, u)
		out = append(out, f)
	}
	if others {
		out = append(out, otherImages(list, cfg)...)
	}
	return out
}

// otherImages gives what looks like an image and is not considered.
func otherImages(list *manifest.List, cfg Config) []Found {
	var out []Found
	table := cfg.table()
	for _, o := range list.Objects {
		if o.IsLocal() || o.IsIgnored() {
			continue
		}
		for _, n := range table.Others(o) {
			out = append(out, Found{Object: o, Field: o.Path(n), Line: o.Line(n), Image: n.Value(), State: StateOther, Reason: hintFor(o.Path(n))})
		}
	}
	return out
}

// hintFor says how a field that is not considered can be named.
func hintFor(field string) string {
	option := "the field in digests.fields"
	switch {
	case strings.Contains(field, ".args[") || strings.Contains(field, ".command["):
		option = "the flag in digests.args"
	case strings.Contains(field, ".env["):
		option = "the variable in digests.env"
	case strings.HasSuffix(field, ".repository"):
		option = "the mapping in digests.fields, with parts"
	}
	return "name " + option + ", if it is an image"
}

// describe fills in the state.
func (p *pinner) describe(f *Found, u *use) {
	held := p.locks[u.object.Package].Images[u.tag.Name()]
	var skip errSkip
	switch {
	case errors.As(u.err, &skip):
		f.State, f.Reason = StateLeftAlone, skip.Error()
	case u.err != nil:
		f.State, f.Reason = StateUnusable, u.err.Error()
	case u.edited:
		f.State, f.Reason = StateEdited, "the digest is that of another tag"
	case u.pinned != "":
		f.State = StatePinned
	case held != "":
		f.State, f.Digest = StateLocked, held
	default:
		f.State = StateOpen
	}
}
