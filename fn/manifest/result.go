package manifest

import (
	"cmp"
	"strconv"
	"strings"
)

// A Severity says how much a [Result] matters. The zero value is not valid.
type Severity string

// The severities of the KRM function specification.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// A Result is one finding about an object, in the terms of the KRM function
// specification. It never holds the value of a Secret.
// https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md
type Result struct {
	Severity Severity
	// Step says what was being done, such as "pinning images".
	Step string
	// Object is what the finding is about; nil for the run as a whole.
	Object *Object
	// Field is the path of the field; "" for the object as a whole.
	Field string
	// Line is the line of the field in its file, 0 where that is not known.
	Line int
	// Current is the value of the field; "" to leave it out.
	Current string
	// Message is the cause and the next step, in lower case without full stop.
	Message string
	// Tags hold what machines act on, such as the class of a failure. May be nil.
	Tags map[string]string
}

// String gives the finding as one line: step, resource, field and message.
func (r Result) String() string {
	parts := make([]string, 0, 4)
	if r.Step != "" {
		parts = append(parts, r.Step)
	}
	if r.Object != nil {
		parts = append(parts, r.Object.ID.String())
	}
	if r.Field != "" {
		parts = append(parts, r.Field)
	}
	return strings.Join(append(parts, r.Message), ": ")
}

// field gives r as an item of the results of a ResourceList.
func (r Result) field() Map {
	m := Map{{"message", r.Message}, {"severity", string(r.Severity)}}
	if r.Object != nil {
		m = append(m, r.Object.resultFields()...)
	}
	if r.Object != nil && r.Field != "" {
		f := Map{{"path", r.Field}}
		if r.Current != "" {
			f = append(f, Pair{"currentValue", r.Current})
		}
		m = append(m, Pair{"field", f})
	}
	if tags := r.tags(); len(tags) > 0 {
		m = append(m, Pair{"tags", tags})
	}
	return m
}

func (r Result) tags() Map {
	var m Map
	if r.Step != "" {
		m = append(m, Pair{"step", r.Step})
	}
	for _, k := range sortedKeys(r.Tags) {
		m = append(m, Pair{k, r.Tags[k]})
	}
	return m
}

// resultFields gives the resourceRef and the file of a result about o.
func (o *Object) resultFields() Map {
	ref := Map{{"apiVersion", o.ID.APIVersion}, {"kind", o.ID.Kind}, {"name", o.ID.Name}}
	if o.ID.Namespace != "" {
		ref = append(ref, Pair{"namespace", o.ID.Namespace})
	}
	m := Map{{"resourceRef", ref}}
	if o.File.Path != "" {
		f := Map{{"path", o.File.Path}}
		if o.File.Index > 0 {
			f = append(f, Pair{"index", o.File.Index})
		}
		m = append(m, Pair{"file", f})
	}
	return m
}

// fileOf reads where an item of a ResourceList came from.
func fileOf(o *Object) File {
	f := File{Path: cmp.Or(o.Annotation(PathAnnotation), o.Annotation(legacyPathAnnotation))}
	index := cmp.Or(o.Annotation(IndexAnnotation), o.Annotation(legacyIndexAnnotation))
	if i, err := strconv.Atoi(index); err == nil && i >= 0 {
		f.Index = i
	}
	return f
}
