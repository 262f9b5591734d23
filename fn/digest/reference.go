package digest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/belay-krm/belay/fn/manifest"
)

// A use is one field that names an image.
type use struct {
	object *manifest.Object
	field  manifest.ImageField
	text   string
	// base is the reference without its digest: name[:tag].
	base string
	// tag is what has to be resolved. Where no tag is written, it is latest, or
	// the one that the lock knows the digest by.
	tag name.Tag
	// pinned is the digest that the reference has; "" for none.
	pinned string
	repo   string // canonical repository
	// err is why the reference cannot be pinned, an errSkip where it need not be;
	// nil where it can.
	err error
	// tagged tells whether the author wrote a tag.
	tagged bool

	// What the configuration says of it.
	mode      string
	tagForm   string
	platforms []string

	// want is what has to be known to treat it, and answer what is known then;
	// nil where it wants nothing.
	want   want
	answer *answer
	// edited is set where the digest is that of another tag.
	edited bool
	// recalled is set where the lock gave the tag.
	recalled bool
}

// A want is what has to be found out for a use.
type want uint8

const (
	// wantNothing: the use stays as it is.
	wantNothing want = iota
	// wantLocked: the digest that the lock has for the tag.
	wantLocked
	// wantAny: the digest that the lock has for the tag, or else the registry.
	wantAny
	// wantFresh: the digest that the registry has for the tag now.
	wantFresh
	// wantExists: whether the registry still has the digest.
	wantExists
)

// tagKnown tells whether it is known of which tag a digest is.
func (u *use) tagKnown() bool { return u.tagged || u.recalled }

// segments gives the registry and the parts of the repository.
func (u *use) segments() []string {
	return append([]string{u.tag.RegistryStr()}, strings.Split(u.tag.RepositoryStr(), "/")...)
}

// errSkip marks references that are left alone.
type errSkip string

func (e errSkip) Error() string { return string(e) }

// localHosts are registries that exist in one place only.
// https://github.com/knative/serving registries-skipping-tag-resolving
var localHosts = map[string]bool{"kind.local": true, "ko.local": true, "dev.local": true}

// parse reads a reference into u. The error is an errSkip for what is no image
// to be pinned, and an *Error for what no registry could serve.
func (u *use) parse(skip []pattern) error {
	if u.text == "" || u.field.Node.IsNull() {
		return errSkip("no image is given")
	}
	if !u.field.IsString() {
		return malformed(fmt.Errorf("%s: is not a string", u.text), "put it in quotes")
	}
	if strings.TrimSpace(u.text) != u.text || strings.ContainsAny(u.text, "\n\t") {
		return malformed(fmt.Errorf("%q: white space around the image", u.text), "remove it")
	}
	if reason := placeholder(u.text); reason != "" {
		return errSkip(u.text + ": " + reason)
	}
	if err := u.parseReference(); err != nil {
		return err
	}
	switch {
	case localHosts[u.tag.RegistryStr()]:
		return errSkip(u.text + ": exists on this machine alone")
	case u.field.Pull == "Never":
		return errSkip(u.text + ": is never pulled")
	case u.field.NeedsHost && !hasHost(u.base):
		return errSkip(u.text + ": names no registry, so that another program chooses one")
	case u.field.InParts() && !u.tagged && u.pinned == "":
		return errSkip(u.text + ": has no tag, so that something else chooses one")
	}
	segments := u.segments()
	if slices.ContainsFunc(skip, func(p pattern) bool { return p.matches(segments) }) {
		return errSkip(u.text + ": is left alone by digests.skip")
	}
	return nil
}

// placeholder says why a text is not an image yet; "" for what may be one.
func placeholder(s string) string {
	switch {
	case s == "auto":
		return "is filled in by an injector"
	case strings.HasPrefix(s, "ko://"):
		return "is built by ko"
	case strings.Contains(s, "$(") || strings.Contains(s, "${") || strings.ContainsAny(s, "<>{}"):
		return "is a placeholder"
	}
	return ""
}

// parseReference reads name[:tag][@digest].
func (u *use) parseReference() error {
	base, digest, hasDigest := strings.Cut(u.text, "@")
	u.base = base
	if hasDigest {
		d, err := name.NewDigest(u.text, name.WeakValidation)
		if err != nil {
			return malformed(fmt.Errorf("%s: %w", u.text, oneLine(err)), "remove the digest, or write it as sha256: and 64 hexadecimal digits")
		}
		u.pinned, u.repo = digest, d.Context().Name()
	}
	tag, err := name.NewTag(base, name.WeakValidation)
	if err != nil || !isRepository(tag.RepositoryStr()) {
		hint := "write [registry/]repository[:tag]"
		if lower := strings.ToLower(base); lower != base {
			if _, err := name.NewTag(lower, name.WeakValidation); err == nil {
				hint = "a repository is written in lower case"
			}
		}
		return malformed(fmt.Errorf("%s: is not the name of an image", u.text), hint)
	}
	u.tag, u.repo = tag, tag.Repository.Name()
	u.tagged = strings.Contains(base[strings.LastIndex(base, "/")+1:], ":")
	return nil
}

// component is one part of the path of a repository, as containerd and the
// kubelet know it; name.NewTag lets more pass.
// https://github.com/distribution/reference/blob/main/regexp.go
var component = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$`)

func isRepository(path string) bool {
	for c := range strings.SplitSeq(path, "/") {
		if !component.MatchString(c) {
			return false
		}
	}
	return true
}

func malformed(err error, hint string) error {
	return &Error{Class: Malformed, Hint: hint, Err: err}
}

func oneLine(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
}
