package digest

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A Resolver finds the digest that a tag stands for at this moment.
//
// Resolve is called at most once for each canonical reference of a run, from
// several goroutines. It returns the digest of what the registry serves under
// the tag: an index stays an index. On failure the error is, or wraps, an
// *[Error]; any other error is reported with the class [Network].
// A cancelled ctx ends it at once.
type Resolver interface {
	Resolve(ctx context.Context, tag name.Tag) (v1.Hash, error)
}

// A Class says what kind of failure kept a tag from being resolved, so that
// people and machines can tell a typing error from an outage.
type Class string

// The classes of failure.
const (
	Auth      Class = "auth"
	NotFound  Class = "not found"
	RateLimit Class = "rate limit"
	TLS       Class = "TLS"
	Network   Class = "network"
	Malformed Class = "malformed"
	NotLocked Class = "not in the lock"
)

// An Error is a failure to resolve one tag.
type Error struct {
	// Class is never empty.
	Class Class
	// Hint says what to do next; empty where nothing helpful is known.
	Hint string
	// Err is the cause, never nil. It holds no credentials.
	Err error
}

// Error gives the cause and, in brackets, what to do next.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Err, e.Hint)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// classOf gives the class of a failure; what a Resolver did not classify
// counts as a network failure.
func classOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Network
}
