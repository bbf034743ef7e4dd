// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/keys"
)

// here runs commands on this computer, with the TPM of swtpm in the place of the node's. A kernel
// without it and without device mapper is enough: nothing is unlocked or mounted.
type here struct{ socket string }

func (h here) Run(ctx context.Context, _ string, c onnode.Command) (onnode.Output, error) {
	argv := slices.Clone(c.Argv)
	for i, a := range argv {
		argv[i] = strings.ReplaceAll(a, "--tpm2-device=auto", "--tpm2-device=swtpm:path="+h.socket)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, bad bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), &out, &bad
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return onnode.Output{Stdout: out.Bytes(), Stderr: bad.Bytes(), Exit: exit.ExitCode()}, nil
	}
	return onnode.Output{Stdout: out.Bytes(), Stderr: bad.Bytes()}, err
}

// TestPeerLUKS makes a volume by cryptsetup and enrolls a TPM by systemd-cryptenroll, twice: one
// key slot is that of the recovery key, one that of the TPM. What is blank to wipefs is blank to
// the step, and nothing else is.
func TestPeerLUKS(t *testing.T) {
	peertest.Need(t, "cryptsetup", "systemd-cryptenroll", "wipefs", "mke2fs", "swtpm", "/usr/lib/x86_64-linux-gnu/libtss2-tcti-swtpm.so.0")
	dir := t.TempDir()
	socket := filepath.Join(dir, "tpm")
	swtpm := exec.CommandContext(t.Context(), "swtpm", "socket", "--tpm2", "--tpmstate", "dir="+dir, "--server", "type=unixio,path="+socket, "--ctrl", "type=unixio,path="+socket+".ctrl", "--flags", "not-need-init,startup-clear")
	swtpm.WaitDelay = time.Second
	if err := swtpm.Start(); err != nil {
		t.Fatal(err)
	}
	defer swtpm.Wait() //nolint:errcheck // it is killed
	defer swtpm.Process.Kill()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
	}
	v := volume{label: "scratch", mount: "/scratch", filesystem: "xfs", uuid: luks, device: filepath.Join(dir, "partition")}
	if err := os.WriteFile(v.device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(v.device, 64<<20); err != nil {
		t.Fatal(err)
	}
	w := &work{nodes: here{socket}, node: "n1", recovery: keys.RecoveryIn(filepath.Join(dir, "keys")), say: func(string) {}}
	ctx := t.Context()

	if out, err := exec.CommandContext(ctx, "mke2fs", "-q", "-F", v.device).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if is, err := w.content(ctx, v.device); err != nil || is != "ext2" {
		t.Errorf("content %q, %v", is, err)
	}
	if err := w.encrypt(ctx, v); err == nil || !strings.Contains(err.Error(), `is not blank any more: "ext2"`) {
		t.Errorf("a file system was encrypted: %v", err)
	}
	if err := errors.Join(os.Truncate(v.device, 0), os.Truncate(v.device, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if text, err := w.obstacle(ctx, v); err != nil || text != "" {
		t.Errorf("blank: %q, %v", text, err)
	}
	if err := w.encrypt(ctx, v); err != nil {
		t.Fatal(err)
	}
	if h, err := w.header(ctx, v.device); err != nil || h != (header{uuid: luks, subsystem: fresh, slots: 1}) {
		t.Errorf("encrypted: %+v, %v", h, err)
	}
	for range 2 { // nothing unlocks by auto here, so that the second time is as after the TPM was cleared
		if err := w.enroll(ctx, v); err != nil {
			t.Fatal(err)
		}
		if h, err := w.header(ctx, v.device); err != nil || h != (header{uuid: luks, subsystem: fresh, slots: 2, token: true}) {
			t.Errorf("enrolled: %+v, %v", h, err)
		}
	}
	if err := w.encrypt(ctx, v); err != nil { // it is there
		t.Error(err)
	}
	k, err := w.recovery.Find(luks)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "cryptsetup", "open", "--test-passphrase", v.device) // as a person types it
	cmd.Stdin = strings.NewReader(k.Text + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the recovery key does not open the volume: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, "cryptsetup", "luksDump", v.device).CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "scratch") || !strings.Contains(text, "systemd-tpm2") {
		t.Errorf("%v\n%s", err, out)
	}
}
