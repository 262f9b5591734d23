package e2e_test

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestProxy wants the proxy of the environment to be asked.
func TestProxy(t *testing.T) {
	asked := make(chan string, 16)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	dir := t.TempDir()
	write(t, dir, map[string]string{"deploy/app.yaml": app("registry.example.com/team/app:1.0")})
	c := sh(t, dir, "", []string{"HTTPS_PROXY=" + proxy.URL, "NO_PROXY=", "no_proxy="}, "belay", "hydrate", "deploy")
	if c.code != 1 {
		t.Errorf("exit code %d\n%s", c.code, c.stderr)
	}
	select {
	case got := <-asked:
		if got != "CONNECT registry.example.com:443" {
			t.Errorf("the proxy was asked for %s", got)
		}
	default:
		t.Errorf("the proxy was not asked:\n%s", c.stderr)
	}
}

// TestInterrupt ends a run that waits for a registry that never answers, and
// wants nothing written.
func TestInterrupt(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	asked := make(chan bool, 16)
	go func() {
		for {
			// The connection stays open, and nobody answers.
			if _, err := silent.Accept(); err != nil {
				return
			}
			asked <- true
		}
	}()
	dir := t.TempDir()
	write(t, dir, map[string]string{"deploy/app.yaml": app(silent.Addr().String() + "/team/app:1.0")})
	before := tree(t, dir)
	cmd := exec.Command("belay", "hydrate", "deploy")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(10 * time.Second):
		t.Error("the registry was not asked")
	}
	start := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code is looked at below
	if took := time.Since(start); took > 5*time.Second || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d after %v", cmd.ProcessState.ExitCode(), took)
	}
	contains(t, "stderr", stderr.String(), "belay: interrupted: nothing was written")
	if after := tree(t, dir); after != before {
		t.Errorf("something was written:\n%s", after)
	}
}
