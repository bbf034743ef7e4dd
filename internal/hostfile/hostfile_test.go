// SPDX-License-Identifier: Apache-2.0

package hostfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/peertest"
)

func TestSysctl(t *testing.T) {
	t.Parallel()
	if got, want := Sysctl(map[string]string{"vm.swappiness": "10", "net.core.rmem_max": "1"}), written+"net.core.rmem_max = 1\nvm.swappiness = 10\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for key, want := range map[string]string{
		"vm.swappiness": "proc/sys/vm/swappiness", "net.ipv4.conf.eth0/100.rp_filter": "proc/sys/net/ipv4/conf/eth0.100/rp_filter",
		"net/ipv4/conf/eth0.100/rp_filter": "proc/sys/net/ipv4/conf/eth0.100/rp_filter",
	} {
		if got := SysctlPath(key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	if !IsSameValue("4096 131072 6291456", "4096\t131072\t6291456\n") || IsSameValue("1", "10") {
		t.Error("values are compared wrongly")
	}
}

func TestLocale(t *testing.T) {
	t.Parallel()
	if !IsSameLocale("en_US.UTF-8", "en_US.utf8") || !IsSameLocale("C", "C") || IsSameLocale("en_US.UTF-8", "en_US") || IsSameLocale("de_DE.UTF-8@euro", "de_DE.utf8") {
		t.Error("locales are compared wrongly")
	}
}

const status = "Package: linux-image-amd64\nStatus: install ok installed\nVersion: 6.1\nDescription: x\n Status: install ok installed\n\n" +
	"Package: linux-image-6.1.0-9-amd64\nStatus: deinstall ok config-files\nVersion: 6.1\n\n" +
	"Package: linux-libc-dev\nStatus: install ok installed\nVersion: 6.1\n\n" +
	"Package: linux-image-6.1.0-10-amd64\nStatus: hold ok installed\nVersion: 6.1\n"

func TestHoldInStatus(t *testing.T) {
	t.Parallel()
	got, held := HoldInStatus([]byte(status), []string{"linux-image-*"})
	want := strings.Replace(status, "Status: install ok installed", "Status: hold ok installed", 1)
	if string(got) != want || !slices.Equal(held, []string{"linux-image-amd64", "linux-image-6.1.0-10-amd64"}) {
		t.Errorf("held %q\n%s", held, got)
	}
	again, _ := HoldInStatus(got, []string{"linux-image-*"})
	if string(again) != want {
		t.Errorf("again:\n%s", again)
	}
}

// TestPeerHold asks dpkg what it reads of a status file that was changed.
func TestPeerHold(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "dpkg-query")
	dir := t.TempDir()
	own, err := os.ReadFile("/" + dpkg.StatusFile)
	if err != nil {
		t.Skip("this system has no dpkg")
	}
	got, held := HoldInStatus(own, []string{"dpkg", "apt*"})
	if err := os.WriteFile(filepath.Join(dir, "status"), got, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "dpkg-query", "--admindir="+dir, "--show", "--showformat=${db:Status-Want}\t${db:Status-Status}\t${Package}\n").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before, err := exec.CommandContext(t.Context(), "dpkg-query", "--show", "--showformat=${Package}\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "hold" && f[1] == "installed" && Matches(f[2], []string{"dpkg", "apt*"}) {
			shown = append(shown, f[2])
		}
	}
	slices.Sort(held)
	slices.Sort(shown)
	if len(held) < 2 || !slices.Equal(held, shown) {
		t.Errorf("set %q on hold; dpkg shows %q", held, shown)
	}
	if a, b := strings.Count(string(out), "\n"), strings.Count(string(before), "\n"); a != b {
		t.Errorf("dpkg sees %d packages, and saw %d", a, b)
	}
}

func TestExclude(t *testing.T) {
	t.Parallel()
	kernel := []string{"kernel", "kernel-core"}
	for _, c := range []struct{ name, conf, held, free string }{
		{"as delivered", "[main]\ngpgcheck=1\n", "[main]\nexcludepkgs=kernel kernel-core\ngpgcheck=1\n", "[main]\ngpgcheck=1\n"},
		{"empty", "", "[main]\nexcludepkgs=kernel kernel-core\n", "[main]\n"},
		{"with own", "[main]\nexclude = glibc, kernel\n[x]\nexclude=a\n", "[main]\nexclude=glibc kernel kernel-core\n[x]\nexclude=a\n", "[main]\nexclude=glibc\n[x]\nexclude=a\n"},
		{"no line end", "[main]", "[main]\nexcludepkgs=kernel kernel-core\n", "[main]\n"},
	} {
		held := Exclude(c.conf, kernel, true)
		if held != c.held {
			t.Errorf("%s: %q, want %q", c.name, held, c.held)
		}
		if again := Exclude(held, kernel, true); again != held {
			t.Errorf("%s: twice gives %q", c.name, again)
		}
		if free := Exclude(held, kernel, false); free != c.free {
			t.Errorf("%s: let go: %q, want %q", c.name, free, c.free)
		}
	}
}
