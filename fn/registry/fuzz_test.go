package registry

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/belay-krm/belay/fn/digest"
)

// FuzzAnswers wants a registry that answers anything to give its digest or an
// error of one line: never a panic, never a digest that it did not give, and
// never the credentials.
func FuzzAnswers(f *testing.F) {
	hex := strings.Repeat("a", 64)
	f.Add(200, "", "sha256:"+hex, "application/vnd.oci.image.index.v1+json", "{}", 200, "")
	f.Add(200, "", "", "", "{}", 200, "")
	f.Add(401, `Bearer realm="https://r.example.com/token",service="s"`, "sha256:"+hex, "", `{"token": "t", "expires_in": -1}`, 401, "sha256:"+hex)
	f.Add(401, `Bearer realm="https://r.example.com/token`, "sha512:x", "", `{"token": 1}`, 405, "")
	f.Add(401, "Basic", "", "", "", 401, "")
	f.Add(405, "Digest , ,=", "", "", `{"manifests":[{"platform":null},{"platform":{"os":"linux"}}],"config":{"digest":"sha256:x"}}`, 501, "")
	f.Fuzz(func(t *testing.T, ping int, challenge, digestHeader, contentType, body string, head int, get string) {
		c := mustNew(t, Options{Keychain: fixedKeys{authn.AuthConfig{Username: "user", Password: "pass-word"}}, Tries: 1})
		answer := func(r *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
			switch {
			case r.URL.Path == "/v2/":
				resp.StatusCode = max(ping, 100)
				resp.Header["Www-Authenticate"] = []string{challenge}
			case r.Method == http.MethodHead:
				resp.StatusCode, resp.Body = max(head, 100), http.NoBody
				resp.Header.Set("Docker-Content-Digest", digestHeader)
				resp.Header.Set("RateLimit-Remaining", contentType)
			default:
				resp.Header.Set("Docker-Content-Digest", get)
			}
			resp.Header.Set("Content-Type", contentType)
			return resp, nil
		}
		c.http = &http.Client{Transport: roundTrip(answer)}
		tag, err := name.NewTag("r.example.com/a:1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Resolve(t.Context(), tag)
		given := fmt.Sprintf("%s %s sha256:%x", digestHeader, get, sha256.Sum256([]byte(body)))
		if err == nil && !strings.Contains(given, got.Digest.Hex) {
			t.Errorf("a digest that nobody gave: %v", got)
		}
		checkError(t, err)
		_, err = c.Platforms(t.Context(), tag.Digest(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(body)))))
		checkError(t, err)
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if _, ok := err.(*digest.Error); !ok || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "pass-word") { //nolint:errorlint // the contract is the type itself
		t.Errorf("error %T: %q", err, err)
	}
}
