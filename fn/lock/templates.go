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
	Pins  []Base // those of them that are not to follow the current version
	Used  int    // recency: the higher, the later it became current
}

// UseTemplate notes that a workload has a pod template now, whatever Used says,
// and forgets all but the newest most templates. One that is current already keeps
// its recency.
func (l *Lock) UseTemplate(workload Base, now Template, most int) {
	all := slices.Clone(l.Templates[workload])
	newest := l.Newest(workload)
	now.Used = 1
	if len(newest) > 0 {
		now.Used = newest[0].Used + 1
	}
	if i := slices.IndexFunc(all, func(t Template) bool { return t.Print == now.Print }); i >= 0 {
		if len(newest) == 1 && newest[0].Print == now.Print {
			now.Used = newest[0].Used
		}
		all = slices.Delete(all, i, i+1)
	}
	all = byUse(append(all, now))
	l.setTemplates(workload, all[max(0, len(all)-most):])
}

// Newest gives the template that a workload had last: several where branches were
// merged. A nil Lock knows none.
func (l *Lock) Newest(workload Base) []Template {
	if l == nil || len(l.Templates[workload]) == 0 {
		return nil
	}
	all := l.Templates[workload]
	last := all[len(all)-1].Used
	return all[slices.IndexFunc(all, func(t Template) bool { return t.Used == last }):]
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
		Pins  []string `yaml:"pins"`
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
	names, err := parseBases(e.Names)
	pins, err2 := parseBases(e.Pins)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	t := Template{Print: fingerprint, Names: names, Pins: pins, Used: e.Used}
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

func parseBases(texts []string) ([]Base, error) {
	var out []Base
	for _, text := range texts {
		b, ok := ParseBase(text)
		if !ok {
			return nil, fmt.Errorf("%q is not Kind/namespace/name", text)
		}
		out = append(out, b)
	}
	return out, nil
}

// listed writes bases as a YAML list on one line.
func listed(bases []Base) string {
	texts := make([]string, len(bases))
	for i, b := range bases {
		texts[i] = b.String()
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (l *Lock) templates() string {
	var lines []string
	for w, all := range l.Templates {
		for _, t := range all {
			pins := ""
			if len(t.Pins) > 0 {
				pins = ", pins: " + listed(t.Pins)
			}
			lines = append(lines, fmt.Sprintf("%s@%s: {names: %s%s, used: %d}\n", w, t.Print, listed(t.Names), pins, t.Used))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
