// SPDX-License-Identifier: Apache-2.0

package hostfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

func TestMountUnitName(t *testing.T) {
	for path, want := range map[string]string{
		"/scratch":        "scratch.mount",
		"/mnt/data-1":     `mnt-data\x2d1.mount`,
		"/srv/a.b_c:d":    "srv-a.b_c:d.mount",
		"/.hidden":        `\x2ehidden.mount`,
		"/projekte/größe": `projekte-gr\xc3\xb6\xc3\x9fe.mount`,
	} {
		if got := MountUnitName(path); got != want {
			t.Errorf("the unit of %s is %s, want %s", path, got, want)
		}
	}
}

func TestMountUnit(t *testing.T) {
	got := MountUnit("/scratch", "nfs", "10.0.0.9:/export/100%", []string{"ro", "nconnect=8"})
	for _, want := range []string{"What=10.0.0.9:/export/100%%\n", "Where=/scratch\n", "Type=nfs\n", "Options=ro,nconnect=8,_netdev\n", "WantedBy=remote-fs.target\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the unit lacks %q:\n%s", want, got)
		}
	}
	if again := MountUnit("/a", "nfs", "s:/a", []string{"_netdev"}); strings.Count(again, "_netdev") != 1 {
		t.Errorf("_netdev that is asked for is written twice:\n%s", again)
	}
}

// Of two file systems at one path the last is seen.
func TestMountAt(t *testing.T) {
	const text = "sysfs /sys sysfs rw 0 0\n10.0.0.9:/old /scratch nfs4 rw,vers=4.2 0 0\n10.0.0.9:/a\\040b /scratch nfs4 ro,vers=4.2 0 0\ntorn\n"
	m, ok := MountAt(text, "/scratch")
	if !ok || m.Source != "10.0.0.9:/a b" || m.Type != "nfs4" || m.Options[0] != "ro" {
		t.Errorf("at /scratch: %+v, %v", m, ok)
	}
	if _, ok := MountAt(text, "/scratch/a"); ok {
		t.Error("something is mounted below what is mounted")
	}
}

// systemd's own names of units, and its own reading of them: it refuses one whose name is not
// that of its place.
func TestPeerMountUnit(t *testing.T) {
	peertest.Need(t, "systemd-escape", "systemd-analyze")
	dir := t.TempDir()
	for _, path := range []string{"/scratch", "/mnt/data-1", "/.a/b:c_d.e", "/größe", "/a%b"} {
		out, err := exec.CommandContext(t.Context(), "systemd-escape", "--path", "--suffix=mount", path).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != MountUnitName(path) {
			t.Errorf("systemd names the unit of %s %q, we %q (%v)", path, got, MountUnitName(path), err)
		}
		if strings.Contains(path, ":") { // systemd-analyze 252 does not find the file of such a unit
			continue
		}
		file := filepath.Join(dir, MountUnitName(path))
		verify := func(text string) (string, error) {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput()
			return string(out), err
		}
		if out, err := verify(MountUnit(path, "nfs", "10.0.0.9:/a%b", []string{"ro"})); err != nil || out != "" {
			t.Errorf("systemd does not take the unit of %s: %v\n%s", path, err, out)
		}
		if out, err := verify(MountUnit("/elsewhere", "nfs", "10.0.0.9:/a", nil)); err == nil {
			t.Errorf("systemd takes a unit whose name is not its place's: the test shows nothing\n%s", out)
		}
	}
}
