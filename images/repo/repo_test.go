// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/gpgtest"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// deb builds a package with one file and returns its path.
func deb(t *testing.T, dir, name, version, depends string) string {
	t.Helper()
	return debFor(t, dir, name, version, depends, "amd64")
}

// debFor is deb for an architecture.
func debFor(t *testing.T, dir, name, version, depends, arch string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), name)
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody <nobody@example.org>\nDescription: for a test\n further text\n", name, version, arch)
	if depends != "" {
		control += "Depends: " + depends + "\n"
	}
	must(t, os.MkdirAll(filepath.Join(root, "DEBIAN"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "DEBIAN/control"), []byte(control), 0o644))
	must(t, os.WriteFile(filepath.Join(root, name), []byte(name+version), 0o644))
	path := filepath.Join(dir, name+"_"+strings.ReplaceAll(version, ":", "%3a")+"_"+arch+".deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "-b", root, path).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// distribution is an archive of a pretended distribution, itself made by this
// package, and an image that has one of its packages.
type distribution struct {
	options Options
	debs    string
}

func newDistribution(t *testing.T) *distribution {
	t.Helper()
	peertest.Need(t, "apt-get", "dpkg-deb", "gpgv")
	dir := t.TempDir()
	d := &distribution{debs: filepath.Join(dir, "debs")}
	must(t, os.MkdirAll(d.debs, 0o755))
	paths := []string{
		deb(t, d.debs, "stack", "2:1.5-1", "libstack (>= 1.0), libpresent"), deb(t, d.debs, "libstack", "1.0+b1", ""),
		deb(t, d.debs, "libpresent", "3.1", ""), deb(t, d.debs, "unrelated", "1", ""),
	}
	archive := newArchive(t, filepath.Join(dir, "archive"), paths)
	server := httptest.NewServer(http.FileServer(http.Dir(archive.dir)))
	t.Cleanup(server.Close)
	base := filepath.Join(dir, "image")
	must(t, os.MkdirAll(base, 0o755))
	write := func(name, text string) string {
		path := filepath.Join(base, name)
		must(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	key, err := LoadKey(filepath.Join(dir, "repo.asc"))
	must(t, err)
	keyring := filepath.Join(base, "keyring.gpg")
	must(t, os.WriteFile(keyring, archive.binaryKey(t), 0o644))
	d.options = Options{
		Dir: filepath.Join(dir, "repos"), Name: "rdma", Packages: []string{"stack"}, Key: key,
		Image: Image{
			Digest: "sha256:" + strings.Repeat("a", 64), Keyring: keyring,
			Status:  write("status", "Package: libpresent\nStatus: install ok installed\nVersion: 3.0\nArchitecture: amd64\nMaintainer: x\nDescription: x\n"),
			Sources: write("sources.list", "deb [signed-by=/not/there.gpg] "+server.URL+"/ ./\n"),
		},
	}
	return d
}

// archive is a flat repository without this package's layout above it.
type archive struct {
	dir string
	key *Key
}

func newArchive(t *testing.T, dir string, debs []string) archive {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	key, err := LoadKey(filepath.Join(dir, "archive.asc"))
	must(t, err)
	stanzas, err := fillPool(t.Context(), filepath.Join(dir, pool), debs)
	must(t, err)
	_, err = writeIndex(Options{Name: "archive", Key: key}, dir, stanzas)
	must(t, err)
	return archive{dir, key}
}

func (a archive) binaryKey(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	f, err := os.Create(path)
	must(t, err)
	must(t, errors.Join(a.key.entity.Serialize(f), f.Close()))
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func TestPeerBuildTakesTheClosureWithoutWhatTheImageHas(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	r, err := Build(t.Context(), d.options)
	must(t, err)
	if len(r.Packages) != 2 || r.Packages["stack"] != "2:1.5-1" || r.Packages["libstack"] != "1.0+b1" {
		t.Errorf("packages %v, want stack 2:1.5-1 and libstack 1.0+b1", r.Packages)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "pool", "stack_1.5-1_amd64.deb")); err != nil {
		t.Error(err)
	}
	must(t, r.Verify(t.Context(), d.options.Key))
}

// TestPeerBuildForARM64: on a controller of another architecture, packages of the image's
// own are taken, and the index says so; apt itself reads it.
func TestPeerBuildForARM64(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := newDistribution(t)
	archive := newArchive(t, filepath.Join(dir, "both"), []string{
		deb(t, d.debs, "stack", "2:1.5-1", "libstack"), deb(t, d.debs, "libstack", "1.0+b1", ""),
		debFor(t, d.debs, "stack", "2:1.4-1", "libstack, libpresent", "arm64"), debFor(t, d.debs, "libstack", "0.9", "", "arm64"),
	})
	server := httptest.NewServer(http.FileServer(http.Dir(archive.dir)))
	t.Cleanup(server.Close)
	o := d.options
	o.Image.Arch, o.Image.Sources = "arm64", filepath.Join(dir, "sources.list")
	must(t, os.WriteFile(o.Image.Sources, []byte("deb [trusted=yes] "+server.URL+"/ ./\n"), 0o644))
	o.Image.Status = filepath.Join(dir, "status")
	must(t, os.WriteFile(o.Image.Status, []byte("Package: libpresent\nStatus: install ok installed\nVersion: 3.0\nArchitecture: arm64\nMaintainer: x\nDescription: x\n"), 0o644))
	amd64 := o
	amd64.Image.Arch = ""
	if o.inputs() == amd64.inputs() {
		t.Error("the inputs are those of another architecture")
	}
	r, err := Build(t.Context(), o)
	must(t, err)
	if len(r.Packages) != 2 || r.Packages["stack"] != "2:1.4-1" || r.Packages["libstack"] != "0.9" {
		t.Errorf("packages %v, want stack 2:1.4-1 and libstack 0.9", r.Packages)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "pool", "stack_1.4-1_arm64.deb")); err != nil {
		t.Error(err)
	}
	release, err := os.ReadFile(filepath.Join(r.Dir, inRelease))
	must(t, err)
	if !strings.Contains(string(release), "\nArchitectures: arm64\n") {
		t.Errorf("the index says:\n%s", release)
	}
	must(t, r.Verify(t.Context(), o.Key))
}

// TestPeerDownload: single packages of an architecture, signed by a known key, without what
// they need; nothing of an archive that another key has signed.
func TestPeerDownload(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	archive := newArchive(t, filepath.Join(t.TempDir(), "archive"), []string{debFor(t, d.debs, "shim", "1", "not-there", "arm64"), deb(t, d.debs, "shim", "2", "")})
	s := Source{URL: "file:" + archive.dir, Suite: "./"}
	key := filepath.Join(t.TempDir(), "key.gpg")
	must(t, os.WriteFile(key, archive.binaryKey(t), 0o644))
	got, err := Download(t.Context(), filepath.Join(t.TempDir(), "apt"), "arm64", key, []Source{s}, "shim")
	if err != nil || len(got) != 1 || filepath.Base(got[0]) != "shim_1_arm64.deb" {
		t.Errorf("got %v, %v, want shim_1_arm64.deb", got, err)
	}
	if got, err := Download(t.Context(), filepath.Join(t.TempDir(), "apt"), "arm64", key, []Source{s}, "nothing"); err == nil {
		t.Errorf("a package that is not there: %v", got)
	}
	if got, err := Download(t.Context(), filepath.Join(t.TempDir(), "apt"), "arm64", d.options.Image.Keyring, []Source{s}, "shim"); err == nil {
		t.Errorf("signed by another key: %v", got)
	}
	if _, err := Download(t.Context(), t.TempDir(), "arm64", d.options.Image.Keyring, []Source{{URL: "a b", Suite: "./"}}, "shim"); errkind.Of(err) != errkind.Refused {
		t.Errorf("a source that cannot stand in a list: %v", err)
	}
}

func TestPeerBuildIsSkippedUntilAnInputChanges(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	first, err := Build(t.Context(), d.options)
	must(t, err)
	sources := d.options.Image.Sources
	d.options.Image.Sources = "/not/there" // a build would have to read it
	again, err := Build(t.Context(), d.options)
	if err != nil || again.Dir != first.Dir {
		t.Fatalf("second build: %v, %q, want it skipped", err, again.Dir)
	}
	d.options.Image.Sources = sources
	d.options.Packages = []string{"stack", "unrelated"}
	if _, found, err := Find(d.options); found || err != nil {
		t.Fatalf("Find with other packages: %v, %v, want nothing", found, err)
	}
	second, err := Build(t.Context(), d.options)
	must(t, err)
	if second.Digest == first.Digest || second.Packages["unrelated"] != "1" {
		t.Errorf("after a change: %v", second.Packages)
	}
	if _, err := os.Stat(first.Dir); err != nil {
		t.Errorf("the repository before is gone too early: %v", err)
	}
}

func TestPeerDamageIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	r, err := Build(t.Context(), d.options)
	must(t, err)
	for _, name := range []string{"pool/stack_1.5-1_amd64.deb", packages, packagesGz, inRelease} {
		path := filepath.Join(r.Dir, name)
		whole, err := os.ReadFile(path)
		must(t, err)
		for what, b := range map[string][]byte{"one byte": flip(whole), "cut": whole[:len(whole)/2]} {
			must(t, os.WriteFile(path, b, 0o644))
			if err := r.Verify(t.Context(), d.options.Key); errkind.Of(err) != errkind.Corrupt {
				t.Errorf("%s, %s: got %v, want corrupt", name, what, err)
			}
		}
		must(t, os.WriteFile(path, whole, 0o644))
	}
	must(t, r.Verify(t.Context(), d.options.Key))
	must(t, os.Remove(filepath.Join(r.Dir, "pool/stack_1.5-1_amd64.deb")))
	r, err = Build(t.Context(), d.options)
	must(t, err)
	must(t, r.Verify(t.Context(), d.options.Key))
}

func flip(b []byte) []byte {
	c := append([]byte{}, b...)
	c[len(c)/3] ^= 0x20
	return c
}

func TestPeerForeignKeyIsRefused(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	r, err := Build(t.Context(), d.options)
	must(t, err)
	other, err := LoadKey(filepath.Join(t.TempDir(), "other.asc"))
	must(t, err)
	if err := r.Verify(t.Context(), other); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("got %v, want corrupt", err)
	}
}

// TestPeerGpgvAndAptAccept asks the programs that nodes use.
func TestPeerGpgvAndAptAccept(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	r, err := Build(t.Context(), d.options)
	must(t, err)
	keyring := filepath.Join(t.TempDir(), "key.gpg")
	must(t, os.WriteFile(keyring, archive{key: d.options.Key}.binaryKey(t), 0o644))
	if out, err := exec.Command("gpgv", "--keyring", keyring, filepath.Join(r.Dir, inRelease)).CombinedOutput(); err != nil {
		t.Fatalf("gpgv: %v: %s", err, out)
	}
	server := httptest.NewServer(Handler(d.options.Dir, "/repo/"))
	defer server.Close()
	if out, err := aptInstall(t, server.URL, r.Key, d.options.Image.Status); err != nil {
		t.Errorf("apt-get: %v: %s", err, out)
	}
	other, err := LoadKey(filepath.Join(t.TempDir(), "other.asc"))
	must(t, err)
	if out, err := aptInstall(t, server.URL, other.Public(), d.options.Image.Status); err == nil {
		t.Errorf("apt-get took a repository that another key signed: %s", out)
	}
}

// aptInstall is a node: it knows one source, and what is installed.
func aptInstall(t *testing.T, url string, key []byte, status string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"etc/apt/none", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	asc := filepath.Join(dir, "etc/apt/ironrail.asc")
	must(t, os.WriteFile(asc, key, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "etc/apt/sources.list"), []byte("deb [signed-by="+asc+"] "+url+"/repo/rdma/ ./\n"), 0o644))
	conf := filepath.Join(dir, "apt.conf")
	must(t, os.WriteFile(conf, []byte(fmt.Sprintf(aptConf, dir, "/dev/null", status, "amd64")), 0o644))
	var all strings.Builder
	for _, argv := range [][]string{{"update", "--error-on=any"}, {"install", "-y", "--download-only", "stack"}} {
		cmd := exec.CommandContext(t.Context(), "apt-get", argv...)
		cmd.Env = append(os.Environ(), "APT_CONFIG="+conf, "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		all.Write(out)
		if err != nil {
			return all.String(), err
		}
	}
	got, err := filepath.Glob(filepath.Join(dir, "var/cache/apt/archives/*.deb"))
	if err == nil && len(got) != 2 {
		err = fmt.Errorf("%d packages fetched, want 2", len(got))
	}
	return all.String(), err
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	key, err := LoadKey(filepath.Join(t.TempDir(), "k.asc"))
	must(t, err)
	for name, o := range map[string]Options{
		"name with a slash":       {Name: "a/b", Packages: []string{"stack"}, Key: key},
		"no name":                 {Packages: []string{"stack"}, Key: key},
		"no packages":             {Name: "a", Key: key},
		"option as a package":     {Name: "a", Packages: []string{"-oDir=/"}, Key: key},
		"package with a version":  {Name: "a", Packages: []string{"x=1"}, Key: key},
		"package with upper case": {Name: "a", Packages: []string{"Xx"}, Key: key},
	} {
		o.Dir = t.TempDir()
		if _, err := Build(t.Context(), o); errkind.Of(err) != errkind.Refused {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
}

func TestPeerBuildWithoutThePackage(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	d.options.Packages = []string{"nowhere"}
	_, err := Build(t.Context(), d.options)
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v, want apt's complaint about nowhere", err)
	}
	left, err := filepath.Glob(filepath.Join(d.options.Dir, "rdma", "build-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestPeerBuildEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, d.options); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("got %v, want interrupted", err)
	}
}

func TestPeerHandler(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	_, err := Build(t.Context(), d.options)
	must(t, err)
	h := Handler(d.options.Dir, "/repo/")
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/repo/rdma/InRelease", 200},
		{"HEAD", "/repo/rdma/./Packages.gz", 200},
		{"GET", "/repo/rdma/pool/stack_1.5-1_amd64.deb", 200},
		{"GET", "/repo/rdma/key.asc", 200},
		{"GET", "/repo/rdma/repo.json", 404},
		{"GET", "/repo/rdma/", 404},
		{"GET", "/repo/rdma/pool/", 404},
		{"GET", "/repo/rdma/../rdma/current", 404},
		{"GET", "/repo/rdma/pool/../repo.json", 404},
		{"GET", "/repo/other/InRelease", 404},
		{"GET", "/repo/..%2f..%2frepo.asc", 404},
		{"POST", "/repo/rdma/InRelease", 405},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, w.Code, c.want)
		}
	}
}

func TestWithoutSignedBy(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"deb http://a/ b c\n", "deb http://a/ b c\n"},
		{"deb [signed-by=/k.gpg] http://a/ b c\n", "deb  http://a/ b c\n"},
		{"deb [ arch=amd64 Signed-By=/k.gpg ] http://a/ b c\n", "deb [arch=amd64] http://a/ b c\n"},
		{"# [signed-by=x]\n", "# [signed-by=x]\n"},
	} {
		if got := string(withoutSignedBy([]byte(c[0]))); got != c[1] {
			t.Errorf("%q gave %q, want %q", c[0], got, c[1])
		}
	}
}

func TestKeyIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "k.asc")
	a, err := LoadKey(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	b, err := LoadKey(path)
	must(t, err)
	if a.fingerprint() != b.fingerprint() {
		t.Error("another key the second time")
	}
	must(t, os.WriteFile(path, a.Public(), 0o600))
	if _, err := LoadKey(path); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a public key: got %v, want invalid", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("Package: a1\nVersion: 1:2-3\nArchitecture: amd64\nFilename: pool/x.deb\nSize: 5\nSHA256: ab\n\nPackage: b"))
	f.Add([]byte("SHA256:\n ab 12 Packages\nMD5Sum:\n x\n"))
	f.Add([]byte("deb [signed-by=x] y\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseStanza(b); err == nil && (strings.ContainsAny(s.fileName(), "/:\x00 ") || strings.HasPrefix(s.fileName(), ".")) {
			t.Errorf("file name %q", s.fileName())
		}
		_, _ = parsePackages(b)
		_, _ = parseRelease(b)
		withoutSignedBy(b)
	})
}

// TestPeerBuildFromFolder: packages of a repository in a folder of this controller, such as a
// mirror on a disk, are in the repository that is built.
func TestPeerBuildFromFolder(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	vendor := newArchive(t, filepath.Join(t.TempDir(), "vendor"), []string{deb(t, d.debs, "gpu", "1.0-1", "gpu-libs, libstack"), deb(t, d.debs, "gpu-libs", "1.0-1", "")})
	o := d.options
	o.Packages, o.Sources = []string{"gpu"}, []Source{{URL: "file:" + vendor.dir, Suite: "./", Key: vendor.key.Public()}}
	r, err := Build(t.Context(), o)
	must(t, err)
	if len(r.Packages) != 3 || r.Packages["gpu-libs"] != "1.0-1" {
		t.Errorf("packages %v, want gpu, gpu-libs and libstack", r.Packages)
	}
	must(t, r.Verify(t.Context(), o.Key))
}

// TestPeerBuildWithAdded: a file that was added is on offer beside the sources, and decides what the
// repository is; one that changed since is refused.
func TestPeerBuildWithAdded(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	file := deb(t, t.TempDir(), "tool", "2.0-1", "libstack")
	_, sum, err := folder.Sum(file)
	must(t, err)
	for proof, says := range map[string]string{strings.Repeat("0", 64): "has SHA-256 " + sum, "": "has no signature of its own"} {
		if _, err := Inspect(t.Context(), file, Proof{Sum: proof}); err == nil || !strings.Contains(err.Error(), says) || errkind.Action(err) == "" {
			t.Errorf("%q: %v", proof, err)
		}
	}
	c, err := Inspect(t.Context(), file, Proof{Sum: "sha256:" + strings.ToUpper(sum)})
	if err != nil || c != (Content{Name: "tool", Version: "2.0-1", Arch: "amd64", Digest: "sha256:" + sum}) {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := Inspect(t.Context(), filepath.Join(d.debs, "none.txt"), Proof{Sum: sum}); errkind.Of(err) != errkind.Refused {
		t.Errorf("no package: %v", err)
	}
	o := d.options
	before := o.inputs()
	o.Packages, o.Added = []string{"tool"}, []Added{{File: file, Sum: sum}}
	r, err := Build(t.Context(), o)
	must(t, err)
	if len(r.Packages) != 2 || r.Packages["tool"] != "2.0-1" || r.Packages["libstack"] == "" {
		t.Errorf("packages %v, want tool and libstack", r.Packages)
	}
	o.Packages = d.options.Packages
	if o.inputs() == before || (&d.options).inputs() != before {
		t.Error("what was added does not decide what the repository is")
	}
	must(t, os.WriteFile(file, []byte("another"), 0o600))
	if _, err := Build(t.Context(), o); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("a file that changed: %v", err)
	}
}

// makeRPM makes a package Tool_a without a signature, and returns its file.
func makeRPM(t *testing.T) string { return makeNamed(t, "Tool_a") }

// makeNamed makes such a package of another name.
func makeNamed(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	spec := filepath.Join(dir, "a.spec")
	must(t, os.WriteFile(spec, []byte("Name: "+name+"\nEpoch: 2\nVersion: 1.0\nRelease: 3.el9\nSummary: a\nLicense: a\nBuildArch: noarch\nAutoReqProv: no\n%description\na\n%files\n"), 0o600))
	runRPM(t, dir, "rpmbuild", "-bb", "--quiet", "--define", "_topdir "+dir+"/top", "--define", "_rpmdir "+dir, spec)
	return filepath.Join(dir, "noarch", name+"-1.0-3.el9.noarch.rpm")
}

// runRPM runs a program of rpm in a home of its own.
func runRPM(t *testing.T, home string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// TestPeerBuildDnf: real dnf resolves a package that was added for an image that has none,
// and reads the repository that comes out by its signature.
func TestPeerBuildDnf(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "createrepo_c", "dnf", "rpm", "rpmbuild")
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	o, file, dir := dnfOptions(t), makeRPM(t), t.TempDir()
	runRPM(t, dir, "rpm", "--dbpath", dir, "--define", "_db_backend sqlite", "--initdb")
	_, sum, err := folder.Sum(file)
	must(t, err)
	o.Image.Database = filepath.Join(dir, "rpmdb.sqlite")
	o.Packages, o.Pins, o.Added = []string{"Tool_a"}, nil, []Added{{File: file, Sum: sum}}
	r, err := Build(t.Context(), o)
	must(t, err)
	if len(r.Packages) != 1 || r.Packages["Tool_a"] != "2:1.0-3.el9" {
		t.Errorf("packages %v", r.Packages)
	}
	must(t, r.Verify(t.Context(), o.Key))
	beside := o
	beside.Name = "beside"
	beside.Made = Made{Packages: []string{"Made_b"}, Inputs: "x", Make: func(_ context.Context, dir string, i Image, have []string, _ func(string)) ([]string, error) {
		if len(have) != 1 || i.Database != o.Image.Database {
			t.Errorf("made beside %q, of %+v", have, i)
		}
		to := filepath.Join(dir, "b.rpm")
		return []string{to}, os.Link(makeNamed(t, "Made_b"), to)
	}}
	if r, err := Build(t.Context(), beside); err != nil || len(r.Packages) != 2 || r.Packages["Made_b"] != "2:1.0-3.el9" {
		t.Errorf("with one that is made: %v, %v", r.Packages, err)
	}
	o.Packages = []string{"no-such-package"}
	if _, err := Build(t.Context(), o); errkind.Of(err) != errkind.NotFound || errkind.Action(err) == "" {
		t.Errorf("a package that nobody has: %v", err)
	}
	o.Packages, o.Pins = []string{"Tool_a"}, []Pin{{Packages: []string{"Tool_a"}, Version: "2.0-*"}}
	if _, err := Build(t.Context(), o); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "no Tool_a of version 2.0-*; they have 1.0-3.el9") {
		t.Errorf("another version: %v", err)
	}
	again := o
	again.Packages, again.Pins, again.Added = []string{"Tool_a"}, nil, nil
	again.Sources = []Source{{URL: "file://" + r.Dir, Suite: "./", Key: o.Key.Public()}}
	if r, err := Build(t.Context(), again); err != nil || r.Packages["Tool_a"] != "2:1.0-3.el9" {
		t.Errorf("from the repository that was made: %v, %v", r.Packages, err)
	}
}

// TestPeerInspectRPM: an .rpm is added by its digest, or by the signature of its vendor's key.
func TestPeerInspectRPM(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "gpg", "rpm", "rpmbuild")
	h := gpgtest.New(t)
	key := h.NewKey("vendor", "rsa3072", "0")
	other := h.NewKey("other", "rsa3072", "0")
	file := makeRPM(t)
	if _, err := Inspect(t.Context(), file, Proof{Key: []byte(h.Public(key))}); errkind.Of(err) != errkind.Mismatch {
		t.Errorf("without a signature: %v", err)
	}
	runRPM(t, filepath.Dir(file), "rpm", "--define", "__gpg /usr/bin/gpg", "--define", "_gpg_name "+key, "--define", "_gpg_path "+h.Dir(), "--addsign", file)
	want := Content{Name: "Tool_a", Version: "2:1.0-3.el9", Arch: "noarch"}
	_, sum, err := folder.Sum(file)
	must(t, err)
	want.Digest = "sha256:" + sum
	for what, p := range map[string]Proof{"key": {Key: []byte(h.Public(key))}, "digest": {Sum: sum}} {
		if c, err := Inspect(t.Context(), file, p); err != nil || c != want {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	for what, k := range map[string]string{"another key": h.Public(other), "no key": "keys/vendor.asc"} {
		if _, err := Inspect(t.Context(), file, Proof{Key: []byte(k)}); err == nil || errkind.Action(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
