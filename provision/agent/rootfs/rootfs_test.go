// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestLinksDoNotLeadOut(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	outside := filepath.Join(base, "outside")
	if err := os.MkdirAll(filepath.Join(base, "root"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := Open(filepath.Join(base, "root"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, to := range []string{outside, "../outside"} {
		if err := Link(root, to, "etc"); err != nil {
			t.Fatal(err)
		}
		if err := WriteText(root, "etc/file", "x", 0o644); err == nil {
			t.Errorf("a folder that is a link to %s was followed", to)
		}
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) != 0 {
		t.Errorf("outside has %v, %v", names, err)
	}
	if err := Remove(root, "etc"); err != nil {
		t.Fatal(err)
	}
	if err := WriteText(root, "etc/file", "x", 0o640); err != nil {
		t.Fatal(err)
	}
	if info, err := fs.Stat(root.FS(), "etc/file"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got %v, %v", info, err)
	}
	if names, err := os.ReadDir(filepath.Join(base, "root/etc")); err != nil || len(names) != 1 {
		t.Errorf("left-overs: %v, %v", names, err)
	}
	if Exists(root, "absent") || !Exists(root, "etc/file") || Remove(root, "absent") != nil {
		t.Error("Exists or Remove")
	}
}
