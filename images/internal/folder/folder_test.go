// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
)

func TestRemoveStopsAtMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount")
	}
	dir := filepath.Join(t.TempDir(), "with blank")
	inner := filepath.Join(dir, "root", "dev")
	precious := filepath.Join(t.TempDir(), "precious")
	for _, d := range []string{inner, precious} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(precious, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(precious, inner, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("needs to mount: %v", err)
	}
	err := Remove(dir)
	if e := unix.Unmount(inner, 0); e != nil {
		t.Fatal(e)
	}
	if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), inner) {
		t.Errorf("got %v, want it refused for %s", err, inner)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the mounted folder was emptied: %v", err)
	}
	if err := Remove(dir); err != nil {
		t.Errorf("after the unmount: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("still there")
	}
}

func TestMountPoint(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`36 35 98:0 /mnt1 /mnt/a\040b\134c rw - ext3 /dev/root rw`: `/mnt/a b\c`,
		`36 35 98:0 / / rw`: "/",
		`36 35 98:0 / /a\9`: `/a\9`,
		"":                  "",
	} {
		if got := mountPoint(line); got != want {
			t.Errorf("%q gave %q, want %q", line, got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to := filepath.Join(dir, "to")
	for _, text := range []string{"first", "second"} {
		from := filepath.Join(dir, text)
		if err := os.MkdirAll(from, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Replace(from, to); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(to, "f")); err != nil || string(b) != text {
			t.Errorf("got %q, %v", b, err)
		}
		if _, err := os.Stat(from); err == nil {
			t.Errorf("%s is still there", from)
		}
	}
	if err := Replace(filepath.Join(dir, "nothing"), to); err == nil {
		t.Error("nothing took the place of something")
	}
	if _, err := os.Stat(to); err != nil {
		t.Error(err)
	}
}

func TestPath(t *testing.T) {
	for name, want := range map[string]string{"a/b.img": "/site/a/b.img", "/srv/b.img": "/srv/b.img", "../b.img": "/b.img"} {
		if got := Path("/site", name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
