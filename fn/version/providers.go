package version

import (
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// provides finds the name of the Secret that a controller makes of an object:
// then references to that Secret follow the versions of the object.
func (s *subject) provides(o *manifest.Object) {
	switch {
	case o.ID.Group() == "bitnami.com" && o.ID.Kind == "SealedSecret":
		// The Secret is called as the object, whatever the template says.
		// https://github.com/bitnami-labs/sealed-secrets/blob/main/pkg/apis/sealedsecrets/v1alpha1/sealedsecret_expansion.go
		s.secretAt = []string{"spec", "template", "metadata", "name"}
	case o.ID.Group() == "external-secrets.io" && o.ID.Kind == "ExternalSecret":
		// https://external-secrets.io/latest/api/externalsecret/
		s.secretAt = []string{"spec", "target", "name"}
	default:
		return
	}
	s.secret = s.base.Name
	if own := o.Root().Lookup(s.secretAt...).Value(); own != "" && o.ID.Kind == "ExternalSecret" {
		s.secret = strings.TrimSuffix(own, "-"+s.label)
	}
}

// Provides gives the name of the Secret that a controller makes of an object; ""
// for other objects.
func Provides(o *manifest.Object) string {
	s := subject{}
	if s.provides(o); s.secretAt == nil {
		return ""
	}
	if own := o.Root().Lookup(s.secretAt...).Value(); own != "" && o.ID.Kind == "ExternalSecret" {
		return own
	}
	return o.ID.Name
}

// joins tells whether somebody else makes the Secret that an object speaks of.
// https://external-secrets.io/latest/guides/ownership-deletion-policy/
func joins(o *manifest.Object) bool {
	policy := o.Root().Lookup("spec", "target", "creationPolicy").Value()
	return o.ID.Kind == "ExternalSecret" && o.ID.Group() == "external-secrets.io" && (policy == "Merge" || policy == "None")
}

// isWide tells whether a sealed Secret may get another name.
// https://github.com/bitnami-labs/sealed-secrets#scopes
func isWide(o *manifest.Object) bool {
	return o.Annotation("sealedsecrets.bitnami.com/namespace-wide") == "true" || o.Annotation("sealedsecrets.bitnami.com/cluster-wide") == "true"
}

// nameFor gives the name that a reference to a subject gets: its own, or that of
// the Secret that is made of it.
func (s *subject) nameFor(ref manifest.Reference) string {
	if s.name == "" || s.secret == "" || ref.Kind != "Secret" || ref.Group != "" {
		return s.name
	}
	return s.secret + strings.TrimPrefix(s.name, s.base.Name)
}

// renameSecret gives the Secret that is made of a subject its versioned name,
// where a field says it; otherwise it is called as the object.
func (r *renamer) renameSecret(s *subject) {
	n := s.version.Root().Lookup(s.secretAt...)
	if s.secret == "" || n.Value() == "" || n.Value() != s.secret && n.Value() != s.secret+"-"+s.label {
		return
	}
	if name := s.secret + strings.TrimPrefix(s.name, s.base.Name); name != n.Value() {
		s.version.Set(n, name)
	}
}
