// SPDX-License-Identifier: Apache-2.0

package roottree

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/peertest"
)

// capability is cap_net_raw=ep, as setcap writes it (linux/capability.h, version 2).
const capability = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sample makes a tree with one of each.
func sample(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: files belong to many users")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"usr/bin", "tmp", "var/empty"} {
		must(t, os.MkdirAll(at(d), 0o755))
	}
	must(t, os.WriteFile(at("usr/bin/ping"), bytes.Repeat([]byte("ping"), 5000), 0o755))
	must(t, os.Chown(at("usr/bin/ping"), 0, 7))
	must(t, unix.Setxattr(at("usr/bin/ping"), "security.capability", []byte(capability), 0))
	must(t, unix.Setxattr(at("usr/bin"), "user.kept", []byte("a\x00b"), 0))
	must(t, os.Link(at("usr/bin/ping"), at("usr/bin/ping4")))
	must(t, os.WriteFile(at("usr/bin/su"), []byte("su"), 0o755))
	must(t, unix.Chmod(at("usr/bin/su"), 0o4755))
	must(t, os.WriteFile(at("usr/bin/empty"), nil, 0o600))
	must(t, os.Symlink("usr/bin", at("bin")))
	must(t, unix.Chmod(at("tmp"), 0o1777))
	must(t, unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	must(t, unix.Mkfifo(at("fifo"), 0o640))
	must(t, os.WriteFile(at("usr/"+strings.Repeat("long", 60)), []byte("ä"), 0o644))
	must(t, unix.Lsetxattr(at("bin"), "trusted.onlink", []byte("x"), 0))
	old := time.Unix(1_735_689_600, 123_000_000)
	for _, name := range []string{"usr/bin/ping", "usr/bin", "var/empty"} {
		must(t, setTime(at(name), old))
	}
	return dir
}

// list says all that a tree is, one line a file.
func list(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		must(t, err)
		info, err := e.Info()
		must(t, err)
		st := info.Sys().(*syscall.Stat_t)
		x, err := attributes(path)
		must(t, err)
		link, _ := os.Readlink(path)
		var content []byte
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
			must(t, err)
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %s %d:%d links %d dev %d time %d.%d %q %q %x\n", name, info.Mode(), st.Uid, st.Gid, st.Nlink, st.Rdev, st.Mtim.Sec, st.Mtim.Nsec, link, x, content)
		return nil
	}))
	return b.String()
}

func TestTreeComesWhole(t *testing.T) {
	t.Parallel()
	from, to := sample(t), t.TempDir()
	var b bytes.Buffer
	must(t, Pack(&b, from))
	packed := bytes.Clone(b.Bytes())
	files, err := Unpack(t.Context(), &b, to)
	must(t, err)
	if got, want := list(t, to), list(t, from); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var again bytes.Buffer
	must(t, Pack(&again, to))
	if !bytes.Equal(packed, again.Bytes()) {
		t.Error("the same tree gives other bytes")
	}
	var read int64
	must(t, files.Verify(t.Context(), to, func(n int64) { read += n }))
	if read != 20000+2+2 {
		t.Errorf("%d bytes were read back", read)
	}
	must(t, os.WriteFile(filepath.Join(to, "usr/bin/su"), []byte("SU"), 0o755))
	if err := files.Verify(t.Context(), to, func(int64) {}); err == nil || !strings.Contains(err.Error(), "usr/bin/su") {
		t.Errorf("other bytes: %v", err)
	}
}

// TestPeerTarReadsTree: GNU tar unpacks the same tree from it.
func TestPeerTarReadsTree(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "tar")
	from, to := sample(t), t.TempDir()
	archive := filepath.Join(t.TempDir(), "tree.tar")
	f, err := os.Create(archive)
	must(t, err)
	must(t, Pack(f, from))
	must(t, f.Close())
	out, err := exec.CommandContext(t.Context(), "tar", "-x", "-p", "--numeric-owner", "--xattrs", "--xattrs-include=*", "-C", to, "-f", archive).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, want := list(t, to), list(t, from); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	folder := &tar.Header{Typeflag: tar.TypeDir, Name: "a/", Mode: 0o755}
	for name, all := range map[string][]*tar.Header{
		"absolute":           {{Typeflag: tar.TypeReg, Name: "/etc/x"}},
		"up":                 {{Typeflag: tar.TypeReg, Name: "a/../../x"}},
		"without folder":     {{Typeflag: tar.TypeReg, Name: "b/x"}},
		"through a link":     {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/"}, {Typeflag: tar.TypeReg, Name: "l/x"}},
		"folder over a link": {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/"}, {Typeflag: tar.TypeDir, Name: "l/"}},
		"hard link out":      {folder, {Typeflag: tar.TypeLink, Name: "a/x", Linkname: "../x"}},
		"hard link through":  {folder, {Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/"}, {Typeflag: tar.TypeLink, Name: "a/x", Linkname: "l/etc/passwd"}},
		"root as a file":     {{Typeflag: tar.TypeReg, Name: "."}},
		"contiguous":         {{Typeflag: tar.TypeCont, Name: "x"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range all {
			c := *h
			c.Uid, c.Gid = os.Getuid(), os.Getgid()
			must(t, w.WriteHeader(&c))
		}
		must(t, w.Close())
		if _, err := Unpack(t.Context(), &b, t.TempDir()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Unpack(t.Context(), strings.NewReader("short"), t.TempDir()); err == nil {
		t.Error("half a header: no error")
	}
}

// TestPackParts: a tree of two parts comes as one, without what is left out and with what
// none of them has.
func TestPackParts(t *testing.T) {
	t.Parallel()
	root, boot, to := sample(t), t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "boot"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "boot/below the mount"), nil, 0o644))
	must(t, os.MkdirAll(filepath.Join(root, "lost+found"), 0o700))
	must(t, os.MkdirAll(filepath.Join(boot, "grub"), 0o750))
	must(t, os.MkdirAll(filepath.Join(boot, "lost+found"), 0o700))
	must(t, os.WriteFile(filepath.Join(boot, "grub/grub.cfg"), []byte("old"), 0o600))
	must(t, os.WriteFile(filepath.Join(boot, "vmlinuz-6"), []byte("kernel"), 0o600))
	must(t, unix.Setxattr(filepath.Join(boot, "vmlinuz-6"), "security.selinux", []byte("system_u:object_r:boot_t:s0\x00"), 0))
	must(t, os.Link(filepath.Join(boot, "vmlinuz-6"), filepath.Join(boot, "vmlinuz.old")))
	skip := []string{"lost+found", "boot/lost+found", "boot/grub/grub.cfg", "usr/bin/ping"}
	var b bytes.Buffer
	must(t, PackParts(&b, []Part{{Dir: root, Skip: append([]string{"boot"}, skip...)}, {Dir: boot, At: "boot", Skip: skip}},
		[]File{{Name: "boot/grub/grub.cfg", Text: "new"}, {Name: "vmlinuz", Link: "boot/vmlinuz-6"}}))
	_, err := Unpack(t.Context(), &b, to)
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(root, "boot")))
	must(t, os.RemoveAll(filepath.Join(root, "lost+found")))
	must(t, os.Remove(filepath.Join(root, "usr/bin/ping")))
	must(t, exec.CommandContext(t.Context(), "cp", "-a", boot, filepath.Join(root, "boot")).Run())
	must(t, os.RemoveAll(filepath.Join(root, "boot/lost+found")))
	must(t, os.WriteFile(filepath.Join(root, "boot/grub/grub.cfg"), []byte("new"), 0o600))
	must(t, os.Chmod(filepath.Join(root, "boot/grub/grub.cfg"), 0o644))
	must(t, os.Symlink("boot/vmlinuz-6", filepath.Join(root, "vmlinuz")))
	// What this test changed has other times.
	times := lazyregexp.New(`time [0-9.]+`)
	if got, want := times.ReplaceAllString(list(t, to), ""), times.ReplaceAllString(list(t, root), ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(list(t, to), "system_u:object_r:boot_t") {
		t.Error("the label of SELinux did not come")
	}
	if err := PackParts(io.Discard, []Part{{Dir: filepath.Join(root, "absent")}}, nil); err == nil {
		t.Error("a part that is not there: no error")
	}
}
