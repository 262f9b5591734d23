package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn"
)

func newInit(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a belay.yaml that shows every option with its default",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s: name one folder", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return writeConfig(env, filepath.Join(dir, configFile))
		},
	}
}

// writeConfig writes a configuration with every option in comments. A file
// that is there already is not touched.
func writeConfig(env Env, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if os.IsExist(err) {
		return usagef("%s is there already", path)
	}
	if err != nil {
		return plain(err)
	}
	if _, err := f.WriteString(sampleConfig()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = fmt.Fprintf(env.Stderr, "belay: wrote %s\n", path)
	return err
}

// sampleConfig gives a configuration that means the defaults. Each option is a
// comment that becomes one when its # and a blank are taken away.
func sampleConfig() string {
	var b strings.Builder
	b.WriteString("apiVersion: fn.belay.dev/v1alpha1\nkind: Belay\nmetadata:\n  name: belay\nspec:\n")
	section, group := "", ""
	for _, o := range fn.AllOptions() {
		if strings.Contains(o.Path, "[]") {
			continue // of the mappings of a list: see the README
		}
		step, key, isStep := strings.Cut(o.Path, ".")
		if !isStep {
			fmt.Fprintf(&b, "  # %s: %s # %s\n", step, o.Default, o.Doc)
			continue
		}
		if step != section {
			section = step
			lead := ""
			if step == "moniker" {
				lead = "# " // it switches a step on
			}
			fmt.Fprintf(&b, "  %s%s:\n", lead, step)
		}
		indent := ""
		if parent, child, ok := strings.Cut(key, "."); ok {
			if parent != group {
				group = parent
				fmt.Fprintf(&b, "    # %s:\n", parent)
			}
			key, indent = child, "  "
		}
		fmt.Fprintf(&b, "    # %s%s: %s # %s\n", indent, key, o.Default, o.Doc)
	}
	return b.String()
}
