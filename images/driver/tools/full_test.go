// SPDX-License-Identifier: Apache-2.0

//go:build driversfull

package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/compile"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// TestPeerChecksum compiles the program of checksums by Debian's nvcc and hipcc, with the
// command lines of the two blocks, and starts it where there is no GPU. It takes some
// minutes and 4 GB.
func TestPeerChecksum(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: a root file system cannot be made")
	}
	peertest.Need(t, "mmdebstrap", "dpkg-deb")
	sources := filepath.Join(t.TempDir(), "sources.list")
	if err := os.WriteFile(sources, []byte("deb [signed-by=/nowhere] http://deb.debian.org/debian bookworm main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := compile.Root{Suite: "bookworm", Arch: inventory.AMD64, Image: repo.Image{Sources: sources, Keyring: "/usr/share/keyrings/debian-archive-keyring.gpg"},
		Components: []string{"contrib", "non-free"}, Packages: []string{"g++", "nvidia-cuda-toolkit", "nvidia-cuda-dev", "hipcc", "libamdhip64-dev"}}
	list := []compile.Program{}
	for i, targets := range [][]string{{"80", "90"}, {"gfx908", "gfx90a"}} {
		p := checksums()[i]
		kit := stack.Toolkit{Home: "/usr", Targets: targets}
		c := compile.Program{Package: p.pkg + "-" + p.of, About: p.about, Source: sourceOf(nil, p), Steps: p.recipe(kit, system{}), Files: p.files}
		if p.env != nil {
			c.Env = p.env(kit, system{})
		}
		list = append(list, c)
	}
	dir := t.TempDir()
	debs, err := compile.Build(t.Context(), dir, t.TempDir(), root, list, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	for i, runtime := range []string{"cuda", "hip"} {
		run := func(argv ...string) string {
			out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
			if err != nil {
				t.Fatalf("%q: %v\n%s", argv, err, out)
			}
			return string(out)
		}
		at := filepath.Join(dir, "root", runtime)
		run("dpkg-deb", "--extract", debs[i], at)
		if said := run("chroot", filepath.Join(dir, "root"), "/"+runtime+"/usr/bin/ironrail_checksum", "0"); !strings.Contains(said, `"runtime":"`+runtime+`"`) || !strings.Contains(said, `{"end":true,"gpus":0}`) {
			t.Errorf("%s: %s", runtime, said)
		}
	}
}
