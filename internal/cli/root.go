// Package cli is belay's command line: it reads and writes files and streams,
// and leaves the work to package fn.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn/digest"
)

// A Client resolves digests over the network and says what it did.
type Client interface {
	digest.Resolver
	// Requests gives the number of HTTP requests sent so far.
	Requests() int
	// Warnings gives what went wrong without being a failure, in order.
	Warnings() []string
}

// An Env is all that a run takes from outside.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal is set when a person sits at stdin, and StderrTerminal at stderr.
	Terminal, StderrTerminal bool
	// Dial makes a client; it opens no connection.
	Dial func(digest.NetworkConfig) (Client, error)
}

// errUsage marks errors that are the caller's: exit code 2.
var errUsage = errors.New("usage")

// errFindings is returned when findings were printed: exit code 1, no message.
var errFindings = errors.New("findings")

// Run runs the command line and gives its exit code: 0 done, 1 findings or
// failures, 2 wrong usage or configuration.
func Run(ctx context.Context, env Env, args []string) int {
	root := newRoot(env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFindings):
		return 1
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted: nothing was written")
	}
	printLines(env.Stderr, err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// usageError is an error whose exit code is 2.
type usageError struct{ error }

// Is makes a usageError match errUsage.
func (usageError) Is(target error) bool { return target == errUsage }

// Unwrap gives the cause.
func (e usageError) Unwrap() error { return e.error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

const long = `belay makes everything that a Kubernetes manifest depends on fast: images are
pinned to digests, ConfigMaps and Secrets get immutable versions by content, and
every reference follows. What it writes is committed to source control: the
commit is the deployment, its audit record and its rollback.

Without a command, belay is a KRM function: it reads a ResourceList from stdin
and writes one to stdout (kpt, kustomize). Its functionConfig is of kind Belay
(fn.belay.dev/v1alpha1, options below spec) or a ConfigMap with flat keys such
as digests.mode.`

const example = `  belay hydrate deploy/                                  # in place
  belay hydrate deploy/ -o hydrated/                     # out of place
  kustomize build . | belay hydrate - > hydrated.yaml    # a stream
  belay check deploy/                                    # in CI: exit 1 when something is not fast
  kpt fn eval deploy/ --exec belay -- digests.mode=locked`

func newRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "belay",
		Short:         "Make everything that a Kubernetes manifest depends on fast",
		Long:          long,
		Example:       example,
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if env.Terminal {
				return cmd.Help()
			}
			return runFunction(cmd.Context(), env)
		},
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newHydrate(env), newCheck(env), newDiff(env), newImages(env), newHistory(env), newRollback(env), newStatus(env), newLock(env), newInit(env), newVersion(env))
	return root
}

// noArgs refuses arguments, and names the nearest command for a misspelt one.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	msg := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return usagef("%s (see belay --help)", msg)
}

// somePaths asks for at least one argument.
func somePaths(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s: name a folder, a file, or - for stdin", cmd.CommandPath())
	}
	for _, a := range args {
		if a == "-" && len(args) > 1 {
			return usagef("%s: - cannot be combined with other paths", cmd.CommandPath())
		}
	}
	return nil
}
