// Command belay makes everything that a Kubernetes manifest depends on fast.
// See the README, or run belay --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/registry"
	"github.com/belay-krm/belay/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, cli.Env{
		Stdin:          os.Stdin,
		Stdout:         os.Stdout,
		Stderr:         os.Stderr,
		Terminal:       term.IsTerminal(int(os.Stdin.Fd())),
		StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Dial: func(n digest.NetworkConfig) (cli.Client, error) {
			return registry.New(registry.Options{Network: n})
		},
	}, os.Args[1:])
}
