package digest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/belay-krm/belay/fn/manifest"
)

// A Config says which images are pinned, and how. Its zero value is not valid;
// fn.ParseConfig gives the defaults.
type Config struct {
	// Mode is what happens to an image that no rule speaks of.
	Mode string `json:"mode" enum:"missing,update,verify,locked,off" default:"missing" doc:"missing: resolve what has no digest; update: resolve again what has a tag; verify: change no image, and fail where a tag has moved or a digest is gone; locked: take digests from the lock alone, and open no connection; off: leave images alone"`
	// Tag is keep or drop.
	Tag string `json:"tag" enum:"keep,drop" default:"keep" doc:"keep: nginx:1.27 becomes nginx:1.27@sha256:…; drop: it becomes nginx@sha256:…, so that a new tag of the same content rolls nothing (in containers and image volumes alone: operators read tags)"`
	// Platforms are os/arch or os/arch/variant.
	Platforms []string `json:"platforms" doc:"platforms that an image should have, such as linux/amd64: a warning names those that are missing; costs a GET for each image when it is resolved"`
	// Jobs is how many references are resolved at a time in one registry.
	Jobs int `json:"jobs" default:"16" min:"1" max:"256" doc:"how many images of one registry are resolved at a time"`
	// Skip are patterns of repositories that are left alone.
	Skip []string `json:"skip" doc:"repositories to leave alone: patterns of registry and path, such as registry:5000/team/** (* is one segment, ** any number)"`
	// Rules say otherwise for some images; the first that matches counts.
	Rules []Rule `json:"rules" doc:"exceptions from mode, tag and platforms for some images; the first rule that matches counts"`
	// Fields are image fields that belay does not know.
	Fields []Field `json:"fields" doc:"more fields that name images, in the syntax of a fieldSpec of kustomize"`
	// Env are patterns of names.
	Env []string `json:"env" doc:"names of environment variables that hold images, such as RELATED_IMAGE_*"`
	// Args are flags.
	Args []string `json:"args" doc:"flags of containers whose values are images, such as --prometheus-config-reloader"`
	// Network says how registries are reached.
	Network NetworkConfig `json:"network"`
}

// A Rule says how some images are treated. What it leaves empty is as in
// [Config].
type Rule struct {
	Images    []string `json:"images" doc:"patterns of repositories, as in digests.skip; any when absent"`
	Tags      []string `json:"tags" doc:"patterns of tags, such as main or v*; any when absent"`
	Kinds     []string `json:"kinds" doc:"kinds of objects; any when absent"`
	Labels    string   `json:"labels" doc:"label selector of objects, such as app=web,tier!=test; any when absent"`
	Mode      string   `json:"mode" enum:"missing,update,verify,locked,off" doc:"as digests.mode"`
	Tag       string   `json:"tag" enum:"keep,drop" doc:"as digests.tag"`
	Platforms []string `json:"platforms" doc:"as digests.platforms"`
}

// A Field is a field that names an image.
// https://kubectl.docs.kubernetes.io/references/kustomize/builtins/#field-spec
type Field struct {
	Group   string `json:"group" doc:"API group; any when absent"`
	Version string `json:"version" doc:"API version; any when absent"`
	Kind    string `json:"kind" doc:"kind; any when absent"`
	Labels  string `json:"labels" doc:"label selector of objects; any when absent"`
	Path    string `json:"path" doc:"keys from the root of the object, such as spec/template/spec/image; lists are entered, * is any key, ** any number of them, and a slash in a key is written \\/"`
	Create  bool   `json:"create" doc:"false: belay makes no image field"`
	// Parts is nil for a reference in one piece.
	Parts *Parts `json:"parts"`
}

// Parts name the keys of a reference in parts, as the values of Helm charts
// have it.
type Parts struct {
	Registry   string `json:"registry" default:"registry" doc:"key of the registry, which need not be there"`
	Repository string `json:"repository" default:"repository" doc:"key of the repository"`
	Tag        string `json:"tag" default:"tag" doc:"key of the tag"`
	Digest     string `json:"digest" default:"digest" doc:"key of the digest, which is made; empty to append digests to the tag"`
}

// A NetworkConfig says how registries are reached.
type NetworkConfig struct {
	Allow      []string   `json:"allow" doc:"hosts that may be contacted at all, such as registry:5000 or *.example.com; any when absent (docker.io stands for all hosts of Docker Hub; link-local addresses must be named)"`
	Timeout    int        `json:"timeout" default:"10" min:"1" max:"600" doc:"seconds that one request may take"`
	Deadline   int        `json:"deadline" default:"300" min:"1" max:"86400" doc:"seconds that all requests together may take"`
	Registries []Registry `json:"registries" doc:"how single registries are reached"`
}

// A Registry says how one registry is reached.
type Registry struct {
	Host       string `json:"host" doc:"host, with port if it has one, such as registry:5000 or docker.io"`
	CA         string `json:"ca" doc:"authorities to trust besides those of the system: the path of a PEM file, or its text"`
	Cert       string `json:"cert" doc:"client certificate: the path of a PEM file, or its text"`
	Key        string `json:"key" doc:"key of the client certificate: the path of a PEM file"`
	PlainHTTP  bool   `json:"plainHTTP" default:"false" doc:"speak HTTP without TLS"`
	SkipVerify bool   `json:"skipVerify" default:"false" doc:"trust any certificate"`
	Mirror     string `json:"mirror" doc:"where its images are looked up: host, or host/path, such as harbor.example.com/dockerhub; manifests keep the name of the author"`
	ResolveAt  string `json:"resolveAt" enum:"mirror,source,compare" default:"mirror" doc:"mirror: ask the mirror; source: ask the registry itself; compare: ask both, take the answer of the registry, and warn where they differ"`
}

// Validate checks what the reader of configurations cannot: patterns, selectors
// and hosts.
func (c Config) Validate() error {
	var v validator
	v.patterns("digests.skip", c.Skip)
	v.platforms("digests.platforms", c.Platforms)
	for i, r := range c.Rules {
		at := fmt.Sprintf("digests.rules[%d]", i)
		v.patterns(at+".images", r.Images)
		v.globs(at+".tags", r.Tags)
		v.labels(at+".labels", r.Labels)
		v.platforms(at+".platforms", r.Platforms)
		if r.Mode == "" && r.Tag == "" && len(r.Platforms) == 0 {
			v.fail(at, "says nothing: give it a mode, tag or platforms")
		}
	}
	for i, f := range c.Fields {
		v.field(fmt.Sprintf("digests.fields[%d]", i), f)
	}
	v.globs("digests.env", c.Env)
	for i, a := range c.Args {
		if !strings.HasPrefix(a, "-") || strings.ContainsAny(strings.TrimSuffix(a, "="), "= ") {
			v.fail(fmt.Sprintf("digests.args[%d]", i), "%q: must be a flag such as --reloader-image", a)
		}
	}
	v.network(c.Network)
	return errors.Join(v.errs...)
}

// A validator collects what is wrong with a Config.
type validator struct{ errs []error }

func (v *validator) fail(at, format string, a ...any) {
	v.errs = append(v.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, a...)))
}

func (v *validator) patterns(at string, list []string) {
	for i, p := range list {
		if _, err := parsePattern(p); err != nil {
			v.fail(fmt.Sprintf("%s[%d]", at, i), "%v", err)
		}
	}
}

func (v *validator) globs(at string, list []string) {
	for i, g := range list {
		if _, err := path.Match(g, ""); err != nil || g == "" {
			v.fail(fmt.Sprintf("%s[%d]", at, i), "%q: not a pattern", g)
		}
	}
}

func (v *validator) labels(at, selector string) {
	if _, err := manifest.SelectLabels(selector); err != nil {
		v.fail(at, "%v", err)
	}
}

func (v *validator) platforms(at string, list []string) {
	for i, p := range list {
		if n := strings.Count(p, "/"); n < 1 || n > 2 || strings.Contains("/"+p+"/", "//") {
			v.fail(fmt.Sprintf("%s[%d]", at, i), "%q: must be os/arch or os/arch/variant, such as linux/arm64", p)
		}
	}
}

func (v *validator) field(at string, f Field) {
	if slices.Contains(manifest.SplitPath(f.Path), "") {
		v.fail(at+".path", "%q: must be keys separated by /, such as spec/image", f.Path)
	}
	if f.Create {
		v.fail(at+".create", "an image cannot be made up: remove it")
	}
	if f.Parts != nil && (f.Parts.Repository == "" || f.Parts.Tag == "") {
		v.fail(at+".parts", "the keys of repository and tag must be named")
	}
	v.labels(at+".labels", f.Labels)
}

func (v *validator) network(n NetworkConfig) {
	for i, a := range n.Allow {
		if _, err := path.Match(a, ""); err != nil || a == "" || strings.Contains(a, "/") {
			v.fail(fmt.Sprintf("digests.network.allow[%d]", i), "%q: must be a host, with port if it has one, or a pattern such as *.example.com", a)
		}
	}
	seen := map[string]bool{}
	for i, r := range n.Registries {
		at := fmt.Sprintf("digests.network.registries[%d]", i)
		if _, err := name.NewRegistry(r.Host, name.StrictValidation); err != nil {
			v.fail(at+".host", "%q: must be the host of a registry, with port if it has one", r.Host)
		}
		if seen[CanonicalHost(r.Host)] {
			v.fail(at+".host", "%s is there twice", r.Host)
		}
		seen[CanonicalHost(r.Host)] = true
		if (r.Cert == "") != (r.Key == "") {
			v.fail(at, "a client certificate needs both cert and key")
		}
		if r.PlainHTTP && (r.SkipVerify || r.CA != "" || r.Cert != "") {
			v.fail(at, "plainHTTP has no certificates: remove it, or the rest")
		}
		if _, err := name.NewRepository(r.Mirror+"/x", name.WeakValidation); r.Mirror != "" && (err != nil || !hasHost(r.Mirror)) {
			v.fail(at+".mirror", "%q: must be host or host/path, such as harbor.example.com/dockerhub", r.Mirror)
		}
		if r.Mirror == "" && r.ResolveAt == "compare" {
			v.fail(at+".resolveAt", "compare needs a mirror")
		}
	}
}

// hasHost tells whether a repository begins with a registry: as in the name of
// an image, something with a dot or a colon, or localhost.
func hasHost(s string) bool {
	host, _, _ := strings.Cut(s, "/")
	return strings.ContainsAny(host, ".:") || host == "localhost"
}

// table gives the image fields that the configuration knows.
func (c Config) table() *manifest.ImageTable {
	rows := make([]manifest.ImageRow, 0, len(c.Fields))
	for _, f := range c.Fields {
		r := manifest.ImageRow{Group: f.Group, Version: f.Version, Path: manifest.SplitPath(f.Path)}
		if f.Kind != "" {
			r.Kinds = []string{f.Kind}
		}
		if f.Labels != "" {
			r.Selects = selects(f.Labels)
		}
		if f.Parts != nil {
			r.Parts = &manifest.ImageParts{Registry: f.Parts.Registry, Repository: f.Parts.Repository, Tag: f.Parts.Tag, Digest: f.Parts.Digest}
		}
		rows = append(rows, r)
	}
	t := manifest.NewImageTable(rows...)
	t.Env = c.Env
	for _, a := range c.Args {
		t.Args = append(t.Args, strings.TrimSuffix(a, "="))
	}
	return t
}

// selects gives what matches a selector that Validate checked.
func selects(selector string) func(*manifest.Object) bool {
	matches, err := manifest.SelectLabels(selector)
	if err != nil {
		return func(*manifest.Object) bool { return false }
	}
	return matches
}

// A rule is a Rule that is ready to be used.
type rule struct {
	Rule
	images  []pattern
	selects func(*manifest.Object) bool
}

func (c Config) rules() []rule {
	out := make([]rule, 0, len(c.Rules))
	for _, r := range c.Rules {
		out = append(out, rule{r, patterns(r.Images), selects(r.Labels)})
	}
	return out
}

// patterns reads patterns that Validate checked.
func patterns(list []string) []pattern {
	out := make([]pattern, 0, len(list))
	for _, s := range list {
		if p, err := parsePattern(s); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// covers tells whether the rule speaks of a use.
func (r *rule) covers(u *use) bool {
	return (len(r.images) == 0 || slices.ContainsFunc(r.images, func(p pattern) bool { return p.matches(u.segments()) })) &&
		(len(r.Tags) == 0 || (u.pinned == "" || u.tagKnown()) && manifest.MatchesAny(r.Tags, u.tag.TagStr())) &&
		(len(r.Kinds) == 0 || slices.Contains(r.Kinds, u.object.ID.Kind)) &&
		r.selects(u.object)
}

// A pattern matches repositories by the segments of registry and path, so that
// gcr.io/foo does not match gcr.io/foobar, and a port is no tag.
type pattern []string

// parsePattern reads a pattern. As in the name of an image, what comes before
// the first slash is a registry if it has a dot, a colon or a wildcard or is localhost;
// without one Docker Hub is meant.
func parsePattern(s string) (pattern, error) {
	segments := strings.Split(s, "/")
	last := segments[len(segments)-1]
	switch {
	case s == "" || strings.TrimSpace(s) != s:
		return nil, errors.New("a pattern must not be empty or have blanks around it")
	case strings.Contains(s, "@") || strings.Contains(last, ":"):
		return nil, fmt.Errorf("%q: a pattern names repositories, without tag or digest (of a whole registry: host:port/**)", s)
	case segments[0] == "**":
	case len(segments) == 1 && strings.Contains(last, "."):
		return nil, fmt.Errorf("%q: a pattern names repositories (of a whole registry: %s/**)", s, s)
	case len(segments) == 1:
		segments = []string{name.DefaultRegistry, "library", last}
	case strings.ContainsAny(segments[0], ".:*") || segments[0] == "localhost":
		segments[0] = CanonicalHost(segments[0])
		if segments[0] == name.DefaultRegistry && len(segments) == 2 && last != "**" {
			segments = []string{name.DefaultRegistry, "library", last}
		}
	default:
		segments = append([]string{CanonicalHost("docker.io")}, segments...)
	}
	for _, seg := range segments {
		if _, err := path.Match(seg, ""); err != nil || seg == "" {
			return nil, fmt.Errorf("%q: not a pattern", s)
		}
	}
	return segments, nil
}

// CanonicalHost gives the name by which a registry is known: that of Docker Hub
// is index.docker.io.
func CanonicalHost(h string) string {
	if h == "docker.io" || h == "registry-1.docker.io" {
		return name.DefaultRegistry
	}
	return h
}

// matches tells whether the pattern matches the segments of a repository.
func (p pattern) matches(segments []string) bool {
	if len(p) == 0 {
		return len(segments) == 0
	}
	if p[0] == "**" {
		for i := 0; i <= len(segments); i++ {
			if p[1:].matches(segments[i:]) {
				return true
			}
		}
		return false
	}
	if len(segments) == 0 {
		return false
	}
	ok, err := path.Match(p[0], segments[0])
	return err == nil && ok && p[1:].matches(segments[1:])
}
