package moniker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseName holds names against Frigga's rules.
func TestParseName(t *testing.T) {
	none := Name{Sequence: -1}
	n := func(app, stack, detail, cluster string, sequence int) Name {
		return Name{App: app, Stack: stack, Detail: detail, Cluster: cluster, Sequence: sequence}
	}
	for name, want := range map[string]Name{
		"app":                       n("app", "", "", "app", -1),
		"app-v000":                  n("app", "", "", "app", 0),
		"app-v001":                  n("app", "", "", "app", 1),
		"app-v999":                  n("app", "", "", "app", 999),
		"app-v1000":                 n("app", "", "", "app", 1000),
		"app-v123456":               n("app", "", "", "app", 123456),
		"app-v1234567":              n("app", "v1234567", "", "app-v1234567", -1),
		"app-v0000001":              n("app", "v0000001", "", "app-v0000001", -1),
		"app-v1":                    n("app", "v1", "", "app-v1", -1),
		"app-v01":                   n("app", "v01", "", "app-v01", -1),
		"app-v00a":                  n("app", "v00a", "", "app-v00a", -1),
		"app-V001":                  n("app", "V001", "", "app-V001", -1),
		"appv001":                   n("appv001", "", "", "appv001", -1),
		"app-prod":                  n("app", "prod", "", "app-prod", -1),
		"app-prod-v002":             n("app", "prod", "", "app-prod", 2),
		"app-prod-canary":           n("app", "prod", "canary", "app-prod-canary", -1),
		"app-prod-canary-v003":      n("app", "prod", "canary", "app-prod-canary", 3),
		"app-prod-canary-blue":      n("app", "prod", "canary-blue", "app-prod-canary-blue", -1),
		"app-prod-a-b-c-v010":       n("app", "prod", "a-b-c", "app-prod-a-b-c", 10),
		"app--detail":               n("app", "", "detail", "app--detail", -1),
		"app--detail-v004":          n("app", "", "detail", "app--detail", 4),
		"app-":                      n("app", "", "", "app-", -1),
		"app--":                     n("app", "", "", "app--", -1),
		"app-stack-":                n("app", "stack", "", "app-stack-", -1),
		"app---d":                   n("app", "", "-d", "app---d", -1),
		"app--v001":                 n("app", "", "", "app-", 1),
		"a.b":                       n("a.b", "", "", "a.b", -1),
		"a_b-c_d":                   n("a_b", "c_d", "", "a_b-c_d", -1),
		"a.b-c.d-e.f-v005":          n("a.b", "c.d", "e.f", "a.b-c.d-e.f", 5),
		"app-stack-det~ail":         n("app", "stack", "det~ail", "app-stack-det~ail", -1),
		"app-stack-det^ail-v006":    n("app", "stack", "det^ail", "app-stack-det^ail", 6),
		"app~x":                     none,
		"app~x-v007":                none,
		"app-st~ack":                none,
		"":                          none,
		"-v001":                     none,
		"-app":                      none,
		"v001":                      n("v001", "", "", "v001", -1),
		"v001-v002":                 n("v001", "", "", "v001", 2),
		"app-v001-v002":             n("app", "v001", "", "app-v001", 2),
		"app-v001-detail":           n("app", "v001", "detail", "app-v001-detail", -1),
		"kube-root-ca.crt":          n("kube", "root", "ca.crt", "kube-root-ca.crt", -1),
		"my app":                    none,
		"a:b":                       none,
		"system:node":               n("system", "", "", "system:node", -1),
		"system:node-v008":          n("system", "", "", "system:node", 8),
		"system:a:b":                n("system", "", "", "system:a:b", -1),
		"system:aggregate-to-admin": n("system", "", "", "system:aggregate-to-admin", -1),
		"systemd-x":                 n("systemd", "x", "", "systemd-x", -1),
		"app-config-7f9d2k8c9m":     n("app", "config", "7f9d2k8c9m", "app-config-7f9d2k8c9m", -1),
	} {
		if diff := cmp.Diff(want, ParseName(name)); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", name, diff)
		}
	}
}
