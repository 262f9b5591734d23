package moniker

import (
	"regexp"
	"strconv"
	"strings"
)

// A Name is what Frigga's grammar reads from a name: app-stack-detail-v003.
// https://github.com/Netflix/frigga/blob/master/src/main/java/com/netflix/frigga/Names.java
type Name struct {
	App, Stack, Detail string
	// Cluster is the name without its sequence.
	Cluster string
	// Sequence is the number behind -v; -1 for none.
	Sequence int
}

var (
	pushPattern   = regexp.MustCompile(`^([-a-zA-Z0-9._~^]*)-v([0-9]{3,6})$`)
	systemPattern = regexp.MustCompile(`^(system:.*)-v([0-9]{3,6})$`)
	namePattern   = regexp.MustCompile(`^([a-zA-Z0-9._]+)(?:-([a-zA-Z0-9._]*)(?:-([-a-zA-Z0-9._~^]*?))?)?$`)
)

// ParseName reads a name. What the grammar does not know gives an empty Name with
// Sequence -1. Names that begin with system: are Kubernetes' own, and belong to
// the application system.
// https://github.com/spinnaker/clouddriver/blob/master/clouddriver-kubernetes/src/main/java/com/netflix/spinnaker/clouddriver/kubernetes/names/KubernetesResourceAwareNames.java
func ParseName(name string) Name {
	system := strings.HasPrefix(name, "system:")
	pattern := pushPattern
	if system {
		pattern = systemPattern
	}
	n := Name{Cluster: name, Sequence: -1}
	if push := pattern.FindStringSubmatch(name); push != nil {
		n.Cluster = push[1]
		n.Sequence, _ = strconv.Atoi(push[2]) // six digits always fit
	}
	if system {
		n.App = "system"
		return n
	}
	parts := namePattern.FindStringSubmatch(n.Cluster)
	if parts == nil {
		return Name{Sequence: -1}
	}
	n.App, n.Stack, n.Detail = parts[1], parts[2], parts[3]
	return n
}
