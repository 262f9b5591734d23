package lock

import (
	"strings"
	"testing"
)

// TestReadKbld wants what is no lock to be refused, and what cannot be taken
// over to be named.
func TestReadKbld(t *testing.T) {
	const head = "apiVersion: kbld.k14s.io/v1alpha1\nkind: Config\n"
	for title, tt := range map[string]struct{ in, err, skipped string }{
		"configuration":  {head + "sources:\n- image: a\n  path: .\n", "holds no images", ""},
		"nothing":        {"", "is no lock of kbld", ""},
		"no YAML":        {"a: [", "is no lock of kbld", ""},
		"two digests":    {head + "overrides:\n- {image: a, newImage: 'a@sha256:" + strings.Repeat("a", 64) + "'}\n- {image: 'docker.io/library/a', newImage: 'a@sha256:" + strings.Repeat("b", 64) + "'}\n", "has two digests", ""},
		"without name":   {head + "overrides:\n- {newImage: 'a@sha256:" + strings.Repeat("a", 64) + "'}\n- {image: a, newImage: 'a@sha256:" + strings.Repeat("a", 64) + "'}\n", "", "an entry for a@sha256:"},
		"without digest": {head + "overrides:\n- {image: a, newImage: 'a:1'}\n- {image: b, newImage: 'b@sha256:" + strings.Repeat("a", 64) + "'}\n", "", "a: a:1 has no digest"},
	} {
		got, err := ReadKbld([]byte(tt.in))
		if (tt.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want %q", title, err, tt.err)
		}
		if s := strings.Join(got.Skipped, "\n"); (tt.skipped == "") != (s == "") || !strings.HasPrefix(s, tt.skipped) {
			t.Errorf("%s: skipped %q", title, s)
		}
	}
}
