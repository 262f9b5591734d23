package version

import (
	"fmt"
	"strings"
)

// A Config says what is versioned, and how. Its zero value is not valid;
// fn.ParseConfig gives the defaults.
type Config struct {
	// Naming is hash, sequence or off.
	Naming string `json:"naming" enum:"hash,sequence,off" default:"hash" doc:"hash: app-config-7f9d2k8c9m, which needs no history; sequence: app-config-v000, v001, … as Spinnaker does, kept in the lock; off: nothing is versioned"`
	// Immutable marks versions as immutable.
	Immutable bool `json:"immutable" default:"true" doc:"mark versions with immutable: true"`
	// Unreferenced is keep or version.
	Unreferenced string `json:"unreferenced" enum:"keep,version" default:"keep" doc:"what happens to a ConfigMap or Secret that nothing in the package refers to: keep its name, or version it too"`
	// DefaultNamespace is the namespace that an absent one stands for.
	DefaultNamespace string `json:"defaultNamespace" doc:"the namespace that objects without one are deployed to, so that app-config without a namespace and app-config in that one are the same"`
	// Kinds are versioned besides ConfigMap and Secret.
	Kinds []string `json:"kinds" doc:"more kinds to version, such as Pod or ReplicaSet.apps, as Spinnaker does"`
}

// Validate checks the kinds.
func (c Config) Validate() error {
	for i, k := range c.Kinds {
		if k == "" || strings.ContainsAny(k, " /:") {
			return fmt.Errorf("versions.kinds[%d]: %q is not a kind (write Kind or Kind.group)", i, k)
		}
	}
	return nil
}
