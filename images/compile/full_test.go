// SPDX-License-Identifier: Apache-2.0

//go:build driversfull

package compile

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

const mirror = "http://deb.debian.org/debian"

// makefile has the variables of the Makefile of nccl-tests, and compiles an MPI program
// with g++ in the place of nvcc. It also looks for what a build must not have.
const makefile = `MPI ?= 0
NAME_SUFFIX ?=
build/all_reduce_perf$(NAME_SUFFIX): all_reduce.cc
	test "$$(id -u)" = 65534
	! touch /usr/bin/mine 2>/dev/null
	! cat /proc/net/route 2>/dev/null
	! grep -s Seccomp /proc/1/status
	test -z "$$SECRET_OF_THE_CONTROLLER"
	mkdir -p build
	test "$(MPI)" = 1
	g++ -O2 $$NVCC_APPEND_FLAGS -I$(MPI_HOME)/include -o $@ $< -L$(MPI_HOME)/lib -lmpi
`

const program = `#include <mpi.h>
#include <cstdio>
int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	int rank, ranks, sum = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int one = rank + 1;
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0) printf("%d ranks, sum %d\n", ranks, sum);
	MPI_Finalize();
}
`

// controller is what a build needs of one: Debian 12's sources and keyring.
func controller(t *testing.T) repo.Image {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not root: a root file system cannot be made")
	}
	peertest.Need(t, "mmdebstrap", "dpkg-deb")
	sources := filepath.Join(t.TempDir(), "sources.list")
	if err := os.WriteFile(sources, []byte("deb [signed-by=/nowhere] "+mirror+" bookworm main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return repo.Image{Sources: sources, Keyring: "/usr/share/keyrings/debian-archive-keyring.gpg"}
}

func content(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPeerCompile compiles an MPI program in a root file system of Debian 12, as nobody
// and without a network, packs it twice to the same bytes, and runs it under mpirun where
// the package was installed.
func TestPeerCompile(t *testing.T) {
	image := controller(t)
	t.Setenv("SECRET_OF_THE_CONTROLLER", "x")
	site := t.TempDir()
	if err := os.WriteFile(filepath.Join(site, "tests-1.0.tar.gz"), pack(t, file("tests-1.0/Makefile", makefile), file("tests-1.0/all_reduce.cc", program)), 0o644); err != nil {
		t.Fatal(err)
	}
	family, _ := distribution.Find(distribution.Debian)
	tools := family.Tools()
	r := Root{Suite: "bookworm", Arch: inventory.AMD64, Image: image, Packages: tools.Compile}
	p := Program{Package: "ironrail-tests", About: "a test", Depends: tools.MPI[:1], Source: Source{At: "tests-1.0.tar.gz"},
		Steps: [][]string{{"/usr/bin/make", "MPI=1", "NAME_SUFFIX=_mpi", "MPI_HOME=" + family.MPIHome(inventory.AMD64)}}, Env: []string{"NVCC_APPEND_FLAGS=-DOMPI_SKIP_MPICXX=1"}, Files: []Files{{Glob: "build/*_perf*", Trim: "_mpi", Suffix: "_mpi"}}}
	dir, began := t.TempDir(), time.Now()
	debs, err := Build(t.Context(), dir, site, r, []Program{p}, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("made in %.0f s", time.Since(began).Seconds())
	deb, root := debs[0], filepath.Join(dir, "root")
	first := content(t, deb)
	b := build{dir: t.TempDir(), root: root, of: r, say: func(string) {}} // once more, in the same root file system
	if err := os.RemoveAll(filepath.Join(root, "build")); err != nil {
		t.Fatal(err)
	}
	a, err := p.Source.read(t.Context(), site, filepath.Join(b.dir, "archive"), b.say)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.program(t.Context(), p, a)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, content(t, again)) {
		t.Error("two builds of the same sources give other bytes")
	}
	run := func(argv ...string) string {
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	t.Log(run("dpkg-deb", "--info", deb))
	run("dpkg", "--root="+root, "--install", deb)
	if said := run("chroot", root, "mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3", "all_reduce_perf_mpi"); !strings.Contains(said, "3 ranks, sum 6") {
		t.Errorf("it says %q", said)
	}
}

// TestPeerCompileFails: sources that do not compile are told with the compiler's words, a
// build that hangs ends with its context, and nothing of it is left running.
func TestPeerCompileFails(t *testing.T) {
	image := controller(t)
	site := t.TempDir()
	for name, text := range map[string]string{"broken": "all:\n\tgcc -c broken.c\n", "hangs": "all:\n\tsleep 54321 & sleep 54321\n", "nothing": "all:\n\ttrue\n"} {
		if err := os.WriteFile(filepath.Join(site, name+".tar.gz"), pack(t, file("p/Makefile", text), file("p/broken.c", "int x = y;\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	b := build{dir: dir, root: filepath.Join(dir, "root"), say: func(string) {}, of: Root{Suite: "bookworm", Arch: inventory.AMD64, Image: image, Packages: []string{"gcc", "libc6-dev", "make"}}}
	if err := b.bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	try := func(ctx context.Context, name string) error {
		p := Program{Package: name, Source: Source{At: name + ".tar.gz"}, Steps: [][]string{{"/usr/bin/make"}}, Files: []Files{{Glob: "build/*"}}}
		a, err := p.Source.read(ctx, site, filepath.Join(dir, name), func(string) {})
		if err != nil {
			return err
		}
		_, err = b.program(ctx, p, a)
		return err
	}
	if err := try(t.Context(), "broken"); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "undeclared here") || errkind.Action(err) == "" {
		t.Errorf("broken: %v", err)
	}
	if err := try(t.Context(), "nothing"); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "build/*") {
		t.Errorf("nothing: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := try(ctx, "hangs"); errkind.Of(err) != errkind.Timeout {
		t.Errorf("hangs: %v", err)
	}
	if out, _ := exec.CommandContext(t.Context(), "pgrep", "-f", "sleep 54321").Output(); len(out) > 0 { // 1: none
		t.Errorf("it still runs: %s", out)
	}
}
