package version

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

const user = `---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  containers:
  - name: a
    envFrom:
    - configMapRef: {name: c}
    - secretRef: {name: s}
`

func read(t *testing.T, text string) *manifest.List {
	t.Helper()
	list, err := manifest.ReadFiles([]manifest.Input{{Path: "in.yaml", Data: []byte(text), Stream: true}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// rename runs Rename with the defaults but for change; a nil lock is a new one.
func rename(t *testing.T, list *manifest.List, l *lock.Lock, change func(*Config)) {
	t.Helper()
	cfg := Config{Naming: "hash", Immutable: true, Unreferenced: "keep"}
	if change != nil {
		change(&cfg)
	}
	if l == nil {
		l = &lock.Lock{}
	}
	Rename(list, cfg, map[string]*lock.Lock{"": l}, kept(true))
}

func sequence(c *Config) { c.Naming = "sequence" }

func names(list *manifest.List) []string {
	var out []string
	for _, o := range list.Objects {
		out = append(out, o.Name())
	}
	return out
}

// TestHash wants equal hashes for equal content, however it is written, and
// other ones for other content.
func TestHash(t *testing.T) {
	const cm = "apiVersion: v1\nkind: ConfigMap\n"
	const secret = "apiVersion: v1\nkind: Secret\n"
	groups := [][]string{
		{
			cm + "metadata: {name: a}\ndata:\n  x: \"1\"\n  y: |\n    text\n",
			cm + "metadata: {name: b, namespace: n, labels: {l: m}, annotations: {a: b}}\nimmutable: true\n# c\ndata: {y: \"text\\n\", 'x': '1'}\nbinaryData: {}\n",
			"{\"kind\": \"ConfigMap\", \"apiVersion\": \"v1\", \"data\": {\"y\": \"text\\n\", \"x\": \"1\"}}",
		},
		{cm + "data: {x: \"2\", y: \"text\\n\"}\n"},
		{cm + "data: {x: \"1\"}\n"},
		{cm, cm + "data: {}\n", cm + "data:\n", cm + "binaryData: null\n"},
		{cm + "data: {x: \"\"}\n", cm + "data: {x: }\n"},
		{cm + "binaryData: {x: aGk=}\n", cm + "binaryData:\n  x: |\n    aG\n    k=\n"},
		{secret},
		{
			secret + "stringData: {p: hunter2}\n",
			secret + "data: {p: aHVudGVyMg==}\n",
			secret + "data: {p: b3ZlcnJpZGRlbg==}\nstringData: {p: hunter2}\ntype: Opaque\n",
		},
		{secret + "stringData: {p: hunter2}\ntype: kubernetes.io/basic-auth\n"},
	}
	seen := map[string]int{}
	for i, g := range groups {
		for _, text := range g {
			got, err := Hash(read(t, text).Objects[0])
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if j, ok := seen[got]; ok && j != i {
				t.Errorf("the hash of group %d is that of group %d:\n%s", j, i, text)
			}
			seen[got] = i
		}
	}
	if len(seen) != len(groups) {
		t.Errorf("%d hashes for %d contents: %v", len(seen), len(groups), seen)
	}
}

// TestHashOthers wants what belay writes into templates not to count.
func TestHashOthers(t *testing.T) {
	const head = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n"
	const spec = "    spec: {containers: [{name: a, image: b}]}\n"
	same := []string{
		head + spec,
		head + "    metadata: {annotations: {moniker.spinnaker.io/cluster: job a}, labels: {app.kubernetes.io/name: x, moniker.spinnaker.io/sequence: \"1\"}}\n" + spec + "status: {active: 1}\n",
		strings.Replace(head, "name: a", "name: b", 1) + "    metadata: {annotations: {}}\n" + spec,
	}
	other := []string{
		head + "    metadata: {labels: {mine: x}}\n" + spec,
		strings.Replace(same[0], "image: b", "image: c", 1),
		strings.Replace(same[0], "image: b", "image: 1", 1),
		strings.Replace(same[0], "image: b", "image: \"1\"", 1),
	}
	want, err := Hash(read(t, same[0]).Objects[0])
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{want: true}
	for _, text := range same {
		if got, err := Hash(read(t, text).Objects[0]); got != want || err != nil {
			t.Errorf("other hash, %v:\n%s", err, text)
		}
	}
	for _, text := range other {
		got, err := Hash(read(t, text).Objects[0])
		if seen[got] || err != nil {
			t.Errorf("hash seen before, %v:\n%s", err, text)
		}
		seen[got] = true
	}
}

// TestSecretsAreNotPrinted runs everything that can go wrong with a Secret, and
// looks for its values in what is said.
func TestSecretsAreNotPrinted(t *testing.T) {
	for _, data := range []string{"data: {k: canary!}", "data: {k: 424242}", "stringData: {k: [canary]}", "stringData: {k: true}", "data: [canary]", "data: canary"} {
		list := read(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"+data+"\n"+user)
		rename(t, list, nil, nil)
		if !list.Failed() {
			t.Errorf("%s: no error", data)
		}
		for _, r := range list.Results {
			if said := fmt.Sprintf("%+v", r.String()+r.Current); strings.Contains(said, "canary") || strings.Contains(said, "424242") || strings.Contains(said, "true") {
				t.Errorf("%s: said %q", data, said)
			}
		}
	}
}

func TestRenameSequence(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: %s}\n" + user
	l := &lock.Lock{}
	current := fmt.Sprintf(text, "A")
	for i, step := range []struct{ from, to, want string }{
		{"k: A", "k: A", "c-v000"},
		{"k: A", "k: B", "c-v001"},
		{"k: B", "k: B", "c-v001"},
		{"k: B", "k: A", "c-v000"},
		{"k: A", "k: C", "c-v002"},
	} {
		list := read(t, strings.Replace(current, step.from, step.to, 1))
		rename(t, list, l, sequence)
		out, err := list.Sources[0].Bytes()
		if err != nil || list.Failed() {
			t.Fatalf("step %d: %v %v", i, err, list.Findings(manifest.Error))
		}
		current = string(out)
		if got := names(list)[0]; got != step.want {
			t.Errorf("step %d: name is %s, want %s", i, got, step.want)
		}
		if !strings.Contains(current, "configMapRef: {name: "+step.want+"}") {
			t.Errorf("step %d: the reference did not follow:\n%s", i, current)
		}
	}
	h := l.Versions[lock.Base{Kind: "ConfigMap", Name: "c"}]
	if h.Last != 2 || len(h.Versions) != 3 {
		t.Errorf("lock remembers %+v", h)
	}
}

// TestRenameLostLock wants numbers to go on where the versions at hand left off.
func TestRenameLostLock(t *testing.T) {
	list := read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: A}\n"+user)
	l := &lock.Lock{}
	if err := l.Use(lock.Base{Kind: "ConfigMap", Name: "c"}, "v006", "sha256:old", "c-v006"); err != nil {
		t.Fatal(err)
	}
	rename(t, list, l, sequence)
	out, err := list.Sources[0].Bytes()
	if err != nil || names(list)[0] != "c-v007" {
		t.Fatalf("%v %v", names(list), err)
	}
	list = read(t, strings.Replace(string(out), "k: A", "k: B", 1))
	rename(t, list, nil, sequence)
	if got := names(list)[0]; got != "c-v008" {
		t.Errorf("without the lock the next name is %s, want c-v008", got)
	}
	if len(list.Findings(manifest.Warning)) == 0 {
		t.Error("nobody was warned")
	}
}

func TestRenameNotDurable(t *testing.T) {
	list := read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"+user)
	cfg := Config{Naming: "sequence", Immutable: true, Unreferenced: "keep"}
	l := &lock.Lock{}
	locks := map[string]*lock.Lock{"": l}
	Rename(list, cfg, locks, kept(false))
	if !list.Failed() {
		t.Error("a number was made up that nobody remembers")
	}
	// A number that the lock holds may be given anywhere.
	content, err := Hash(list.Objects[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Use(lock.Base{Kind: "ConfigMap", Name: "c"}, "v004", content, "c-v004"); err != nil {
		t.Fatal(err)
	}
	list = read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"+user)
	Rename(list, cfg, locks, kept(false))
	if got := names(list)[0]; got != "c-v004" || list.Failed() {
		t.Errorf("name is %s: %v", got, list.Findings(manifest.Error))
	}
}

// TestRenameErrors lists what cannot be versioned.
func TestRenameErrors(t *testing.T) {
	cm := func(name string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	annotated := func(name, version string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "-" + version + "\n  annotations: {artifact.spinnaker.io/name: " + name +
			", artifact.spinnaker.io/version: " + version + ", fn.belay.dev/content: sha256:x}\ndata: {k: " + version + "}\n"
	}
	tests := map[string]struct {
		text   string
		change func(*Config)
		want   string
	}{
		"too long":          {text: cm(strings.Repeat("a", 243)) + strings.ReplaceAll(user, "name: c}", "name: "+strings.Repeat("a", 243)+"}"), want: "254 characters, and 253 are allowed (shorten it by 1)"},
		"bad annotation":    {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {strategy.spinnaker.io/versioned: \"yes\"}}\n" + user, want: `"yes" is neither true nor false`},
		"number in data":    {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: 1}\n" + user, want: "data.k: is not a string"},
		"ambiguous base":    {text: annotated("c", "aaaaaaaaaa") + annotated("c", "bbbbbbbbbb") + user, want: "could be any of c-aaaaaaaaaa and c-bbbbbbbbbb"},
		"twins after":       {text: cm("c") + strings.Replace(annotated("c", "aaaaaaaaaa"), "data: {k: aaaaaaaaaa}", "", 1) + user, want: "was edited, and a version must not change"},
		"number twice":      {text: annotated("c", "v000") + strings.ReplaceAll(annotated("c", "v000"), "sha256:x", "sha256:y") + user, change: sequence, want: "is known with another content"},
		"previous names":    {text: previous("a-c", "a-") + previous("b-c", "b-") + user, want: "was the name of a-c and b-c before kustomize changed it"},
		"immutable is list": {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nimmutable: []\n" + user, want: "immutable is not a scalar"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list := read(t, tt.text)
			rename(t, list, nil, tt.change)
			got := strings.Join(list.Findings(manifest.Error), "\n")
			if !strings.Contains(got, tt.want) {
				t.Errorf("errors are\n%s\nwant %s", got, tt.want)
			}
		})
	}
}

func previous(name, prefix string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  annotations: {internal.config.kubernetes.io/previousNames: \"c,c\", internal.config.kubernetes.io/prefixes: " + prefix + "}\n"
}

// TestPreviousNames wants a reference from before the prefix to mean the object
// with the prefix of the one that refers.
func TestPreviousNames(t *testing.T) {
	list := read(t, previous("a-c", "a-")+previous("b-c", "b-")+strings.Replace(user, "{name: user}", "{name: user, annotations: {internal.config.kubernetes.io/prefixes: b-}}", 1))
	rename(t, list, nil, nil)
	if list.Failed() {
		t.Fatal(list.Findings(manifest.Error))
	}
	ref := list.Objects[2].Find("spec.containers[0].envFrom[0].configMapRef.name").Value()
	if got := names(list); ref != got[1] || !strings.HasPrefix(ref, "b-c-") || got[0] != "a-c" {
		t.Errorf("reference is %s, names are %v", ref, got)
	}
}

// TestCycle wants two versioned objects that refer to each other refused: here
// HorizontalPodAutoscalers, since what they scale may be of any kind.
func TestCycle(t *testing.T) {
	hpa := func(name, target string) string {
		return "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: " + name + ", annotations: {strategy.spinnaker.io/versioned: \"true\"}}\n" +
			"spec: {scaleTargetRef: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: " + target + "}}\n"
	}
	list := read(t, hpa("a", "b")+hpa("b", "a"))
	rename(t, list, nil, nil)
	want := "HorizontalPodAutoscaler a -> HorizontalPodAutoscaler b -> HorizontalPodAutoscaler a"
	if got := strings.Join(list.Findings(manifest.Error), "\n"); !strings.Contains(got, want) {
		t.Errorf("errors are %s, want %s", got, want)
	}
	list = read(t, hpa("a", "b")+hpa("b", "c"))
	rename(t, list, nil, nil)
	ref := list.Objects[0].Find("spec.scaleTargetRef.name").Value()
	if got := names(list); ref != got[1] || list.Failed() {
		t.Errorf("a refers to %s, names are %v", ref, got)
	}
}

// TestRBAC wants one name that means a ConfigMap and a Secret to become two.
func TestRBAC(t *testing.T) {
	list := read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"+
		"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules:\n- apiGroups: ['']\n  resources: [configmaps, secrets]\n  resourceNames: [x, y]\n")
	rename(t, list, nil, nil)
	var got []string
	for _, n := range list.Objects[2].Find("rules[0].resourceNames").Elems() {
		got = append(got, n.Value())
	}
	all := names(list)
	if diff := cmp.Diff([]string{all[0], "y", all[1]}, got); diff != "" {
		t.Errorf("resourceNames (-want +got)\n%s", diff)
	}
}

// TestNamespaces wants references to stay inside of their namespace.
func TestNamespaces(t *testing.T) {
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%s}\n"
	tests := []struct {
		object, referrer, defaultNamespace string
		follows                            bool
	}{
		{"", "", "", true},
		{", namespace: a", ", namespace: a", "", true},
		{", namespace: a", ", namespace: b", "", false},
		{", namespace: default", "", "", false},
		{", namespace: default", "", "default", true},
		{"", ", namespace: prod", "prod", true},
		{"", ", namespace: test", "prod", false},
	}
	for _, tt := range tests {
		list := read(t, fmt.Sprintf(cm, tt.object)+strings.Replace(user, "name: user", "name: user"+tt.referrer, 1))
		rename(t, list, nil, func(c *Config) { c.DefaultNamespace = tt.defaultNamespace })
		if got := names(list)[0] != "c"; got != tt.follows {
			t.Errorf("%+v: followed is %t", tt, got)
		}
	}
}

// TestIgnored wants what Spinnaker ignores left alone, with a warning where its
// reference no longer leads anywhere.
func TestIgnored(t *testing.T) {
	list := read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"+strings.Replace(user, "{name: user}", "{name: user, annotations: {caching.spinnaker.io/ignore: \"true\"}}", 1))
	rename(t, list, nil, nil)
	if list.Objects[1].Changed() || len(list.Findings(manifest.Warning)) != 1 || names(list)[0] == "c" {
		t.Errorf("names %v, warnings %v", names(list), list.Findings(manifest.Warning))
	}
}

// BenchmarkRename names 3,000 objects of 10,000 and makes 20,000 references
// follow.
func BenchmarkRename(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			text := workload(n)
			for b.Loop() {
				b.StopTimer()
				list, err := manifest.ReadFiles([]manifest.Input{{Data: []byte(text)}})
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC() // what reading left is not this step's
				b.StartTimer()
				stats := Rename(list, Config{Naming: "hash", Immutable: true, Unreferenced: "keep"}, map[string]*lock.Lock{"": {}}, kept(true))
				if stats.Versioned != n*3/10 {
					b.Fatalf("versioned %d", stats.Versioned)
				}
			}
		})
	}
}

// workload gives n objects, three of ten to be versioned, with two references
// for each object.
func workload(n int) string {
	var w strings.Builder
	for i := range n / 10 {
		for j, kind := range []string{"ConfigMap", "ConfigMap", "Secret"} {
			fmt.Fprintf(&w, "apiVersion: v1\nkind: %s\nmetadata: {name: x%d-%d}\nstringData: {k: v%d}\n---\n", kind, i, j, i)
		}
		for j := range 7 {
			fmt.Fprintf(&w, "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d-%d}\nspec:\n  containers:\n  - name: a\n    envFrom:\n    - configMapRef: {name: x%d-0}\n    - configMapRef: {name: x%d-1}\n    - secretRef: {name: x%d-2}\n---\n", i, j, i, i, i)
		}
	}
	return w.String()
}

// kept gives options that say whether the lock is kept until the next run.
func kept(durable bool) Options {
	return Options{Durable: func(string) bool { return durable }, Path: func(file string) string { return file }}
}
