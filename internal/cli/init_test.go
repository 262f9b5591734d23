package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-krm/belay/fn"
)

// TestSampleConfig wants the file of belay init to mean the defaults, as it is and
// with all its comments taken away.
func TestSampleConfig(t *testing.T) {
	want, err := fn.ParseConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := fn.ParseConfigFile([]byte(sampleConfig()))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	var open strings.Builder
	for line := range strings.Lines(sampleConfig()) {
		open.WriteString(strings.Replace(line, "# ", "", 1))
	}
	got, err = fn.ParseConfigFile([]byte(open.String()))
	if got.Moniker == nil || err != nil {
		t.Fatalf("%v\n%s", err, open.String())
	}
	got.Moniker = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without comments (-want +got)\n%s", diff)
	}
}
