package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/version"
)

// usePrevious takes from the previous output what the sources do not know: its
// lock, which is newer than theirs, and the versions that it holds.
func (j *job) usePrevious(p *pack) error {
	if !j.hasOutput(p) {
		return nil
	}
	if err := j.useFile(p, j.target(p, j.lockFile(p)), j.lockFile(p)); err != nil {
		return err
	}
	return filepath.WalkDir(j.target(p, p.dir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return plain(err)
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || j.isOther(p, path)):
			return fs.SkipDir
		case d.Type().IsRegular() && isManifestFile(path):
			return j.useVersions(p, path)
		}
		return nil
	})
}

// hasOutput tells whether the output holds what came of a package in a previous
// run: one that it shares with another package says of neither what it is.
func (j *job) hasOutput(p *pack) bool {
	return j.output != "" && !slices.ContainsFunc(j.packs, func(other *pack) bool {
		return other != p && j.target(other, j.lockFile(other)) == j.target(p, j.lockFile(p))
	})
}

// isOther tells whether a folder of the output is that of another package.
func (j *job) isOther(p *pack, dir string) bool {
	return slices.ContainsFunc(j.packs, func(other *pack) bool { return other != p && j.target(other, other.dir) == dir })
}

// useFile takes a file of the previous output in place of that of the sources.
func (j *job) useFile(p *pack, path, as string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return plain(err)
	}
	p.inputs = slices.DeleteFunc(p.inputs, func(in manifest.Input) bool { return in.Path == as })
	p.inputs = append(p.inputs, manifest.Input{Path: as, Data: data})
	return nil
}

// useVersions takes the versions of a file of the previous output: with the file,
// where it is that of a version alone.
func (j *job) useVersions(p *pack, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return plain(err)
	}
	if !bytes.Contains(data, []byte(version.VersionAnnotation)) {
		return nil
	}
	list, err := manifest.ReadFiles([]manifest.Input{{Path: path, Data: data}})
	if err != nil {
		return err
	}
	// What has no source any more is named in a warning, and stays as it is.
	hasSource := slices.ContainsFunc(p.inputs, func(in manifest.Input) bool { return j.target(p, in.Path) == path })
	for _, o := range list.Objects {
		if version.IsFrozen(o) && len(list.Objects) == 1 {
			rel, err := filepath.Rel(j.target(p, p.dir), path)
			if err != nil {
				return err
			}
			return j.useFile(p, path, filepath.Join(p.dir, rel))
		}
		if _, ok := version.IsVersion(o); ok && hasSource {
			p.versions = append(p.versions, o)
		}
	}
	return nil
}

// readCommitted reads the lock of a package as it was committed, where it
// remembers pod templates: runs that nobody committed are no deployments.
func (j *job) readCommitted(ctx context.Context, p *pack) error {
	i := slices.IndexFunc(p.inputs, func(in manifest.Input) bool { return in.Path == j.lockFile(p) })
	if i < 0 || !bytes.Contains(p.inputs[i].Data, []byte("templates:")) {
		return nil
	}
	path := j.target(p, j.lockFile(p))
	r, err := openRepo(ctx, filepath.Dir(path))
	if err != nil {
		return ctx.Err() // no git, or no repository: then every run counts
	}
	data, ok := r.committed(ctx, filepath.Base(path))
	if !ok {
		return ctx.Err()
	}
	// What was committed broken is mended now; then it is as if it was not there.
	if p.committed, err = lock.Parse(data); err != nil {
		p.committed = nil
	}
	return ctx.Err()
}

// previous gives what finds objects of the previous output. In place, that is
// what was read.
func (j *job) previous(p *pack) func(*manifest.Object) *manifest.Object {
	if j.output == "" {
		return nil
	}
	files := map[string]map[manifest.ID]*manifest.Object{}
	var elsewhere map[manifest.ID]*manifest.Object // when a file has another name by now
	return func(o *manifest.Object) *manifest.Object {
		path := j.target(p, o.File.Path)
		if files[path] == nil {
			files[path] = map[manifest.ID]*manifest.Object{}
			addByID(files[path], path)
		}
		if before := files[path][o.ID]; before != nil {
			return before
		}
		if elsewhere == nil {
			elsewhere = j.outputByID(p)
		}
		return elsewhere[o.ID]
	}
}

// outputByID gives the objects of the previous output of a package.
func (j *job) outputByID(p *pack) map[manifest.ID]*manifest.Object {
	out := map[manifest.ID]*manifest.Object{}
	// An error ends the walk, and what was found before it counts.
	_ = filepath.WalkDir(j.target(p, p.dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !isManifestFile(path) {
			return err
		}
		addByID(out, path)
		return nil
	})
	return out
}

// addByID adds the objects of a file, of which the first of an ID counts. What
// cannot be read is as if it was not there.
func addByID(objects map[manifest.ID]*manifest.Object, path string) {
	data, err := os.ReadFile(path)
	list, errRead := manifest.ReadFiles([]manifest.Input{{Path: path, Data: data}})
	if err != nil || errRead != nil {
		return
	}
	for _, o := range list.Objects {
		if objects[o.ID] == nil {
			objects[o.ID] = o
		}
	}
}
