// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPackageVersion: versions are ordered as commits are, as dpkg orders them.
func TestPackageVersion(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for described, want := range map[string]string{
		"":                            "0.0.0+20260102030405.0123456789ab",
		"v1.2.0":                      "1.2.0",
		"v1.2.0-14-g0123456789ab":     "1.2.0+14.g0123456789ab",
		"v1.3.0-rc.1":                 "1.3.0~rc.1",
		"v1.3.0-rc.1-2-g0123456789ab": "1.3.0~rc.1+2.g0123456789ab",
	} {
		if got, err := packageVersion(described, "0123456789abcdef", at); got != want || err != nil {
			t.Errorf("%q: %q (%v), want %q", described, got, err, want)
		}
	}
	for _, described := range []string{"v1.2.0-a-b", "v1_2", "v1.2.0-rc/1"} {
		if got, err := packageVersion(described, "0123456789abcdef", at); err == nil {
			t.Errorf("%q became %q", described, got)
		}
	}
}

// TestPeerVersions: dpkg and rpm order the versions of commits by time.
func TestPeerVersions(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "dpkg-query", "rpm")
	var ordered []string
	for _, described := range []string{"", "v1.2.0-rc.1", "v1.2.0-rc.1-2-gffffffffffff", "v1.2.0", "v1.2.0-2-gffffffffffff", "v1.2.0-14-g000000000000", "v1.2.1"} {
		v, err := packageVersion(described, "0123456789abcdef", time.Unix(0, 0).UTC())
		if err != nil {
			t.Fatal(err)
		}
		ordered = append(ordered, v)
	}
	for i, older := range ordered[:len(ordered)-1] {
		newer := ordered[i+1]
		if err := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", older, "lt", newer).Run(); err != nil {
			t.Errorf("dpkg: %s is not older than %s", older, newer)
		}
		out, err := exec.CommandContext(t.Context(), "rpm", "--eval", `%{lua: print(rpm.vercmp("`+older+`", "`+newer+`"))}`).Output()
		if strings.TrimSpace(string(out)) != "-1" {
			t.Errorf("rpm: %s is not older than %s: %s (%v)", older, newer, out, err)
		}
	}
}

// clone copies the commit that is checked out: edits of whoever runs the tests are not
// released.
func clone(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "clone")
	run(t, "", "git", "clone", "--quiet", "--no-hardlinks", "../..", to)
	return to
}

// run runs a program in a folder and returns what it printed.
func run(t *testing.T, folder string, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// one is the file of a release with this beginning and end.
func one(t *testing.T, folder, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v, %v", pattern, all, err)
	}
	return all[0]
}

// TestPeerRelease: a release of the commit for the processor of this computer. It is made
// twice, to the same bytes; minisign and sha256sum verify it; a clean root of Debian
// installs the package, rehearses the tour's site without Go as an ordinary user, and
// removes it; rpm installs the other; skopeo and umoci read the image.
func TestPeerRelease(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("not root: a root file system cannot be made")
	}
	peertest.Need(t, "dpkg-deb", "gpgv", "groff", "minisign", "mmdebstrap", "rpm", "setpriv", "skopeo", "systemd-analyze", "umoci", "unshare")
	folder, work := clone(t), t.TempDir()
	program, key := filepath.Join(work, "ironrail-release"), filepath.Join(work, "key")
	run(t, "", "go", "build", "-o", program, ".")
	run(t, folder, "go", "run", "./cmd/ironrail", "report", "keygen", "--no-passphrase", "--key", key)
	first, second := filepath.Join(work, "first"), filepath.Join(work, "second")
	run(t, folder, program, "-out", first, "-arch", runtime.GOARCH, "-key", key)
	run(t, folder, program, "-out", second, "-arch", runtime.GOARCH, "-key", key)
	if got, want := read(t, second, sumsFile), read(t, first, sumsFile); got != want {
		t.Errorf("the same commit gave other bytes:\n%s\n%s", got, want)
	}
	run(t, first, "minisign", "-V", "-p", key+".pub", "-m", sumsFile)
	run(t, first, "sha256sum", "--check", sumsFile)

	root := filepath.Join(work, "root")
	run(t, "", "mmdebstrap", "--mode=root", "--variant=apt", "--skip=cleanup/apt/lists", "bookworm", root, "http://deb.debian.org/debian")
	t.Run("deb", func(t *testing.T) { checkDeb(t, root, one(t, first, "*.deb")) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, root, one(t, first, "*.rpm")) })
	t.Run("image", func(t *testing.T) { checkImage(t, one(t, first, "*.oci.tar")) })
	t.Run("archive", func(t *testing.T) { checkArchive(t, one(t, first, "*.tar.gz")) })
	t.Run("modules", func(t *testing.T) { checkModules(t, one(t, first, "*.spdx.json")) })
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// inRoot runs a line of shell in a root file system, with the network of this computer.
func inRoot(t *testing.T, root, line string) string {
	t.Helper()
	return run(t, "", "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", `mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"; exec chroot "$1" sh -ec "$2"`, "sh", root, line)
}

// rehearsal is a first rehearsal without Go, by a user who may write nowhere but at home.
const rehearsal = `
test ! -e /usr/bin/go
useradd --create-home --user-group installer
as() { setpriv --reuid installer --regid installer --clear-groups env HOME=/home/installer "$@"; }
as ironrail -C /usr/share/ironrail/examples/hgx-h100 rehearse --color never
as ironrail init /home/installer/site
as ironrail -C /usr/share/ironrail/examples/demo rehearse --keep /home/installer/kept >/dev/null
as bash -ec '
	ironrail -C $HOME/kept serve --listen 127.0.0.1:0 --json >$HOME/address &
	trap "kill $!" EXIT
	for i in $(seq 600); do
		port=$(sed -n "s|.*http://127.0.0.1:\([0-9]*\)/.*|\1|p" $HOME/address | head -1)
		test -z "$port" || break
		sleep 0.1
	done
	exec 3<>/dev/tcp/127.0.0.1/$port
	printf "GET / HTTP/1.0\r\nHost: 127.0.0.1:$port\r\n\r\n" >&3
	grep -a -m1 "Site demo\|site demo\|>demo<" <&3 >/dev/null
	echo the page is served'
as ironrail -C /home/installer/site check
userdel --remove installer
`

func checkDeb(t *testing.T, root, file string) {
	name := filepath.Base(file)
	run(t, "", "cp", file, filepath.Join(root, "tmp", name))
	before := inRoot(t, root, "dpkg-query -W -f '${Package}\\n' | sort")
	// What it recommends exists in Debian; what it needs is what it brings.
	if out := inRoot(t, root, "apt-get -o APT::Install-Recommends=true install --simulate --quiet /tmp/"+name); !strings.Contains(out, "Inst mmdebstrap") {
		t.Errorf("apt would not install what image builds need:\n%s", out)
	}
	inRoot(t, root, "apt-get install --yes --quiet --no-install-recommends /tmp/"+name)
	after := inRoot(t, root, "dpkg-query -W -f '${Package}\\n' | grep -vx ironrail | sort")
	if before != after {
		t.Errorf("a clean root has other packages now:\n%s\n%s", before, after)
	}
	if out := inRoot(t, root, rehearsal); !strings.Contains(out, "accepted") || !strings.Contains(out, "the page is served") {
		t.Errorf("no node was accepted, or no page was served:\n%s", out)
	}
	run(t, "", "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "--root="+root, "ironrail@site.service")
	run(t, "", "systemd-analyze", "security", "--offline=true", "--threshold=20", "--root="+root, "ironrail@site.service")
	if got := inRoot(t, root, "stat -c '%U:%G %a' /var/lib/ironrail; readlink -e /usr/share/doc/ironrail/examples"); got != "ironrail:ironrail 750\n/usr/share/ironrail/examples\n" {
		t.Errorf("%q", got)
	}
	pages := 0
	for _, page := range strings.Fields(inRoot(t, root, "ls /usr/share/man/man1/ironrail*")) {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", `zcat "$1" | groff -ww -man -Tutf8`, "sh", filepath.Join(root, page))
		var warnings, text bytes.Buffer
		cmd.Stdout, cmd.Stderr = &text, &warnings
		if err := cmd.Run(); err != nil || warnings.Len() > 0 || text.Len() < 300 {
			t.Errorf("%s: %v: %s", page, err, warnings.Bytes())
		}
		pages++
	}
	if pages < 50 {
		t.Errorf("%d pages of the manual", pages)
	}
	inRoot(t, root, "bash -ec '. /usr/share/bash-completion/completions/ironrail; complete -p ironrail'")

	// A site stays; all else goes.
	inRoot(t, root, "echo site >/var/lib/ironrail/site.hcl; apt-get purge --yes --quiet ironrail; test -e /var/lib/ironrail/site.hcl; rm -r /var/lib/ironrail; ! ls -d /usr/bin/ironrail* /usr/share/ironrail /usr/share/doc/ironrail /usr/share/man/man1/ironrail*")
}

func checkRPM(t *testing.T, root, file string) {
	run(t, "", "rpm", "--root", root, "--install", "--nodeps", file)
	if out := inRoot(t, root, rehearsal); !strings.Contains(out, "accepted") {
		t.Errorf("no node was accepted:\n%s", out)
	}
	if got := inRoot(t, root, "stat -c '%U:%G %a' /var/lib/ironrail; ls /usr/share/zsh/site-functions"); got != "ironrail:ironrail 750\n_ironrail\n" {
		t.Errorf("%q", got)
	}
	if out := run(t, "", "rpm", "--root", root, "--verify", "ironrail"); strings.TrimSpace(out) != "" {
		t.Errorf("rpm finds other files than it installed: %s", out)
	}
	run(t, "", "rpm", "--root", root, "--erase", "ironrail")
	inRoot(t, root, "! ls -d /usr/bin/ironrail* /usr/share/ironrail /usr/share/doc/ironrail")
}

func checkImage(t *testing.T, file string) {
	work := t.TempDir()
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "ironrail_"), "_linux.oci.tar")
	run(t, "", "skopeo", "copy", "--insecure-policy", "oci-archive:"+file+":"+version, "oci:"+work+"/layout:one")
	run(t, work, "umoci", "unpack", "--image", "layout:one", "bundle")
	if out := run(t, "", "chroot", filepath.Join(work, "bundle", "rootfs"), "/usr/bin/ironrail", "version"); !strings.HasPrefix(out, "ironrail ") {
		t.Errorf("%q", out)
	}
	var config struct{ Process struct{ Args []string } }
	if err := json.Unmarshal([]byte(read(t, work, "bundle", "config.json")), &config); err != nil || !slices.Equal(config.Process.Args, []string{"/usr/bin/ironrail"}) {
		t.Errorf("starts %q (%v)", config.Process.Args, err)
	}
}

func checkArchive(t *testing.T, file string) {
	work := t.TempDir()
	run(t, work, "tar", "-xf", file)
	folder := strings.TrimSuffix(filepath.Base(file), ".tar.gz")
	for _, name := range []string{"ironrail", "ironrail-agent", "LICENSE", "licenses-of-modules.txt", "README.md", "docs/guide.md", "man1/ironrail-apply.1.gz"} {
		if _, err := os.Stat(filepath.Join(work, folder, name)); err != nil {
			t.Error(err)
		}
	}
	run(t, work, filepath.Join(work, folder, "ironrail"), "-C", filepath.Join(folder, "examples", "hgx-h100"), "check")
}

func checkModules(t *testing.T, file string) {
	var doc v2_3.Document
	if err := json.Unmarshal([]byte(read(t, file)), &doc); err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, p := range doc.Packages {
		has[p.PackageName] = true
	}
	for _, name := range []string{"ironrail", "stdlib", "github.com/pin/tftp/v3", "github.com/insomniacslk/dhcp", "github.com/bmc-toolbox/bmclib/v2", "github.com/stmcginnis/gofish", "golang.org/x/crypto", "github.com/hashicorp/hcl/v2", "github.com/Mellanox/rdmamap"} {
		if !has[name] {
			t.Errorf("%s is not listed", name)
		}
	}
	if len(doc.Packages) != len(doc.Relationships) || doc.DataLicense != "CC0-1.0" {
		t.Errorf("%d packages, %d relationships, %s", len(doc.Packages), len(doc.Relationships), doc.DataLicense)
	}
}

// TestEditedIsRefused: files that differ from the commit are not released.
func TestEditedIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	run(t, folder, "git", "init", "--quiet")
	if err := os.WriteFile(filepath.Join(folder, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, folder, "git", "add", "f")
	run(t, folder, "git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "f")
	program := filepath.Join(t.TempDir(), "release")
	run(t, "", "go", "build", "-o", program, ".")
	if err := os.WriteFile(filepath.Join(folder, "f"), []byte("edited"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "files differ from commit") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(folder, "dist")); err == nil {
		t.Error("it began to write")
	}
}
