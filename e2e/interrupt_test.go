package e2e_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

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
