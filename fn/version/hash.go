package version

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// A fieldError says which field keeps an object from being hashed. Its message
// never holds a value: it may be that of a Secret.
type fieldError struct {
	node    *manifest.Node
	message string
}

// Error gives the message.
func (e fieldError) Error() string { return e.message }

// Hash gives the content hash of an object, sha256: and 64 hexadecimal digits:
// SHA-256 over canonical JSON. For ConfigMap and Secret that is of kind, type,
// data and binaryData, with stringData folded into data as the API server does;
// for other kinds everything but metadata, status and what belay itself writes
// into pod templates. Names, labels, annotations, immutable, comments, order and
// quoting do not count. Values of data that are no strings are an error, as they
// are for the API server.
// https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1/
func Hash(o *manifest.Object) (string, error) {
	var content any
	var err error
	switch {
	case isCore(o, "ConfigMap"):
		content, err = configMapContent(o)
	case isCore(o, "Secret"):
		content, err = secretContent(o)
	default:
		s := subject{}
		s.provides(o)
		without := o.Root().Lookup(s.secretAt...)
		if o.Annotation(manifest.SourceCapacityAnnotation) == "true" {
			without = o.Root().Lookup("spec", "replicas") // it is what runs, not what is asked for
		}
		content = otherContent(o.Root(), without)
	}
	if err != nil {
		return "", err
	}
	// Maps are written with sorted keys, and nothing here fails to encode.
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func isCore(o *manifest.Object, kind string) bool {
	return o.ID.Kind == kind && o.ID.Group() == ""
}

func configMapContent(o *manifest.Object) (any, error) {
	data, err := stringMap(o.Root().Get("data"), false)
	binary, err2 := stringMap(o.Root().Get("binaryData"), true)
	return map[string]any{"kind": "ConfigMap", "data": data, "binaryData": binary}, errors.Join(err, err2)
}

func secretContent(o *manifest.Object) (any, error) {
	data, err := stringMap(o.Root().Get("data"), true)
	plain, err2 := stringMap(o.Root().Get("stringData"), false)
	for k, v := range plain {
		if data == nil {
			data = map[string]string{}
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	kind := o.Root().Get("type").Value()
	if kind == "Opaque" {
		kind = "" // the default
	}
	return map[string]any{"kind": "Secret", "type": kind, "data": data}, errors.Join(err, err2)
}

// stringMap reads a map of strings. Encoded values are decoded and encoded
// again, so that line breaks inside of base64 do not count.
func stringMap(n *manifest.Node, encoded bool) (map[string]string, error) {
	if n.IsNull() {
		return nil, nil
	}
	if !n.IsMapping() {
		return nil, fieldError{n, "is not a mapping"}
	}
	var out map[string]string
	var errs []error
	for k, v := range n.Pairs() {
		value, ok := v.Text()
		if !ok && !v.IsNull() {
			errs = append(errs, fieldError{v, "is not a string (put it in quotes)"})
			continue
		}
		if encoded {
			raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
			if err != nil {
				errs = append(errs, fieldError{v, "is not base64"})
				continue
			}
			value = base64.StdEncoding.EncodeToString(raw)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k.Value()] = value
	}
	return out, errors.Join(errs...)
}

// otherContent gives everything but metadata, status, and without, which is the
// name of what is made of the object, or a number of replicas that is taken over.
func otherContent(root, without *manifest.Node) any {
	out := map[string]any{}
	for k, v := range root.Pairs() {
		if key := k.Value(); key != "metadata" && key != "status" {
			out[key] = plainValue(v, without)
		}
	}
	return out
}

// plainValue gives a value as JSON holds it. Numbers and booleans are kept
// apart from strings by a list around their text.
func plainValue(n, without *manifest.Node) any {
	switch {
	case n.IsMapping():
		out := map[string]any{}
		for k, v := range n.Pairs() {
			if v == without {
				continue
			}
			if k.Value() == "metadata" {
				if m := templateMetadata(v, without); m != nil {
					out["metadata"] = m
				}
				continue
			}
			out[k.Value()] = plainValue(v, without)
		}
		return out
	case n.IsSequence():
		out := make([]any, 0, n.Len())
		for _, e := range n.Elems() {
			out = append(out, plainValue(e, without))
		}
		return out
	case n.IsNull():
		return nil
	case n.IsString():
		return n.Value()
	}
	return []any{n.Value()}
}

// templateMetadata gives the metadata of a pod template without what belay
// writes there, and without maps that hold nothing else.
func templateMetadata(n, without *manifest.Node) any {
	if !n.IsMapping() {
		return plainValue(n, without)
	}
	out := map[string]any{}
	for k, v := range n.Pairs() {
		key := k.Value()
		if v == without {
			continue
		}
		if key != "annotations" && key != "labels" || !v.IsMapping() {
			out[key] = plainValue(v, without)
			continue
		}
		kept := map[string]any{}
		for name, value := range v.Pairs() {
			if !isOurs(name.Value()) {
				kept[name.Value()] = plainValue(value, without)
			}
		}
		if len(kept) > 0 {
			out[key] = kept
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// isOurs tells whether belay writes a label or an annotation itself.
func isOurs(key string) bool {
	switch key {
	case "app.kubernetes.io/name", "app.kubernetes.io/managed-by":
		return true
	}
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "moniker.spinnaker.io" || prefix == "artifact.spinnaker.io" || prefix == "fn.belay.dev"
}

// suffix gives the ten characters that hash naming appends: the first hex
// digits of the hash, those that could form words replaced, as kustomize does.
// https://github.com/kubernetes-sigs/kustomize/blob/master/api/hasher/hasher.go
func suffix(content string) string {
	digits := strings.TrimPrefix(content, "sha256:")[:10]
	return strings.NewReplacer("0", "g", "1", "h", "3", "k", "a", "m", "e", "t").Replace(digits)
}
