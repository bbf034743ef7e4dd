// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

// TestPlainScript runs the script on this very machine, by its own shell.
func TestPlainScript(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", plainScript).Output()
	if err != nil {
		t.Fatal(err)
	}
	b := parsePlain(string(out))
	if b.BootID == "" || b.Uptime <= 0 {
		t.Errorf("boot %q, uptime %v in\n%s", b.BootID, b.Uptime, out)
	}
	if byKey(b.Items)[key{wire.ItemKernel, "", "release"}] == "" {
		t.Errorf("no kernel in %+v", b.Items)
	}
	if _, err := os.Stat("/var/lib/dpkg/status"); err == nil && len(b.List) < 10 { // this is a Debian
		t.Errorf("%d packages", len(b.List))
	}
}

func TestParsePlain(t *testing.T) {
	t.Parallel()
	b := parsePlain("boot\t\tid\tb1\nboot\t\tuptime\t61.5 60.0\nkernel\t\targuments\tro  quiet\nspeed\t0000:18:00.0\tspeed\t400000\nspeed\t0000:19:00.0\tspeed\t-1\n" +
		"hardware\t\tserial\tS1\nmem\t\ttotal\tMemTotal:  1024 kB\ncpu\t\tlscpu\tCPU(s):  8\ncpu\t\tlscpu\tCore(s) per socket: 2\ncpu\t\tlscpu\tSocket(s): 2\n" +
		"packages\t\tdpkg:amd64\t1.21\tinstalled\npackages\t\tlibc6:i386\t2.36\tinstalled\npackages\t\told:amd64\t1\tconfig-files\nnonsense\nkernel\t\tcut\toff")
	if b.BootID != "b1" || b.Uptime != 61.5 || b.Identity.Serial != "S1" || len(b.List) != 2 || b.List[1].Name != "libc6:i386" {
		t.Errorf("got %+v", b)
	}
	items := byKey(b.Items)
	if items[key{wire.ItemKernel, "", "arguments"}] != "ro quiet" || items[key{wire.ItemLink, "0000:18:00.0", "speed"}] != "400000 Mb/s" || len(items) != 3 {
		t.Errorf("items %v", items)
	}
	if h := b.Hardware; h == nil || h.CPU.Cores != 4 || h.CPU.Threads != 8 || h.Memory.Usable != 1<<20 {
		t.Errorf("hardware %+v", h)
	}
}

func FuzzParsePlain(f *testing.F) {
	f.Add("boot\t\tid\tb1\npackages\t\ta:amd64\t1\tinstalled\ncpu\t\tlscpu\tSocket(s): 9223372036854775807\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, i := range parsePlain(text).Items {
			if i.Value == "" || strings.ContainsAny(i.Value, "\n\t") {
				t.Errorf("%+v", i)
			}
		}
	})
}
