package digest

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// A Config says which images are pinned, and how. Its zero value is not valid;
// fn.ParseConfig gives the defaults.
type Config struct {
	// Mode is missing, locked or off.
	Mode string `json:"mode" enum:"missing,locked,off" default:"missing" doc:"missing: resolve what has no digest; locked: take digests from the lock alone, and open no connection; off: leave images alone"`
	// Jobs is how many references are resolved at a time.
	Jobs int `json:"jobs" default:"16" min:"1" max:"256" doc:"how many images are resolved at a time"`
	// Skip are patterns of repositories that are left alone.
	Skip []string `json:"skip" doc:"repositories to leave alone: patterns of registry and path, such as registry:5000/team/** (* is one segment, ** any number)"`
}

// Validate checks the patterns.
func (c Config) Validate() error {
	var errs []error
	for i, p := range c.Skip {
		if _, err := parsePattern(p); err != nil {
			errs = append(errs, fmt.Errorf("digests.skip[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
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
	case len(segments) > 1 && (strings.ContainsAny(segments[0], ".:*") || segments[0] == "localhost"):
		segments[0] = canonicalHost(segments[0])
	case len(segments) == 1 && last != "*":
		segments = []string{canonicalHost("docker.io"), "library", last}
	default:
		segments = append([]string{canonicalHost("docker.io")}, segments...)
	}
	for _, seg := range segments {
		if _, err := path.Match(seg, ""); err != nil || seg == "" {
			return nil, fmt.Errorf("%q: not a pattern", s)
		}
	}
	return segments, nil
}

func canonicalHost(h string) string {
	if h == "docker.io" {
		return "index.docker.io"
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
