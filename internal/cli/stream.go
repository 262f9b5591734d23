package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/manifest"
)

// hydrateStream hydrates stdin to stdout.
func (j *job) hydrateStream(ctx context.Context, p printer) error {
	if err := j.processStream(ctx); err != nil {
		return err
	}
	list := j.packs[0].list
	p.findings(list)
	if list.Failed() {
		return j.recordFailure(p.start)
	}
	out, err := j.streamOutput()
	if err != nil {
		return err
	}
	if err := j.writeStreamLock(); err != nil {
		return err
	}
	if _, err := j.env.Stdout.Write(out); err != nil {
		return err
	}
	if err := j.record(p.start, false); err != nil {
		return err
	}
	p.summary(j.reports(), j.clients.Requests())
	return nil
}

func (j *job) streamOutput() ([]byte, error) {
	list := j.packs[0].list
	if j.resourceList {
		return list.Output()
	}
	return list.Sources[0].Bytes()
}

// processStream hydrates stdin in memory.
func (j *job) processStream(ctx context.Context) error {
	if err := j.openStream(); err != nil {
		return err
	}
	p := j.packs[0]
	resolver, err := j.resolver(p)
	if err != nil {
		return err
	}
	p.report = fn.Process(ctx, p.list, p.config, fn.Options{Resolver: resolver, Progress: j.progress.part(), Previous: noPrevious, LockFile: j.lock, Durable: j.lock != ""})
	j.progress.end()
	j.clients.report(p.list)
	return ctx.Err()
}

// noPrevious is for a stream, of whose previous output nothing is known.
func noPrevious(*manifest.Object) *manifest.Object { return nil }

// openStream reads stdin, a stream of documents or a ResourceList, as a package.
func (j *job) openStream() error {
	list, err := j.readStream()
	if err != nil {
		return err
	}
	cfg, err := j.streamConfig(list)
	if err != nil {
		return err
	}
	j.clients, j.progress = newClients(j.env), newProgress(j.env)
	if j.config == "" && cfg.Record != "" {
		cfg.Record = "" // what is piped in does not choose a file
		list.Report(manifest.Result{Severity: manifest.Warning, Message: "record: says nothing in a stream (use --record)"})
	}
	p := &pack{list: list, config: cfg, inputs: []manifest.Input{{Path: "-", Data: list.Sources[0].Original()}}}
	if j.config != "" {
		p.configDir = filepath.Dir(j.config)
	}
	j.packs = []*pack{p}
	return j.openRecords()
}

func (j *job) readStream() (*manifest.List, error) {
	data, err := io.ReadAll(j.env.Stdin)
	if err != nil {
		return nil, fmt.Errorf("reading stdin: %w", err)
	}
	if manifest.IsResourceList(data) && j.lock == "" {
		j.resourceList = true
		return manifest.Read(data)
	}
	inputs := []manifest.Input{{Data: data, Stream: true}}
	if j.lock != "" {
		data, err := os.ReadFile(j.lock)
		switch {
		case err == nil:
			inputs = append(inputs, manifest.Input{Path: j.lock, Data: data})
		case !errors.Is(err, os.ErrNotExist):
			return nil, usageError{plain(err)}
		}
	}
	list, err := manifest.ReadFiles(inputs)
	if err != nil {
		return nil, fmt.Errorf("reading stdin: %w", err)
	}
	if len(list.Sources[0].Objects()) == 0 {
		return nil, errors.New("reading stdin: no Kubernetes objects there (nothing was done)")
	}
	return list, nil
}

// streamConfig gives the configuration that was named, or that of a
// ResourceList, or the defaults.
func (j *job) streamConfig(list *manifest.List) (fn.Config, error) {
	var cfg fn.Config
	var err error
	if j.config != "" {
		cfg, err = readConfigFile(j.config)
	} else {
		cfg, err = fn.ParseConfig(list.FunctionConfig)
	}
	if err == nil {
		cfg, err = fn.Override(cfg, j.set)
	}
	if err != nil {
		return cfg, usageError{err}
	}
	return withConfigurations(cfg, filepath.Dir(j.config))
}

// writeStreamLock writes the lock that --lock names, if it changed.
func (j *job) writeStreamLock() error {
	var changes []change
	for _, s := range j.packs[0].list.Sources[1:] {
		if !s.Changed() {
			continue
		}
		data, err := s.Bytes()
		if err != nil {
			return err
		}
		changes = append(changes, change{path: s.Path, data: data, root: filepath.Dir(s.Path)})
	}
	return writeAll(changes)
}
