// SPDX-License-Identifier: Apache-2.0

package repodata

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// sample are two packages.
func sample() []Package {
	sum := strings.Repeat("0a", 32)
	return []Package{
		{Name: "nvidia-driver-cuda", Arch: "x86_64", Epoch: "3", Version: "580.126.16", Release: "1.el9", File: "pool/nvidia-driver-cuda-580.126.16-1.el9.x86_64.rpm", Sum: sum, Size: 7, Needs: []string{"dkms", "a(b)(64bit)"}},
		{Name: "mlnx-ofa_kernel-dkms", Arch: "noarch", Epoch: "0", Version: "25.10", Release: "OFED.25.10.1.7.1.1.el9", File: "pool/m.rpm", Sum: sum, Size: 9},
	}
}

// TestWriteRead: what is written is read again, and the index names it.
func TestWriteRead(t *testing.T) {
	t.Parallel()
	files, err := Write(sample())
	if err != nil {
		t.Fatal(err)
	}
	list, err := ParseIndex(files[Index])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if b := files[f.Name]; sumOf(b) != f.Sum || int64(len(b)) != f.Size {
			t.Errorf("%s: %d bytes of %s, want %+v", f.Name, len(b), sumOf(b), f)
		}
	}
	got, err := ParsePrimary(bytes.NewReader(files[Find(list, Primary).Name]))
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got[0].EVR() != "3:580.126.16-1.el9" || got[1].EVR() != "25.10-OFED.25.10.1.7.1.1.el9" {
		t.Errorf("versions %s and %s", got[0].EVR(), got[1].EVR())
	}
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	b, err := pack([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBroken: what is no metadata, or names what would not be safe, is an error.
func TestBroken(t *testing.T) {
	t.Parallel()
	files, err := Write(sample())
	if err != nil {
		t.Fatal(err)
	}
	index := string(files[Index])
	for what, text := range map[string]string{
		"no XML": "<html>", "no primary": strings.Replace(index, `type="primary"`, `type="updateinfo"`, 1),
		"another checksum": strings.Replace(index, `type="sha256"`, `type="sha1"`, 1),
	} {
		if _, err := ParseIndex([]byte(text)); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	good := `<metadata><package><name>a</name><arch>noarch</arch><version epoch="0" ver="1" rel="1"/><checksum type="sha256">` + strings.Repeat("0a", 32) + `</checksum><location href="pool/a.rpm"/></package></metadata>`
	if _, err := ParsePrimary(bytes.NewReader(zipped(t, good))); err != nil {
		t.Error(err)
	}
	for what, change := range map[string][2]string{
		"name": {">a<", ">-a<"}, "version": {`ver="1"`, `ver="1 2"`}, "epoch": {`epoch="0"`, `epoch="x"`}, "arch": {"noarch", "no arch"},
		"no file": {"pool/a.rpm", ""}, "sum": {"0a0a", "0a"}, "cut": {"</metadata>", ""},
	} {
		if _, err := ParsePrimary(bytes.NewReader(zipped(t, strings.Replace(good, change[0], change[1], 1)))); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ParsePrimary(strings.NewReader("plain")); errkind.Of(err) != errkind.Invalid {
		t.Errorf("not packed: %v", err)
	}
}

// TestPeerCreaterepo: metadata of createrepo_c is read, and real dnf reads what is written here.
func TestPeerCreaterepo(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "createrepo_c", "dnf", "rpmbuild")
	dir := t.TempDir()
	spec := "Name: Tools_a\nVersion: 1.2~rc1\nRelease: 3.el9\nEpoch: 4\nSummary: a\nLicense: a\nBuildArch: noarch\nRequires: bash >= 5\n%description\na\n%files\n"
	run := func(argv ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.spec"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	run("rpmbuild", "-bb", "--quiet", "--define", "_topdir "+dir+"/top", "--define", "_rpmdir "+dir+"/made", filepath.Join(dir, "a.spec"))
	run("createrepo_c", "--quiet", "--no-database", dir+"/made")
	index, err := os.ReadFile(filepath.Join(dir, "made", Index))
	if err != nil {
		t.Fatal(err)
	}
	list, err := ParseIndex(index)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "made", Find(list, Primary).Name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := ParsePrimary(f)
	if err != nil || len(got) != 1 || got[0].Name != "Tools_a" || got[0].EVR() != "4:1.2~rc1-3.el9" || !strings.Contains(strings.Join(got[0].Needs, " "), "bash") {
		t.Fatalf("got %+v, %v", got, err)
	}
	files, err := Write(append(sample(), got...))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		at := filepath.Join(dir, "written", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := run("dnf", "--quiet", "--installroot="+dir+"/root", "--releasever=9", "--setopt=cachedir="+dir+"/cache", "--setopt=reposdir=/nonexistent", "--setopt=logdir="+dir, "--repofrompath=w,file://"+dir+"/written",
		"repoquery", "--queryformat", "%{name} %{epoch} %{version} %{release} %{arch}")
	if want := "Tools_a 4 1.2~rc1 3.el9 noarch\nmlnx-ofa_kernel-dkms 0 25.10 OFED.25.10.1.7.1.1.el9 noarch\nnvidia-driver-cuda 3 580.126.16 1.el9 x86_64\n"; out != want {
		t.Errorf("dnf reads\n%s", out)
	}
}

func FuzzParse(f *testing.F) {
	files, err := Write(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(files[Index])
	f.Add([]byte(`<metadata><package><name>a</name></package></metadata>`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if list, err := ParseIndex(b); err == nil && Find(list, Primary) == nil {
			t.Error("no primary")
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(b)
		_ = w.Close()
		all, _ := ParsePrimary(&packed)
		for _, p := range all {
			if !IsName(p.Name) || p.File == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}
