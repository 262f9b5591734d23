package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/version"
)

// configFile is the configuration of a package; kptFile marks a package of kpt.
const (
	configFile = "belay.yaml"
	kptFile    = "Kptfile"
)

// A pack is a package on disk: a folder that was given, or below it a folder
// with a belay.yaml or a Kptfile of its own. Names are resolved inside one.
type pack struct {
	dir    string
	root   string // the argument that the package belongs to
	inputs []manifest.Input
	config fn.Config
	// configDir is the folder of the file that config was read from.
	configDir string
	// partial is set when single files were named, not the folder.
	partial bool
	// kustomized are the folders that hold a kustomization.
	kustomized []string

	// versions are those that the previous output holds.
	versions []*manifest.Object
	// committed is the lock of the last commit; nil where that is not known.
	committed *lock.Lock

	list   *manifest.List
	report fn.Report
}

// A loader finds packages and reads their files.
type loader struct {
	packs  []*pack
	byDir  map[string]*pack
	skip   string     // folder that is not read: the output
	config *fn.Config // from --config; nil to read belay.yaml

	configDir string // of config
	errs      []error
}

// load reads the packages of paths. All that is wrong is reported at once.
func load(paths []string, config *fn.Config, configDir, skip string) ([]*pack, error) {
	l := &loader{byDir: map[string]*pack{}, config: config, configDir: configDir, skip: skip}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			l.errs = append(l.errs, usageError{plain(err)})
		case info.IsDir():
			l.folder(filepath.Clean(p))
		default:
			l.file(filepath.Clean(p))
		}
	}
	return l.packs, errors.Join(l.errs...)
}

// plain gives a file error without the name of the system call.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	return err
}

// folder reads a folder and all below it, hidden files and folders left out.
func (l *loader) folder(root string) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			l.errs = append(l.errs, plain(err))
			return nil
		}
		hidden := strings.HasPrefix(d.Name(), ".") && path != root
		switch {
		case d.IsDir() && (hidden || l.isOutput(path)):
			return fs.SkipDir
		case d.IsDir():
			l.enter(path, root)
		case hidden:
		case d.Type()&fs.ModeSymlink != 0:
			l.link(path, root)
		case d.Type().IsRegular():
			l.add(path)
		}
		return nil
	})
	if err != nil {
		l.errs = append(l.errs, plain(err))
	}
}

func (l *loader) isOutput(path string) bool {
	if l.skip == "" {
		return false
	}
	a, errA := filepath.Abs(path)
	b, errB := filepath.Abs(l.skip)
	return errA == nil && errB == nil && a == b
}

// enter notes which package a folder belongs to.
func (l *loader) enter(dir, root string) {
	_, known := l.byDir[dir]
	if known {
		return
	}
	parent := l.byDir[filepath.Dir(dir)]
	if dir != root && parent != nil && !exists(dir, configFile) && !exists(dir, kptFile) {
		l.byDir[dir] = parent
		return
	}
	l.open(dir, root, parent)
}

// open starts a package. Its configuration is its own belay.yaml, or that of
// the package around it.
func (l *loader) open(dir, root string, parent *pack) *pack {
	p := &pack{dir: dir, root: root}
	switch {
	case l.config != nil:
		p.config, p.configDir = *l.config, l.configDir
	case exists(dir, configFile):
		p.config, p.configDir = l.readConfig(filepath.Join(dir, configFile)), dir
	case parent != nil:
		p.config, p.configDir = parent.config, parent.configDir
	default:
		p.config = l.defaults()
	}
	l.byDir[dir] = p
	l.packs = append(l.packs, p)
	return p
}

func (l *loader) readConfig(path string) fn.Config {
	cfg, err := readConfigFile(path)
	if err != nil {
		l.errs = append(l.errs, err)
	}
	return cfg
}

func (l *loader) defaults() fn.Config {
	cfg, err := fn.ParseConfig(nil)
	if err != nil {
		l.errs = append(l.errs, err)
	}
	return cfg
}

// readConfigFile reads a file of kind Belay.
func readConfigFile(path string) (fn.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return fn.Config{}, usageError{plain(err)}
	}
	cfg, err := fn.ParseConfigFile(data)
	if err != nil {
		return cfg, usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return cfg, nil
}

// withConfigurations adds what the files hold that a configuration names.
func withConfigurations(cfg fn.Config, dir string) (fn.Config, error) {
	for i, path := range cfg.Versions.Configurations {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return cfg, usageError{fmt.Errorf("reading the configuration: versions.configurations[%d]: %w", i, plain(err))}
		}
		if cfg, err = fn.AddConfigurations(cfg, data); err != nil {
			return cfg, usageError{fmt.Errorf("reading the configuration: versions.configurations[%d]: %s: %w", i, path, err)}
		}
	}
	return cfg, nil
}

func exists(dir, name string) bool { return isThere(filepath.Join(dir, name)) }

// isThere tells whether there is a file, a folder or a link.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// add reads a file of the package that its folder belongs to.
func (l *loader) add(path string) {
	p := l.byDir[filepath.Dir(path)]
	name := filepath.Base(path)
	switch name {
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		p.kustomized = append(p.kustomized, filepath.Dir(path))
	case configFile:
		return
	}
	if isManifestFile(path) {
		l.read(p, path)
	}
}

// isManifestFile tells whether a file may hold manifests.
func isManifestFile(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func (l *loader) read(p *pack, path string) {
	for _, in := range p.inputs {
		if in.Path == path {
			return
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		l.errs = append(l.errs, plain(err))
		return
	}
	p.inputs = append(p.inputs, manifest.Input{Path: path, Data: data})
}

// link deals with a symbolic link: what it leads to inside of the tree is read
// there; one that leads out is refused, since belay would write through it.
func (l *loader) link(path, root string) {
	if isManifestFile(path) && !inside(root, path) {
		l.errs = append(l.errs, fmt.Errorf("%s: is a symbolic link that leads out of %s (replace it by a copy, or move it out of the folder)", path, root))
	}
}

// inside tells whether what path leads to is below root.
func inside(root, path string) bool {
	r, errR := filepath.EvalSymlinks(root)
	p, errP := filepath.EvalSymlinks(path)
	if errR != nil || errP != nil {
		return false
	}
	r, errR = filepath.Abs(r)
	p, errP = filepath.Abs(p)
	if errR != nil || errP != nil {
		return false
	}
	rel, err := filepath.Rel(r, p)
	return err == nil && filepath.IsLocal(rel)
}

// file reads one file that was named, as part of the package that its folder
// is, and the lock beside it.
func (l *loader) file(path string) {
	dir := filepath.Dir(path)
	if !inside(dir, path) {
		l.errs = append(l.errs, fmt.Errorf("%s: is a symbolic link that leads out of its folder (name the file that it leads to)", path))
		return
	}
	p := l.byDir[dir]
	if p == nil {
		p = l.open(dir, dir, nil)
		p.partial = true
	}
	if p.partial {
		l.companions(p)
	}
	l.read(p, path)
}

// companions reads what belay keeps of a package whose files are named one by
// one: its lock, and the files of its versions.
func (l *loader) companions(p *pack) {
	if exists(p.dir, lock.File) {
		l.read(p, filepath.Join(p.dir, lock.File))
	}
	folder := filepath.Join(p.dir, version.Folder)
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.errs = append(l.errs, plain(err))
	}
	for _, f := range files {
		if f.Type().IsRegular() && isManifestFile(f.Name()) {
			l.read(p, filepath.Join(folder, f.Name()))
		}
	}
}
