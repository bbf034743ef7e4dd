// SPDX-License-Identifier: Apache-2.0

//go:build driversfull

package compile

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// TestPeerCompileRPM makes a root of RPM packages with real dnf, compiles an MPI program in it by
// the variables of nccl-tests, packs it twice with real rpmbuild to the same bytes, and runs it
// under the mpirun of RHEL's place. The packages are Debian's files. It takes some minutes.
func TestPeerCompileRPM(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: a root file system cannot be made")
	}
	peertest.Need(t, "cpio", "createrepo_c", "dnf", "gpg", "gpgconf", "mmdebstrap", "rpm", "rpm2cpio", "rpmbuild", "unshare")
	run := func(argv ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	script, err := filepath.Abs("testdata/toolchain.sh")
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(t.TempDir(), "made")
	run("sh", script, t.TempDir(), made, mirror)
	server := httptest.NewServer(http.FileServer(http.Dir(made)))
	t.Cleanup(server.Close)
	sources, err := json.Marshal(repo.DnfSources{Release: "9", Repositories: []repo.DnfRepository{{Name: "appstream", URL: server.URL, Key: string(content(t, filepath.Join(made, "key.asc")))}}})
	if err != nil {
		t.Fatal(err)
	}
	repositories, site := filepath.Join(t.TempDir(), "repositories.json"), t.TempDir()
	if err := os.WriteFile(repositories, sources, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(site, "tests-1.0.tar.gz"), pack(t, file("tests-1.0/Makefile", makefile), file("tests-1.0/all_reduce.cc", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	family, _ := distribution.Find(distribution.RHEL)
	_, libraries := family.MPIRun()
	r := Root{Arch: inventory.AMD64, Image: repo.Image{Repositories: repositories, Database: filepath.Join(made, "rpmdb.sqlite")}, Packages: family.Tools().Compile}
	p := Program{Package: "ironrail-tests", About: "a test", Depends: family.Tools().MPI[:1], Source: Source{At: "tests-1.0.tar.gz"},
		Steps: [][]string{{"/usr/bin/make", "MPI=1", "NAME_SUFFIX=_mpi", "MPI_HOME=" + family.MPIHome(inventory.AMD64)}},
		Env:   []string{"NVCC_APPEND_FLAGS=-DOMPI_SKIP_MPICXX=1 -I" + family.MPIHeaders(inventory.AMD64) + " -Xlinker -rpath=" + libraries}, Files: []Files{{Glob: "build/*_perf*", Trim: "_mpi", Suffix: "_mpi"}}}
	dir := t.TempDir()
	t.Setenv("SECRET_OF_THE_CONTROLLER", "x")
	list, err := Build(t.Context(), dir, site, r, []Program{p}, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	b := build{dir: t.TempDir(), root: root, of: r, say: func(string) {}} // packed once more, of the same root
	a, err := p.Source.read(t.Context(), site, filepath.Join(b.dir, "archive"), b.say)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.pack(t.Context(), p, a, filepath.Join(root, filepath.FromSlash(work(p))))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content(t, list[0]), content(t, again)) {
		t.Error("two packages of the same files have other bytes")
	}
	said := run("rpm", "-qp", "--qf", "%{NAME} %{VERSION}-%{RELEASE} %{ARCH} %{BUILDHOST}\n[%{REQUIRES}\n][%{FILENAMES} %{FILEUSERNAME}\n]", list[0])
	if !strings.HasPrefix(said, "ironrail-tests 1.0+") || !strings.Contains(said, " x86_64 localhost\n") || !strings.Contains(said, "\nopenmpi\n") || strings.Contains(said, "libmpi") || !strings.Contains(said, "/usr/bin/all_reduce_perf_mpi root\n") {
		t.Errorf("the package is %s", said)
	}
	run("sh", "-c", `cd "$1" && rpm2cpio "$2" | cpio --quiet -idm`, "sh", root, list[0])
	mpirun, _ := family.MPIRun()
	if said := run("chroot", root, mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "3", "/usr/bin/all_reduce_perf_mpi"); !strings.Contains(said, "3 ranks, sum 6") {
		t.Errorf("it says %q", said)
	}
}
