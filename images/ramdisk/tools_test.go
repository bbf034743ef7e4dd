// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
)

// TestPeerToolsRun packs programs of this very system, unpacks them by cpio into a
// folder, and runs them there by their own linker with their own libraries alone.
func TestPeerToolsRun(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"cpio", "mke2fs", "mkfs.xfs", "mdadm", "mkswap", "pvcreate", "dmsetup"} {
		peertest.Need(t, p)
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var packed bytes.Buffer
	if err := PackTools(t.Context(), &packed, root.FS(), []string{"mke2fs", "mkfs.xfs", "mdadm", "mkswap", "lvm", "dmsetup"}, map[string]string{"x.conf": "text"}); err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(bytes.NewReader(packed.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "cpio", "-i", "-d", "--quiet")
	plain, _ := io.ReadAll(dec) // the segment is padded after its end
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(plain)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v\n%s", err, out)
	}
	tools := filepath.Join(dir, wire.ToolsFolder)
	for program, want := range map[string]string{"mke2fs": "mke2fs", "mkfs.xfs": "mkfs.xfs version", "mdadm": "mdadm", "mkswap": "mkswap", "lvm": "LVM version", "dmsetup": "Library version"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(tools, "lib/ld.so"), "--library-path", filepath.Join(tools, "lib"), "--list", filepath.Join(tools, "bin", program)).CombinedOutput()
		if err != nil || strings.Contains(string(out), "=> /lib") || strings.Contains(string(out), "not found") {
			t.Errorf("%s takes libraries from elsewhere: %v\n%s", program, err, out)
		}
		out, _ = exec.CommandContext(t.Context(), filepath.Join(tools, "lib/ld.so"), "--library-path", filepath.Join(tools, "lib"), filepath.Join(tools, "bin", program), cmp.Or(map[string]string{"lvm": "version", "dmsetup": "version"}[program], "-V")).CombinedOutput()
		if !strings.Contains(string(out), want) {
			t.Errorf("%s does not run:\n%s", program, out)
		}
	}
	if b, err := os.ReadFile(filepath.Join(tools, "etc/x.conf")); string(b) != "text" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestPackToolsRefuses(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{"usr/bin/script": {Data: []byte("#!/bin/sh\n")}, "usr/bin/loop": {Mode: os.ModeSymlink, Data: []byte("loop")}}
	for name, want := range map[string]errkind.Kind{"absent": errkind.NotFound, "script": errkind.Invalid, "loop": errkind.Invalid} {
		if err := PackTools(t.Context(), &bytes.Buffer{}, root, []string{name}, nil); errkind.Of(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
