package fn

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/moniker"
	"github.com/belay-krm/belay/fn/strategy"
	"github.com/belay-krm/belay/fn/version"
)

var update = flag.Bool("update", false, "rewrite the generated documents")

const belay = "apiVersion: fn.belay.dev/v1alpha1\nkind: Belay\n"

func wantDefaults() Config {
	return Config{
		Digests:  digest.Config{Mode: "missing", Tag: "keep", Jobs: 16, Network: digest.NetworkConfig{Timeout: 10, Deadline: 300}},
		Versions: version.Config{Naming: "hash", Immutable: true, Unreferenced: "keep", Hash: "belay", Source: "rename", Audit: "warn"},
		Strategy: strategy.Config{Deployer: "none"},
	}
}

// TestParseConfigDefaults wants the defaults for everything that says nothing.
func TestParseConfigDefaults(t *testing.T) {
	if got, err := ParseConfig(nil); err != nil || !cmp.Equal(got, wantDefaults()) {
		t.Errorf("without a configuration: %v\n%s", err, cmp.Diff(wantDefaults(), got))
	}
	for _, config := range []string{
		"null", "{}", "",
		"{apiVersion: v1, kind: ConfigMap}", "{apiVersion: v1, kind: ConfigMap, data: {}}", "{apiVersion: v1, kind: ConfigMap, data: null, metadata: {name: x}}",
		"{apiVersion: fn.belay.dev/v1alpha1, kind: Belay}", "{apiVersion: fn.belay.dev/v1alpha1, kind: Belay, spec: }", "{apiVersion: fn.belay.dev/v1alpha1, kind: Belay, spec: {digests: {}, versions: null, digests: {mode: }}}",
	} {
		list, err := manifest.Read([]byte("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\nfunctionConfig: " + config + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseConfig(list.FunctionConfig)
		if err != nil && !strings.Contains(err.Error(), "is given twice") || !cmp.Equal(got, wantDefaults()) {
			t.Errorf("%s: %v\n%s", config, err, cmp.Diff(wantDefaults(), got))
		}
	}
}

// TestParseConfigKinds wants both kinds to mean the same.
func TestParseConfigKinds(t *testing.T) {
	want := wantDefaults()
	want.Digests.Mode, want.Digests.Jobs, want.Digests.Skip = "locked", 4, []string{"a/**", "registry:5000/b"}
	want.Digests.Network.Allow, want.Digests.Network.Deadline = []string{"registry:5000"}, 60
	want.Versions.Immutable, want.Versions.Kinds = false, []string{"Pod"}
	want.Moniker = &moniker.Config{Application: "shop", ManagedBy: "spinnaker", Labels: true}
	for name, text := range map[string]string{
		"Belay": belay + `spec:
  digests: {mode: locked, jobs: 4, skip: [a/**, "registry:5000/b"], network: {allow: ["registry:5000"], deadline: 60}}
  versions: {immutable: false, kinds: [Pod]}
  moniker: {application: shop, managedBy: spinnaker, templateLabels: false}
`,
		"ConfigMap": `apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data:
  digests.mode: locked
  digests.jobs: "4"
  digests.skip: a/**, registry:5000/b
  digests.network.allow: registry:5000
  digests.network.deadline: "60"
  versions.immutable: "false"
  versions.kinds: Pod
  moniker.application: shop
  moniker.managedBy: spinnaker
  moniker.templateLabels: "false"
`,
	} {
		got, err := ParseConfigFile([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestParseConfigLists wants lists of mappings to be read, each with its
// defaults.
func TestParseConfigLists(t *testing.T) {
	got, err := ParseConfigFile([]byte(belay + `spec:
  digests:
    rules:
    - {images: [quay.io/**], tags: [main], mode: update}
    - {labels: "app in (a, b)", tag: drop, platforms: [linux/amd64]}
    fields:
    - {kind: HelmRelease, path: spec/values/image, parts: {digest: ""}}
    - {group: example.com, path: spec/image}
    network:
      registries:
      - {host: docker.io, mirror: harbor.example.com/hub}
`))
	want := wantDefaults()
	want.Digests.Rules = []digest.Rule{{Images: []string{"quay.io/**"}, Tags: []string{"main"}, Mode: "update"}, {Labels: "app in (a, b)", Tag: "drop", Platforms: []string{"linux/amd64"}}}
	want.Digests.Fields = []digest.Field{{Kind: "HelmRelease", Path: "spec/values/image", Parts: &digest.Parts{Registry: "registry", Repository: "repository", Tag: "tag"}}, {Group: "example.com", Path: "spec/image"}}
	want.Digests.Network.Registries = []digest.Registry{{Host: "docker.io", Mirror: "harbor.example.com/hub", ResolveAt: "mirror"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestParseConfigErrors(t *testing.T) {
	tests := map[string]struct {
		in   string
		want []string
	}{
		"all at once, in order": {belay + "spec:\n  digest: {}\n  digests: {job: 1, mode: looked}\nspecs: {}\n", []string{
			"spec.digest: unknown field; did you mean spec.digests?",
			"spec.digests.job: unknown field; did you mean spec.digests.jobs?",
			`spec.digests.mode: "looked": must be one of missing, update, verify, locked, off; did you mean locked?`,
			"specs: unknown field; did you mean spec?",
		}},
		"nothing near":   {belay + "spec: {zzzzzz: 1}\n", []string{"spec.zzzzzz: unknown field"}},
		"twice":          {belay + "spec: {digests: {mode: off}, digests: {}}\n", []string{"spec.digests: is given twice"}},
		"types":          {belay + "spec:\n  digests: {mode: true, jobs: \"4\", skip: a}\n  versions: {immutable: 1, kinds: [1]}\n", []string{"spec.digests.mode: must be a string", "spec.digests.jobs: must be a number, without quotes", "spec.digests.skip: must be a list of strings", `spec.versions.immutable: "1": must be true or false`, "spec.versions.kinds[0]: must be a string"}},
		"range":          {belay + "spec: {digests: {jobs: 1000}}\n", []string{"spec.digests.jobs: 1000: must be between 1 and 256"}},
		"steps":          {belay + "spec: {digests: {skip: [a@b]}, versions: {kinds: [\"a b\"]}, moniker: {application: \"a b\"}}\n", []string{`digests.skip[0]: "a@b": a pattern names repositories, without tag or digest (of a whole registry: host:port/**)`, `versions.kinds[0]: "a b" is not a kind (write Kind or Kind.group)`, `moniker.application: "a b" cannot be the value of a label (up to 63 letters, digits, -, _ and .)`}},
		"spec is a list": {belay + "spec: []\n", []string{"spec: must be a mapping"}},
		"lists of mappings": {belay + "spec: {digests: {rules: {}, fields: [a], network: {registries: [{hots: a}]}}}\n", []string{
			"spec.digests.rules: must be a list of mappings",
			"spec.digests.fields[0]: must be a mapping",
			"spec.digests.network.registries[0].hots: unknown field; did you mean spec.digests.network.registries[0].host?",
			`digests.fields[0].path: "": must be keys separated by /, such as spec/image`,
			`digests.network.registries[0].host: "": must be the host of a registry, with port if it has one`,
		}},
		"a list of mappings, flat": {"apiVersion: v1\nkind: ConfigMap\ndata: {digests.rules: x}\n", []string{"data[digests.rules]: a list of mappings cannot be written flat: use kind Belay (fn.belay.dev/v1alpha1)"}},
		"other kind":               {"apiVersion: fn.belay.dev/v1\nkind: Belay\n", []string{`kind "Belay" of "fn.belay.dev/v1": must be Belay of fn.belay.dev/v1alpha1, or ConfigMap of v1`}},
		"flat":                     {"apiVersion: v1\nkind: ConfigMap\ndata: {digest.mode: off, digests: x, versions.naming: {}}\nbinaryData: {a: b}\n", []string{"binaryData: is not read (put options into data)", "data[digest.mode]: unknown option; did you mean digests.mode?", "data[digests]: unknown option", "data[versions.naming]: must be a string"}},
		"data is a list":           {"apiVersion: v1\nkind: ConfigMap\ndata: [a]\n", []string{"data: must be a mapping of options such as digests.mode to strings"}},
		"two objects":              {belay + "---\n" + belay, []string{"the file must hold one object, of kind Belay (fn.belay.dev/v1alpha1)"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseConfigFile([]byte(tt.in))
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.Split(err.Error(), "\n")
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], "reading the configuration: ")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("errors (-want +got)\n%s", diff)
			}
		})
	}
}

// TestSchema keeps the JSON Schema in docs in step with the types.
func TestSchema(t *testing.T) {
	const path = "../docs/belay.schema.json"
	got, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/belay.schema.json is stale (run make golden): (-want +got)\n%s", diff)
	}
}

// TestOptions wants every option documented.
func TestOptions(t *testing.T) {
	for _, o := range AllOptions() {
		if o.Doc == "" || strings.HasSuffix(o.Doc, ".") || o.Type == "" {
			t.Errorf("%s: documented as %q", o.Path, o.Doc)
		}
	}
}

// FuzzParseConfig wants no configuration to make it panic, and one without
// errors to be one that the steps accept.
func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{belay, belay + "spec: {digests: {mode: locked, skip: [a]}, moniker: {}}\n", "apiVersion: v1\nkind: ConfigMap\ndata: {digests.jobs: \"1\", moniker.stack: x}\n", "a: b", "[]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := ParseConfigFile([]byte(text))
		if err == nil && (cfg.Digests.Validate() != nil || cfg.Versions.Validate() != nil || cfg.Digests.Jobs < 1) {
			t.Errorf("accepted %q as %+v", text, cfg)
		}
	})
}
