package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A change is a file to be written.
type change struct {
	path string
	data []byte
	root string // the tree that the file must not leave
	// mode is that of a new file; 0 for 0644. A file that is there keeps its own.
	mode fs.FileMode
	// remove is set for a file that goes.
	remove bool
}

// writeAll writes files so that each is either old or new, never half: first
// all of them beside their places, then renamed. Where one cannot be made
// ready, none is written.
func writeAll(changes []change) error {
	temps := make([]string, len(changes))
	var errs []error
	for i, c := range changes {
		if c.remove {
			continue
		}
		temp, err := prepare(c)
		temps[i] = temp
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		removeAll(temps)
		return fmt.Errorf("nothing was written: %w", err)
	}
	for i, c := range changes {
		if err := c.finish(temps[i]); err != nil {
			removeAll(temps[i:])
			return fmt.Errorf("%d of %d files were written: %w", i, len(changes), err)
		}
	}
	return nil
}

// finish makes the change, whose content is in a temporary file.
func (c change) finish(temp string) error {
	if !c.remove {
		return os.Rename(temp, c.path)
	}
	if err := os.Remove(c.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func removeAll(paths []string) {
	for _, p := range paths {
		if p != "" {
			// A leftover temporary file is all that can come of a failure here.
			_ = os.Remove(p)
		}
	}
}

// prepare writes the new content to a temporary file beside its place, with the
// mode of the old one.
func prepare(c change) (string, error) {
	dir := filepath.Dir(c.path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	mode := cmp.Or(c.mode, 0o644)
	if info, err := os.Lstat(c.path); err == nil {
		if info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%s: is a symbolic link: belay does not write through it", c.path)
		}
		mode = info.Mode().Perm()
	}
	if !inside(c.root, dir) {
		return "", fmt.Errorf("%s: leads out of %s by a symbolic link", c.path, c.root)
	}
	f, err := os.CreateTemp(dir, ".belay-*")
	if err != nil {
		return "", err
	}
	_, werr := f.Write(c.data)
	return f.Name(), errors.Join(werr, f.Chmod(mode), f.Close())
}
