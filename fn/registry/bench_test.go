package registry

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belay-krm/belay/fn/digest"
	"github.com/belay-krm/belay/fn/lock"
	"github.com/belay-krm/belay/fn/manifest"
)

// deployments gives manifests that use images, one after the other, in 400
// Deployments with three containers each.
func deployments(images []string) []byte {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d%d}\nspec:\n  template:\n    spec:\n      containers:\n", i)
		for c := range 3 {
			fmt.Fprintf(&b, "      - name: c%d\n        image: %s\n", c, images[(3*i+c)%len(images)])
		}
	}
	return []byte(b.String())
}

// BenchmarkPin pins 1,200 images, 240 of them unique, in 100 repositories of a
// registry that wants a token for each and takes 50 ms for an answer. In the
// second case there are 20 images of a registry that never answers among them;
// its time limit is a second.
func BenchmarkPin(b *testing.B) {
	f := newFake(b)
	var images []string
	for i := range 240 {
		tag, _ := f.push(b, fmt.Sprintf("team/app%d:v%d", i%100, i))
		images = append(images, tag.String())
	}
	tokens := f.bearer("", false, 0)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		time.Sleep(50 * time.Millisecond)
		return tokens(w, r)
	}
	var dead []string
	silent := silence(b)
	for i := range 20 {
		dead = append(dead, fmt.Sprintf("%s/team/app%d:v%d", silent, i, i))
	}
	for name, images := range map[string][]string{"1200": images, "1200-and-a-dead-registry": append(dead, images...)} {
		text := deployments(images)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				list, err := manifest.ReadFiles([]manifest.Input{{Data: text, Stream: true}})
				if err != nil {
					b.Fatal(err)
				}
				opt := quick()
				opt.Timeout = time.Second
				c := mustNew(b, opt)
				b.StartTimer()
				stats := digest.Pin(b.Context(), list, digest.Config{Mode: "missing", Jobs: 16}, map[string]*lock.Lock{"": {}}, digest.Options{Resolver: c})
				if len(stats.Pins) == 0 || stats.Unique != len(images) {
					b.Fatalf("%+v", stats.Unique)
				}
				b.ReportMetric(float64(c.Requests()), "requests")
			}
		})
	}
}

// silence gives the address of a registry that accepts connections and never
// answers.
func silence(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
