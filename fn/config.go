package fn

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/moniker"
	"github.com/belay-krm/belay/fn/strategy"
	"github.com/belay-krm/belay/fn/version"
)

// APIVersion and Kind are those of belay's own configuration.
const (
	APIVersion = "fn.belay.dev/v1alpha1"
	Kind       = "Belay"
)

// A Config joins the configurations of the steps. Get one from [ParseConfig],
// which fills in defaults and checks values.
type Config struct {
	Digests  digest.Config   `json:"digests"`
	Versions version.Config  `json:"versions"`
	Strategy strategy.Config `json:"strategy"`
	// Record is the file that runs on files append a line to; "" for none.
	Record string `json:"record" doc:"path, beside this file, of the audit record: each run on files appends a CloudEvent to it, one line of JSON"`
	// Moniker is nil when no monikers are to be written.
	Moniker *moniker.Config `json:"moniker"`
}

// ParseConfig reads a functionConfig: of kind Belay with the options below
// spec, or a v1 ConfigMap with flat keys such as digests.mode in data. A nil or
// empty one means the defaults. It is strict: everything that is wrong is
// reported, in input order, with the path of the field and what was probably meant.
func ParseConfig(n *manifest.Node) (Config, error) {
	cfg := defaults()
	if n.IsNull() || n.IsMapping() && n.Len() == 0 {
		return cfg, nil
	}
	r := reader{}
	switch apiVersion, kind := n.Get("apiVersion").Value(), n.Get("kind").Value(); {
	case !n.IsMapping():
		r.errorf("", "must be a mapping of kind %s (%s) or ConfigMap (v1)", Kind, APIVersion)
	case apiVersion == APIVersion && kind == Kind:
		r.belay(n, &cfg)
	case apiVersion == "v1" && kind == "ConfigMap":
		r.configMap(n, &cfg)
	default:
		r.errorf("", "kind %q of %q: must be %s of %s, or ConfigMap of v1", kind, apiVersion, Kind, APIVersion)
	}
	r.validate(cfg)
	return cfg, errors.Join(r.errs...)
}

// ParseConfigFile reads a file that holds one configuration, as ParseConfig
// does.
func ParseConfigFile(data []byte) (Config, error) {
	list, err := manifest.ReadFiles([]manifest.Input{{Data: data, Stream: true}})
	if err != nil {
		return defaults(), fmt.Errorf("reading the configuration: %w", err)
	}
	if len(list.Objects) != 1 {
		return defaults(), fmt.Errorf("reading the configuration: the file must hold one object, of kind %s (%s)", Kind, APIVersion)
	}
	return ParseConfig(list.Objects[0].Root())
}

// defaults gives the configuration that an empty one means.
func defaults() Config {
	var cfg Config
	setDefaults(reflect.ValueOf(&cfg).Elem())
	return cfg
}

// setDefaults gives the fields of a struct what their tags say. Pointers stay
// nil.
func setDefaults(v reflect.Value) {
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag
		switch {
		case f.Kind() == reflect.Struct:
			setDefaults(f)
		case tag.Get("default") != "":
			// The tags are the program's own, and a test reads them all.
			if err := setText(f, tag.Get("default")); err != nil {
				panic("belay: internal error: " + err.Error())
			}
		}
	}
}

// setText gives a scalar field the value that a text means.
func setText(f reflect.Value, text string) error {
	switch f.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		f.SetBool(b)
	case reflect.Int:
		i, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("must be a number")
		}
		f.SetInt(int64(i))
	default:
		f.SetString(text)
	}
	return nil
}

// A reader collects what is wrong with a configuration.
type reader struct{ errs []error }

func (r *reader) errorf(path, format string, a ...any) {
	if path != "" {
		path += ": "
	}
	r.errs = append(r.errs, fmt.Errorf("reading the configuration: %s%s", path, fmt.Sprintf(format, a...)))
}

// belay reads the options below spec.
func (r *reader) belay(n *manifest.Node, cfg *Config) {
	for k, v := range n.Pairs() {
		switch k.Value() {
		case "apiVersion", "kind", "metadata", "status":
		case "spec":
			r.fields(v, reflect.ValueOf(cfg).Elem(), "spec")
		default:
			r.errorf(k.Value(), "unknown field%s", nearest(k.Value(), []string{"spec", "metadata"}, ""))
		}
	}
}

// fields reads a mapping into a struct.
func (r *reader) fields(n *manifest.Node, into reflect.Value, path string) {
	if n.IsNull() {
		return
	}
	if !n.IsMapping() {
		r.errorf(path, "must be a mapping")
		return
	}
	seen := map[string]bool{}
	for k, v := range n.Pairs() {
		name := k.Value()
		at := path + "." + name
		f, tag, ok := fieldNamed(into, name)
		switch {
		case !ok:
			r.errorf(at, "unknown field%s", nearest(name, names(into.Type()), path+"."))
		case seen[name]:
			r.errorf(at, "is given twice")
		default:
			seen[name] = true
			r.value(v, f, tag, at)
		}
	}
}

// fieldNamed finds the field of a struct by the name that users write.
func fieldNamed(v reflect.Value, name string) (reflect.Value, reflect.StructTag, bool) {
	for i := range v.NumField() {
		if t := v.Type().Field(i); t.Tag.Get("json") == name {
			return v.Field(i), t.Tag, true
		}
	}
	return reflect.Value{}, "", false
}

func names(t reflect.Type) []string {
	out := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("json"))
	}
	return out
}

// value reads a node into a field.
func (r *reader) value(n *manifest.Node, f reflect.Value, tag reflect.StructTag, path string) {
	switch f.Kind() {
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
		setDefaults(f.Elem())
		r.fields(n, f.Elem(), path)
	case reflect.Struct:
		r.fields(n, f, path)
	case reflect.Slice:
		if f.Type().Elem().Kind() == reflect.Struct {
			r.structs(n, f, path)
			return
		}
		r.list(n, f, path)
	default:
		if n.IsNull() {
			return
		}
		if n.Kind() != manifest.Scalar || n.IsString() != (f.Kind() == reflect.String) {
			r.errorf(path, "must be %s", article(f.Kind()))
			return
		}
		r.text(n.Value(), f, tag, path)
	}
}

func article(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false, without quotes"
	case reflect.Int:
		return "a number, without quotes"
	default:
		return "a string"
	}
}

// list reads a list of strings.
func (r *reader) list(n *manifest.Node, f reflect.Value, path string) {
	if n.IsNull() {
		return
	}
	if !n.IsSequence() {
		r.errorf(path, "must be a list of strings")
		return
	}
	out := []string{}
	for i, e := range n.Elems() {
		s, ok := e.Text()
		if !ok {
			r.errorf(fmt.Sprintf("%s[%d]", path, i), "must be a string")
			continue
		}
		out = append(out, s)
	}
	f.Set(reflect.ValueOf(out))
}

// structs reads a list of mappings.
func (r *reader) structs(n *manifest.Node, f reflect.Value, path string) {
	if n.IsNull() {
		return
	}
	if !n.IsSequence() {
		r.errorf(path, "must be a list of mappings")
		return
	}
	out := reflect.MakeSlice(f.Type(), n.Len(), n.Len())
	for i, e := range n.Elems() {
		at := fmt.Sprintf("%s[%d]", path, i)
		setDefaults(out.Index(i))
		if !e.IsMapping() {
			r.errorf(at, "must be a mapping")
			continue
		}
		r.fields(e, out.Index(i), at)
	}
	f.Set(out)
}

// text reads the text of a scalar, and holds it against the tags.
func (r *reader) text(text string, f reflect.Value, tag reflect.StructTag, path string) {
	if err := setText(f, text); err != nil {
		r.errorf(path, "%q: %v", text, err)
		return
	}
	if enum := tag.Get("enum"); enum != "" {
		allowed := strings.Split(enum, ",")
		if !slices.Contains(allowed, text) {
			r.errorf(path, "%q: must be one of %s%s", text, strings.Join(allowed, ", "), nearest(text, allowed, ""))
		}
	}
	if f.Kind() != reflect.Int {
		return
	}
	for _, bound := range []struct {
		name string
		bad  func(v, b int) bool
	}{{"min", func(v, b int) bool { return v < b }}, {"max", func(v, b int) bool { return v > b }}} {
		b, err := strconv.Atoi(tag.Get(bound.name))
		if err == nil && bound.bad(int(f.Int()), b) {
			r.errorf(path, "%s: must be between %s and %s", text, tag.Get("min"), tag.Get("max"))
		}
	}
}

// configMap reads flat keys, such as kpt fn eval makes of key=value.
func (r *reader) configMap(n *manifest.Node, cfg *Config) {
	if !n.Get("binaryData").IsNull() {
		r.errorf("binaryData", "is not read (put options into data)")
	}
	data := n.Get("data")
	if data.IsNull() {
		return
	}
	if !data.IsMapping() {
		r.errorf("data", "must be a mapping of options such as digests.mode to strings")
		return
	}
	seen := map[string]bool{}
	for k, v := range data.Pairs() {
		name := k.Value()
		at := "data[" + name + "]"
		switch {
		case seen[name]:
			r.errorf(at, "is given twice")
		case v.Kind() != manifest.Scalar:
			r.errorf(at, "must be a string")
		default:
			seen[name] = true
			r.option(name, v.Value(), cfg, at)
		}
	}
}

// Override gives a configuration with other values for some options, each
// written flat: digests.mode=update.
func Override(cfg Config, settings []string) (Config, error) {
	if len(settings) == 0 {
		return cfg, nil
	}
	r := reader{}
	if cfg.Moniker != nil {
		own := *cfg.Moniker
		cfg.Moniker = &own
	}
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			r.errorf(s, "must be option=value, such as digests.mode=update")
			continue
		}
		r.option(name, value, &cfg, name)
	}
	r.validate(cfg)
	return cfg, errors.Join(r.errs...)
}

// AddConfigurations gives a configuration with the nameReference of a file of
// kustomize's configurations; what else the file holds is for kustomize.
// https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/configurations/
func AddConfigurations(cfg Config, data []byte) (Config, error) {
	var file struct {
		NameReference []version.NameReference `json:"nameReference"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return cfg, fmt.Errorf("is no configuration of kustomize: %w", err)
	}
	if len(file.NameReference) == 0 {
		return cfg, errors.New("has no nameReference")
	}
	cfg.Versions.NameReference = slices.Concat(cfg.Versions.NameReference, file.NameReference)
	return cfg, cfg.Versions.Validate()
}

// option reads one flat option.
func (r *reader) option(name, text string, cfg *Config, at string) {
	var known []string
	for _, o := range AllOptions() {
		switch {
		case strings.Contains(o.Path, "[]"):
		case o.Type != listOfMappings:
			known = append(known, o.Path)
		case o.Path == name:
			r.errorf(at, "a list of mappings cannot be written flat: use kind %s (%s)", Kind, APIVersion)
			return
		}
	}
	if !slices.Contains(known, name) {
		r.errorf(at, "unknown option%s", nearest(name, known, ""))
		return
	}
	r.flat(text, cfg, strings.Split(name, "."), at)
}

// flat reads the text of one flat option. A list is separated by commas.
func (r *reader) flat(text string, cfg *Config, keys []string, at string) {
	v := reflect.ValueOf(cfg).Elem()
	var tag reflect.StructTag
	for _, key := range keys {
		v, tag, _ = fieldNamed(v, key)
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
				setDefaults(v.Elem())
			}
			v = v.Elem()
		}
	}
	if v.Kind() != reflect.Slice {
		r.text(text, v, tag, at)
		return
	}
	out := []string{}
	for s := range strings.SplitSeq(text, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	v.Set(reflect.ValueOf(out))
}

// validate asks each step whether its configuration makes sense.
func (r *reader) validate(cfg Config) {
	errs := []error{cfg.Digests.Validate(), cfg.Versions.Validate()}
	if cfg.Moniker != nil {
		errs = append(errs, cfg.Moniker.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.errorf("", "%s", line)
		}
	}
}

// nearest gives "; did you mean x?" for the known name that is least different,
// if it is near enough to be a slip of the pen.
func nearest(name string, known []string, prefix string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, best)
}

// distance counts the insertions, deletions and replacements between a and b.
// https://en.wikipedia.org/wiki/Levenshtein_distance
func distance(a, b string) int {
	line := make([]int, len(b)+1)
	for j := range line {
		line[j] = j
	}
	for i := range len(a) {
		diagonal := line[0]
		line[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = line[j+1]
			line[j+1] = min(cost, line[j]+1, line[j+1]+1)
		}
	}
	return line[len(b)]
}
