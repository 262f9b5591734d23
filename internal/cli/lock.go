package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn/lock"
)

func newLock(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Work on a lock",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLockImport(env))
	return cmd
}

func newLockImport(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE [DIR]",
		Short: "Take over the digests of a lock that kbld wrote",
		Long: `Import reads a lock that kbld wrote with --lock-output or --imgpkg-lock-output,
and adds its digests to the lock of the package DIR (the working directory, if
none is given), so that the next hydrate pins the same images and asks nobody.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("belay lock import: name the file, and the folder of the package")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 2 {
				dir = args[1]
			}
			return (&job{env: env, paths: []string{dir}}).importLock(args[0])
		},
	}
}

func (j *job) importLock(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return usageError{plain(err)}
	}
	got, err := lock.ReadKbld(data)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if info, err := os.Stat(j.paths[0]); err == nil && !info.IsDir() {
		return usagef("%s: name the folder of the package", j.paths[0])
	}
	if err := j.read(); err != nil {
		return err
	}
	p := j.packs[0]
	l, err := lock.Find(p.list, "")
	if err != nil {
		return err
	}
	if err := addImages(l, got.Images, file); err != nil {
		return err
	}
	if err := l.Write(p.list, "", j.lockFile(p)); err != nil {
		return err
	}
	changes, err := j.changes()
	if err != nil {
		return err
	}
	if err := writeAll(changes); err != nil {
		return err
	}
	for _, s := range got.Skipped {
		_, _ = fmt.Fprintf(j.env.Stderr, "belay: warning: not taken over: %s\n", s)
	}
	_, _ = fmt.Fprintf(j.env.Stderr, "belay: took over %s from %s (run belay hydrate, which drops what no image uses)\n", count(len(got.Images), "digest"), file)
	return nil
}

// addImages adds digests to a lock. Where it has others, nothing is added.
func addImages(l *lock.Lock, images map[string]string, file string) error {
	var errs []error
	for _, ref := range slices.Sorted(maps.Keys(images)) {
		if held, ok := l.Images[ref]; ok && held != images[ref] {
			errs = append(errs, fmt.Errorf("%s: the lock has %s, and %s has %s (remove one of them)", ref, held, file, images[ref]))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if l.Images == nil {
		l.Images = map[string]string{}
	}
	maps.Copy(l.Images, images)
	return nil
}
