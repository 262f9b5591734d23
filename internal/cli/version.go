package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker for builds outside of a module, such as those of
// an image: -ldflags "-X github.com/belay-krm/belay/internal/cli.release=v1.2.3".
var release = ""

func newVersion(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(env.Stdout, "belay %s %s/%s %s\n", currentVersion(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}

func currentVersion() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
