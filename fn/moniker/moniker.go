// Package moniker says on each object, in Spinnaker's annotations and labels,
// which application, cluster, stack and detail it belongs to.
//
// Annotations go on the object and on its pod template, a CronJob's included.
// One that is there wins, for application, cluster, stack and detail; the
// sequence is belay's own. Labels are never written where they would change
// what a selector of the package matches, never on selectors, and never on
// volumeClaimTemplates, which no update may touch.
// https://spinnaker.io/docs/reference/providers/kubernetes-v2/#moniker
package moniker

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// The annotations and labels that Annotate writes.
const (
	Application = "moniker.spinnaker.io/application"
	Cluster     = "moniker.spinnaker.io/cluster"
	Stack       = "moniker.spinnaker.io/stack"
	Detail      = "moniker.spinnaker.io/detail"
	Sequence    = "moniker.spinnaker.io/sequence"

	// https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
	nameLabel      = "app.kubernetes.io/name"
	managedByLabel = "app.kubernetes.io/managed-by"
)

const step = "writing monikers"

// A Config says what objects belong to. Its zero value is not valid;
// fn.ParseConfig gives the defaults.
type Config struct {
	Application string `json:"application" doc:"the application that the objects belong to"`
	Cluster     string `json:"cluster" doc:"the cluster in Spinnaker's sense; by default the kind and name of each object, such as deployment my-app"`
	Stack       string `json:"stack" doc:"the stack, such as prod"`
	Detail      string `json:"detail" doc:"free detail"`
	// Derive reads from names what is not said.
	Derive bool `json:"derive" doc:"where no application is given, take it from each name by Frigga's grammar (app-stack-detail-v003), and the sequence too"`
	// ManagedBy is the value of the label app.kubernetes.io/managed-by.
	ManagedBy string `json:"managedBy" default:"belay" doc:"the value of the label app.kubernetes.io/managed-by"`
	// ManagedBySuffix is appended to ManagedBy behind a dash.
	ManagedBySuffix string `json:"managedBySuffix" doc:"what is appended to managedBy behind a dash, to tell several installations apart"`
	// Labels and TemplateLabels switch labels on, on objects and on pod
	// templates; the second needs the first.
	Labels         bool `json:"labels" default:"true" doc:"write the labels app.kubernetes.io/name, app.kubernetes.io/managed-by and moniker.spinnaker.io/sequence"`
	TemplateLabels bool `json:"templateLabels" default:"true" doc:"write these labels on pod templates too"`
}

var labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)

// Validate checks what becomes the value of a label.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
func (c Config) Validate() error {
	var errs []error
	for _, f := range []struct{ path, value string }{{"moniker.application", c.Application}, {"moniker.managedBy and managedBySuffix", c.managedBy()}} {
		if c.Labels && !labelValue.MatchString(f.value) {
			errs = append(errs, fmt.Errorf("%s: %q cannot be the value of a label (up to 63 letters, digits, -, _ and .)", f.path, f.value))
		}
	}
	return errors.Join(errs...)
}

// managedBy gives the value of the label app.kubernetes.io/managed-by.
func (c Config) managedBy() string {
	if c.ManagedBySuffix == "" {
		return c.ManagedBy
	}
	return c.ManagedBy + "-" + c.ManagedBySuffix
}

// Annotate writes the monikers of all objects. Findings are added to
// list.Results. Configuration of tools, and objects that Spinnaker was told to
// ignore, are left alone.
func Annotate(list *manifest.List, cfg Config) {
	var sel *selectors
	if cfg.Labels {
		sel = collectSelectors(list)
	}
	for _, o := range list.Objects {
		if o.IsLocal() || o.IsSource() || o.IsIgnored() {
			continue
		}
		a := annotator{list: list, cfg: cfg, selectors: sel, object: o}
		a.annotate()
	}
}

// An annotator writes the moniker of one object.
type annotator struct {
	list      *manifest.List
	cfg       Config
	selectors *selectors
	object    *manifest.Object
}

// A mark is one annotation or label to write.
type mark struct {
	key, value string
	keep       bool // what is there wins
}

func (a annotator) annotate() {
	sequence, derived := a.sequence()
	application := a.application()
	// What the object says of itself holds for its pods too.
	own := func(key, value string) mark { return mark{key, cmp.Or(a.object.Annotation(key), value), true} }
	annotations := []mark{
		{Application, application, true},
		own(Cluster, a.cluster()),
		own(Stack, a.cfg.Stack),
		own(Detail, a.cfg.Detail),
		{Sequence, sequence, derived},
	}
	labels := []mark{
		{nameLabel, application, true},
		{managedByLabel, a.cfg.managedBy(), false},
		{Sequence, sequence, derived},
	}
	root := a.object.Root()
	a.write(root, "annotations", annotations)
	if !labelValue.MatchString(application) {
		labels[0].value = ""
		if a.cfg.Labels {
			a.report(manifest.Info, fmt.Sprintf("the label %s is not written: %q is longer than a label may be, or has other characters", nameLabel, application))
		}
	}
	if a.cfg.Labels {
		a.write(root, "labels", a.harmless(root, a.object.ID.Kind == "Pod", labels))
	}
	template := a.object.PodTemplate()
	if template == nil {
		return
	}
	a.write(template, "annotations", annotations)
	if a.cfg.Labels && a.cfg.TemplateLabels {
		a.write(template, "labels", a.harmless(template, true, labels))
	}
}

// application gives what the object belongs to: what an annotation on it says,
// else the configuration, else its name.
func (a annotator) application() string {
	if own := a.object.Annotation(Application); own != "" {
		return own
	}
	if a.cfg.Application == "" && a.cfg.Derive {
		return ParseName(a.name()).App
	}
	return a.cfg.Application
}

// name gives the unversioned name of the object.
func (a annotator) name() string {
	if base := a.object.Annotation(manifest.ArtifactNameAnnotation); base != "" && a.object.Annotation(manifest.ArtifactVersionAnnotation) != "" {
		return base
	}
	return a.object.ID.Name
}

// sequence gives the number of the version that the object is; "" for none. One
// that is derived does not take the place of one that is there.
func (a annotator) sequence() (sequence string, derived bool) {
	label := a.object.Annotation(manifest.ArtifactVersionAnnotation)
	if n, err := strconv.Atoi(strings.TrimPrefix(label, "v")); err == nil && strings.HasPrefix(label, "v") {
		return strconv.Itoa(n), false
	}
	if !a.cfg.Derive || label != "" {
		return "", false
	}
	if revision := a.object.Annotation("deployment.kubernetes.io/revision"); revision != "" && a.object.ID.Kind == "ReplicaSet" {
		return revision, true
	}
	if n := ParseName(a.object.ID.Name); n.Sequence >= 0 {
		return strconv.Itoa(n.Sequence), true
	}
	return "", false
}

// cluster gives the kind and the unversioned name, as Spinnaker does.
func (a annotator) cluster() string {
	o, name := a.object, a.name()
	if n := ParseName(name); a.cfg.Derive && n.Cluster != "" {
		name = n.Cluster
	}
	if a.cfg.Cluster != "" {
		return a.cfg.Cluster
	}
	if name == "" {
		return ""
	}
	kind := o.ID.Kind
	if group := o.ID.Group(); strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		return kind + "." + group + " " + name
	}
	return strings.ToLower(kind[:1]) + kind[1:] + " " + name
}

// write sets marks below the metadata of holder, an object or a pod template.
func (a annotator) write(holder *manifest.Node, field string, marks []mark) {
	have := holder.Lookup("metadata", field)
	for _, m := range marks {
		if m.value == "" || m.keep && have.Get(m.key) != nil {
			continue
		}
		if err := a.object.SetField(holder, m.value, "metadata", field, m.key); err != nil {
			a.report(manifest.Error, err.Error()+" (write it as one)")
			return
		}
	}
}

// harmless leaves out the labels that would change what a selector matches.
// pods is set where the labels are those of pods.
func (a annotator) harmless(holder *manifest.Node, pods bool, marks []mark) []mark {
	var out []mark
	have := labelsOf(holder)
	for _, m := range marks {
		value, there := have[m.key]
		if m.value == "" || there && (m.keep || value == m.value) {
			continue
		}
		if where := a.selectors.minds(a.object.Package, pods, have, m); where != "" {
			a.report(manifest.Info, fmt.Sprintf("the label %s: %s is not written, since it would change what %s selects", m.key, m.value, where))
			continue
		}
		out = append(out, m)
		have[m.key] = m.value // two labels can do together what neither does alone
	}
	return out
}

func (a annotator) report(s manifest.Severity, message string) {
	a.list.Report(manifest.Result{Severity: s, Step: step, Object: a.object, Message: message})
}

func labelsOf(holder *manifest.Node) map[string]string {
	out := map[string]string{}
	for k, v := range holder.Lookup("metadata", "labels").Pairs() {
		out[k.Value()] = v.Value()
	}
	return out
}
