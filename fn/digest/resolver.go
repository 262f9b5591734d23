package digest

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A Resolver asks registries. Its methods are called from several goroutines. On
// failure their error is, or wraps, an *[Error]; any other error is reported
// with the class [Network]. A cancelled ctx ends them at once.
type Resolver interface {
	// Resolve finds what a registry serves under a tag at this moment, or whether
	// it serves a digest at all. An index stays an index. It is called at most
	// once for each canonical reference of a run.
	Resolve(ctx context.Context, ref name.Reference) (Image, error)
	// Platforms gives the platforms that an image can run on, as os/arch or
	// os/arch/variant, in the order of the index.
	Platforms(ctx context.Context, ref name.Digest) ([]string, error)
}

// An Image is what a registry says of a reference.
type Image struct {
	// Digest is never the zero value.
	Digest v1.Hash
	// MediaType is that of the manifest; "" where it is not known.
	MediaType types.MediaType
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
	NotPinned Class = "not pinned"
	Moved     Class = "moved"
	Forbidden Class = "not allowed"
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
