package fn

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// An Option is one documented option.
type Option struct {
	// Path is what a ConfigMap calls it, and where it is below spec.
	Path string
	// Type is string, boolean, integer, list of strings or list of mappings. The
	// options of the mappings of a list have paths with [].
	Type string
	// Default is what is meant when it is not given; "" for nothing.
	Default string
	// Allowed are the values of an enumeration; nil where any will do.
	Allowed []string
	// Doc says what it does.
	Doc string
}

// AllOptions gives every option in the order of the documentation.
func AllOptions() []Option { return optionsOf(reflect.TypeFor[Config](), "") }

func optionsOf(t reflect.Type, prefix string) []Option {
	var out []Option
	for i := range t.NumField() {
		f := t.Field(i)
		path := prefix + f.Tag.Get("json")
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct {
			out = append(out, optionsOf(kind, path+".")...)
			continue
		}
		var more []Option
		if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct {
			more = optionsOf(kind.Elem(), path+"[].")
		}
		o := Option{Path: path, Type: typeName(kind), Default: f.Tag.Get("default"), Doc: f.Tag.Get("doc")}
		if enum := f.Tag.Get("enum"); enum != "" {
			o.Allowed = strings.Split(enum, ",")
		}
		out = append(append(out, o), more...)
	}
	return out
}

const listOfMappings = "list of mappings"

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int:
		return "integer"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return listOfMappings
		}
		return "list of strings"
	default:
		return "string"
	}
}

// Schema gives the JSON Schema of kind Belay, made from the types that
// ParseConfig reads into. https://json-schema.org/draft/2020-12
func Schema() ([]byte, error) {
	out, err := json.MarshalIndent(map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"$id":                  "https://github.com/belay-krm/belay/blob/main/docs/belay.schema.json",
		"title":                Kind,
		"description":          "Configuration of belay, as a functionConfig or in belay.yaml.",
		"type":                 "object",
		"required":             []string{"apiVersion", "kind"},
		"additionalProperties": false,
		"properties": map[string]any{
			"apiVersion": map[string]any{"const": APIVersion},
			"kind":       map[string]any{"const": Kind},
			"metadata":   map[string]any{"type": "object"},
			"status":     map[string]any{"type": "object"},
			"spec":       schemaOf(reflect.TypeFor[Config]()),
		},
	}, "", "  ")
	return append(out, '\n'), err
}

// schemaOf gives the schema of a struct.
func schemaOf(t reflect.Type) map[string]any {
	properties := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		properties[f.Tag.Get("json")] = fieldSchema(f)
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func fieldSchema(f reflect.StructField) map[string]any {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return schemaOf(t)
	}
	s := map[string]any{"type": typeName(t), "description": f.Tag.Get("doc")}
	if t.Kind() == reflect.Slice {
		s["type"], s["items"] = "array", map[string]any{"type": "string"}
		if t.Elem().Kind() == reflect.Struct {
			s["items"] = schemaOf(t.Elem())
		}
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		s["enum"] = strings.Split(enum, ",")
	}
	for tag, keyword := range map[string]string{"min": "minimum", "max": "maximum"} {
		if n, err := strconv.Atoi(f.Tag.Get(tag)); err == nil {
			s[keyword] = n
		}
	}
	switch d := f.Tag.Get("default"); {
	case d == "":
	case t.Kind() == reflect.String:
		s["default"] = d
	default:
		s["default"] = json.RawMessage(d)
	}
	return s
}
