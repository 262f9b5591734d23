package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/manifest"
)

// runFunction is the KRM function: a ResourceList in, a ResourceList out. When
// it fails it answers with the items as they were read and the results, since
// an orchestrator that is given nothing may delete everything.
func runFunction(ctx context.Context, env Env) error {
	data, err := io.ReadAll(env.Stdin)
	if err != nil {
		return fmt.Errorf("reading stdin: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return usagef("stdin is empty: a ResourceList is expected there (see belay --help)")
	}
	list, err := manifest.Read(data)
	if errors.Is(err, manifest.ErrNotResourceList) {
		return usagef("stdin is not a ResourceList (for a stream of manifests, run: belay hydrate -)")
	}
	if err != nil {
		return err
	}
	return hydrateList(ctx, env, list)
}

// hydrateList does the work of the function and writes its answer.
func hydrateList(ctx context.Context, env Env, list *manifest.List) error {
	p := printer{env: env, start: time.Now()}
	cfg, err := fn.ParseConfig(list.FunctionConfig)
	if err == nil {
		cfg, err = withConfigurations(cfg, "")
	}
	if err != nil {
		return refuse(env, p, list, err)
	}
	if cfg.Record != "" {
		list.Report(manifest.Result{Severity: manifest.Warning, Message: "record: says nothing to a function, which writes no files (belay hydrate does)"})
	}
	net := newClients(env)
	progress := newProgress(env)
	opt := fn.Options{Progress: progress.part()}
	if asksRegistries(cfg.Digests) {
		if opt.Resolver, err = net.of(cfg.Digests, ""); err != nil {
			return refuse(env, p, list, err)
		}
	}
	rep := fn.Process(ctx, list, cfg, opt)
	progress.end()
	net.report(list)
	if err := answer(env, list); err != nil {
		return err
	}
	p.findings(list)
	if list.Failed() {
		return errFindings
	}
	p.summary([]fn.Report{rep}, net.Requests())
	return nil
}

// refuse answers that the configuration is wrong.
func refuse(env Env, p printer, list *manifest.List, err error) error {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		list.Report(manifest.Result{Severity: manifest.Error, Message: line})
	}
	if err := answer(env, list); err != nil {
		return err
	}
	p.findings(list)
	return usageError{errFindings}
}

// answer writes the ResourceList, all of it at once.
func answer(env Env, list *manifest.List) error {
	write := list.Output
	if list.Failed() {
		write = list.Refusal
	}
	out, err := write()
	if err != nil {
		return err
	}
	_, err = env.Stdout.Write(out)
	return err
}
