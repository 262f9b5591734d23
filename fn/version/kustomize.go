package version

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/belay-krm/belay/fn/manifest"
)

// hashedByKustomize tells whether the name of a ConfigMap or Secret ends in the
// hash that kustomize gives its content: then it is a version already, whose
// name kustomize will change when the content does.
func hashedByKustomize(o *manifest.Object) bool {
	i := strings.LastIndexByte(o.ID.Name, '-')
	if i < 0 || len(o.ID.Name)-i != len("-7f9d2k8c9m") {
		return false
	}
	return o.ID.Name[i+1:] == kustomizeSuffix(o)
}

// kustomizeSuffix gives the suffix that kustomize's generators append; "" for
// kinds other than ConfigMap and Secret, and for values that are no strings. That
// kustomize leaves the name out of the hash, although it means to put it in, is
// part of what users depend on.
// https://github.com/kubernetes-sigs/kustomize/blob/master/api/hasher/hasher.go
func kustomizeSuffix(o *manifest.Object) string {
	root := o.Root()
	content := map[string]any{"kind": o.ID.Kind, "name": "", "data": rawValues(root.Get("data"))}
	switch {
	case isCore(o, "ConfigMap"):
		if binary := root.Get("binaryData"); binary.IsMapping() {
			content["binaryData"] = rawValues(binary)
		}
	case isCore(o, "Secret"):
		content["type"] = root.Get("type").Value()
		if plain := root.Get("stringData"); plain.IsMapping() {
			content["stringData"] = rawValues(plain)
		}
	default:
		return ""
	}
	data, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return suffix("sha256:" + hex.EncodeToString(sum[:]))
}

// rawValues gives a map as it stands, "" for none, which is what kustomize puts
// in its place.
func rawValues(n *manifest.Node) any {
	if !n.IsMapping() {
		return ""
	}
	out := map[string]string{}
	for k, v := range n.Pairs() {
		out[k.Value()] = v.Value()
	}
	return out
}
