package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/crypto/bcrypt"
)

// TestCredentials wants Docker's credentials to be used, and a refusal to be
// explained.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte("hunter2"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"htpasswd": "alice:" + string(hash) + "\n"})
	reg := startRegistry(t, "", "auth:\n  htpasswd:\n    realm: test\n    path: "+filepath.Join(dir, "htpasswd")+"\n")
	digest := reg.push(t, false, remote.WithAuth(&authn.Basic{Username: "alice", Password: "hunter2"}))
	write(t, dir, map[string]string{
		"deploy/app.yaml": app(reg.host + "/team/app:1.0"),
		"docker/config.json": fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, reg.host,
			base64.StdEncoding.EncodeToString([]byte("alice:hunter2"))),
		"broken/config.json": fmt.Sprintf(`{"credHelpers": {%q: "does-not-exist"}}`, reg.host),
	})
	c := sh(t, dir, "", []string{"DOCKER_CONFIG=" + filepath.Join(dir, "none"), "HOME=" + dir}, "belay", "hydrate", "deploy")
	if c.code != 1 {
		t.Errorf("without credentials: exit code %d", c.code)
	}
	contains(t, "stderr", c.stderr, "Deployment my-app: spec.template.spec.containers[0].image:", "wants credentials, or others (docker login "+reg.host+")")
	c = sh(t, dir, "", []string{"DOCKER_CONFIG=" + filepath.Join(dir, "broken"), "HOME=" + dir}, "belay", "hydrate", "deploy")
	contains(t, "stderr with a broken helper", c.stderr, "warning: pinning images: "+reg.host+": going on without credentials")
	c = sh(t, dir, "", []string{"DOCKER_CONFIG=" + filepath.Join(dir, "docker"), "HOME=" + dir}, "belay", "hydrate", "deploy")
	if c.code != 0 {
		t.Fatalf("with credentials: exit code %d\n%s", c.code, c.stderr)
	}
	contains(t, "app.yaml", read(t, filepath.Join(dir, "deploy", "app.yaml")), "@"+digest)
}

// TestTLS wants a registry with a certificate of its own authority to be asked
// when SSL_CERT_FILE names that, and refused otherwise.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	reg := startRegistry(t, "  tls:\n    certificate: "+filepath.Join(dir, "cert.pem")+"\n    key: "+filepath.Join(dir, "key.pem")+"\n", "")
	rt := http.DefaultTransport.(*http.Transport).Clone()
	rt.TLSClientConfig = &tls.Config{RootCAs: pool}
	digest := reg.push(t, false, client(rt))
	write(t, dir, map[string]string{"deploy/app.yaml": app(reg.host + "/team/app:1.0")})
	c := sh(t, dir, "", nil, "belay", "hydrate", "deploy")
	if c.code != 1 {
		t.Errorf("an unknown authority was trusted: exit code %d", c.code)
	}
	contains(t, "stderr", c.stderr, "the certificate of "+reg.host+" is not trusted", "SSL_CERT_FILE")
	c = sh(t, dir, "", []string{"SSL_CERT_FILE=" + filepath.Join(dir, "cert.pem")}, "belay", "hydrate", "deploy")
	if c.code != 0 {
		t.Fatalf("exit code %d\n%s", c.code, c.stderr)
	}
	contains(t, "app.yaml", read(t, filepath.Join(dir, "deploy", "app.yaml")), "@"+digest)

	// As a file beside the configuration, for this registry alone.
	write(t, dir, map[string]string{
		"named/app.yaml":   app(reg.host + "/team/app:1.0"),
		"named/belay.yaml": network("{host: '" + reg.host + "', ca: ../cert.pem}"),
	})
	must(t, dir, "", "belay", "hydrate", "named")
	contains(t, "app.yaml", read(t, filepath.Join(dir, "named", "app.yaml")), "@"+digest)
}

// network gives a configuration for registries, each in flow style.
func network(registries ...string) string {
	return "apiVersion: fn.belay.dev/v1alpha1\nkind: Belay\nspec:\n  digests:\n    network:\n      registries:\n      - " + strings.Join(registries, "\n      - ") + "\n"
}

// TestMirror wants a pull-through mirror to be asked in place of the registry,
// and the author's spelling to stay; and a comparison to tell when the registry has
// gone on.
func TestMirror(t *testing.T) {
	source := startRegistry(t, "", "")
	mirror := startRegistry(t, "", "proxy:\n  remoteurl: http://"+source.host+"\n")
	digest := source.push(t, true)
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"deploy/app.yaml":    app(source.host + "/team/app:1.0"),
		"deploy/belay.yaml":  network("{host: '" + source.host + "', mirror: '" + mirror.host + "'}"),
		"compare/app.yaml":   app(source.host + "/team/app:1.0"),
		"compare/belay.yaml": network("{host: '" + source.host + "', mirror: '" + mirror.host + "', resolveAt: compare}"),
	})
	must(t, dir, "", "belay", "hydrate", "deploy")
	contains(t, "app.yaml", read(t, filepath.Join(dir, "deploy", "app.yaml")), source.host+"/team/app:1.0@"+digest)
	c := must(t, dir, "", "belay", "hydrate", "compare")
	if strings.Contains(c.stderr, "has another digest") {
		t.Errorf("mirror and registry are the same, and belay says\n%s", c.stderr)
	}
	must(t, dir, "", "belay", "hydrate", "deploy", "--set", "digests.mode=verify")

	source.stop()
	c = sh(t, dir, "", nil, "belay", "hydrate", "compare", "--set", "digests.mode=update")
	if c.code != 1 {
		t.Errorf("the registry is down, and the comparison ends with %d", c.code)
	}
	contains(t, "stderr", c.stderr, "connection refused")
}

// TestMovedTag wants a tag that was pushed again to be noticed by verify, and
// followed by update.
func TestMovedTag(t *testing.T) {
	reg := startRegistry(t, "", "")
	first := reg.push(t, true)
	dir := t.TempDir()
	write(t, dir, map[string]string{"deploy/app.yaml": app(reg.host + "/team/app:1.0")})
	must(t, dir, "", "belay", "hydrate", "deploy")
	second := reg.push(t, true)
	must(t, dir, "", "belay", "hydrate", "deploy") // the lock is sticky
	contains(t, "app.yaml", read(t, filepath.Join(dir, "deploy", "app.yaml")), "@"+first)
	c := sh(t, dir, "", nil, "belay", "hydrate", "deploy", "--set", "digests.mode=verify")
	if c.code != 1 {
		t.Errorf("a moved tag passes: exit code %d", c.code)
	}
	contains(t, "stderr", c.stderr, "the tag 1.0 has moved from "+first+" to "+second)
	c = must(t, dir, "", "belay", "hydrate", "deploy", "--set", "digests.mode=update", "--set", "digests.platforms=linux/amd64")
	contains(t, "stderr", c.stderr, "the tag 1.0 has moved: "+first+" → "+second)
	contains(t, "app.yaml", read(t, filepath.Join(dir, "deploy", "app.yaml")), "@"+second)
	must(t, dir, "", "belay", "hydrate", "deploy", "--set", "digests.mode=verify")
}

// certificate writes cert.pem and key.pem for 127.0.0.1.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "belay test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, dir, map[string]string{
		"cert.pem": string(cert),
		"key.pem":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})),
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}
