package lock

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Template is a pod template that a workload had. The controller of the
// workload keeps some of them, and goes back to one when it is told to: then the
// versions that it names must be there.
// https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#clean-up-policy
type Template struct {
	Print string // ten hexadecimal digits that tell it from others
	Names []Base // the versions that it names, by their full names
	Used  int    // recency: the higher, the later it became current
}

// UseTemplate notes that a workload has a pod template now, and forgets all but
// the newest most templates. One that is current already stays as it is.
func (l *Lock) UseTemplate(workload Base, fingerprint string, names []Base, most int) {
	all := l.Templates[workload]
	newest := 0
	for _, t := range all {
		newest = max(newest, t.Used)
	}
	now := Template{fingerprint, names, newest + 1}
	if i := slices.IndexFunc(all, func(t Template) bool { return t.Print == fingerprint }); i >= 0 {
		ties := len(slices.DeleteFunc(slices.Clone(all), func(t Template) bool { return t.Used != newest }))
		if all[i].Used == newest && ties == 1 {
			now.Used = newest
		}
		all = slices.Delete(all, i, i+1)
	}
	all = byUse(append(all, now))
	l.setTemplates(workload, all[max(0, len(all)-most):])
}

// KeepTemplates forgets the templates of the workloads that are not wanted.
func (l *Lock) KeepTemplates(wanted func(workload Base) bool) {
	for w := range l.Templates {
		if !wanted(w) {
			delete(l.Templates, w)
		}
	}
}

// setTemplates gives a workload its templates. Where none of them names
// anything, there is nothing to remember.
func (l *Lock) setTemplates(workload Base, all []Template) {
	if !slices.ContainsFunc(all, func(t Template) bool { return len(t.Names) > 0 }) {
		delete(l.Templates, workload)
		return
	}
	if l.Templates == nil {
		l.Templates = map[Base][]Template{}
	}
	l.Templates[workload] = all
}

func byUse(all []Template) []Template {
	slices.SortFunc(all, func(a, b Template) int {
		return cmp.Or(cmp.Compare(a.Used, b.Used), cmp.Compare(a.Print, b.Print))
	})
	return all
}

// addTemplates takes in the lines of data.templates. A merge of two branches may
// have left a template twice: the higher recency counts.
func (l *Lock) addTemplates(nodes []*yaml.Node) error {
	var errs []error
	for i := 0; i+1 < len(nodes); i += 2 {
		if err := l.addTemplate(nodes[i].Value, nodes[i+1]); err != nil {
			errs = append(errs, fmt.Errorf("data.templates: %s: %w", nodes[i].Value, err))
		}
	}
	return errors.Join(errs...)
}

func (l *Lock) addTemplate(key string, value *yaml.Node) error {
	var e struct {
		Names []string `yaml:"names"`
		Used  int      `yaml:"used"`
	}
	if err := value.Decode(&e); err != nil {
		return err
	}
	name, fingerprint, isTemplate := strings.Cut(key, "@")
	workload, ok := ParseBase(name)
	if !ok || !isTemplate {
		return errors.New("is not Kind/namespace/name@template")
	}
	t := Template{Print: fingerprint, Used: e.Used}
	for _, n := range e.Names {
		b, ok := ParseBase(n)
		if !ok {
			return fmt.Errorf("%q is not Kind/namespace/name", n)
		}
		t.Names = append(t.Names, b)
	}
	if l.Templates == nil {
		l.Templates = map[Base][]Template{}
	}
	all := l.Templates[workload]
	if i := slices.IndexFunc(all, func(o Template) bool { return o.Print == fingerprint }); i >= 0 {
		t.Used = max(t.Used, all[i].Used)
		all = slices.Delete(all, i, i+1)
	}
	l.Templates[workload] = byUse(append(all, t))
	return nil
}

func (l *Lock) templates() string {
	var lines []string
	for w, all := range l.Templates {
		for _, t := range all {
			names := make([]string, len(t.Names))
			for i, n := range t.Names {
				names[i] = n.String()
			}
			lines = append(lines, fmt.Sprintf("%s@%s: {names: [%s], used: %d}\n", w, t.Print, strings.Join(names, ", "), t.Used))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
