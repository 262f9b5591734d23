package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/status"
)

// A statusLine says of one object whether it is stable.
type statusLine struct {
	Object string `json:"object"`
	// State is stable, unstable, or unknown for a kind that has no rule.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

func newStatus(env Env) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "status FILE... | -",
		Short: "Say which live objects are stable, and why others are not",
		Long: `Status reads live objects, such as kubectl get -o yaml gives them, and says of
each whether its controller is done with it: Deployments, DaemonSets,
StatefulSets, ReplicaSets, Pods, Services, Ingresses, NetworkPolicies, ConfigMaps
and Secrets. Other kinds are named as unknown. Exit code 1 says that something is
not stable.`,
		RunE: func(_ *cobra.Command, args []string) error { return runStatus(env, args, format) },
	}
	cmd.Flags().StringVar(&format, "format", format, "how to print: text or json")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if format != "text" && format != "json" {
			return usagef("--format %s: must be text or json", format)
		}
		return somePaths(cmd, args)
	}
	return cmd
}

// emptyList is what kubectl get gives where nothing is found.
var emptyList = regexp.MustCompile(`(?m)^\s*"?kind"?: "?List"?,?\s*$`)

func runStatus(env Env, paths []string, format string) error {
	inputs, err := statusInputs(env, paths)
	if err != nil {
		return err
	}
	list, err := manifest.ReadFiles(inputs)
	if err != nil {
		return err
	}
	if len(list.Objects) == 0 && !slices.ContainsFunc(inputs, func(in manifest.Input) bool { return emptyList.Match(in.Data) }) {
		return errors.New("no Kubernetes objects there (nothing was done)")
	}
	lines, unstable := []statusLine{}, 0
	for _, o := range list.Objects {
		s := status.Of(o)
		l := statusLine{Object: o.ID.String(), State: "stable", Reason: s.Reason}
		switch {
		case !s.Known:
			l.State = "unknown"
		case !s.Stable():
			l.State = "unstable"
			unstable++
		}
		lines = append(lines, l)
	}
	if err := writeStatus(env.Stdout, lines, format); err != nil || unstable == 0 {
		return err
	}
	_, _ = fmt.Fprintf(env.Stderr, "belay: %d of %s not stable\n", unstable, count(len(lines), "object"))
	return errFindings
}

func statusInputs(env Env, paths []string) ([]manifest.Input, error) {
	var inputs []manifest.Input
	for _, path := range paths {
		data, err := []byte(nil), error(nil)
		if path == "-" {
			data, err = io.ReadAll(env.Stdin)
		} else {
			data, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, usageError{plain(err)}
		}
		inputs = append(inputs, manifest.Input{Path: path, Data: data, Stream: true})
	}
	return inputs, nil
}

func writeStatus(w io.Writer, lines []statusLine, format string) error {
	if format == "json" {
		return writeJSON(w, lines)
	}
	for _, l := range lines {
		reason := ""
		if l.Reason != "" {
			reason = ": " + l.Reason
		}
		if _, err := fmt.Fprintf(w, "%s: %s%s\n", l.Object, l.State, reason); err != nil {
			return err
		}
	}
	return nil
}
