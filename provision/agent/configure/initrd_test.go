// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerArchive: cpio unpacks the archive that is put behind an initrd, once, however
// often it is put there.
func TestPeerArchive(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "cpio")
	root, dir, _, _ := tree(t)
	const file = "boot/initrd.img-6.1"
	if err := addToInitrds(root, mdadmFile, "ARRAY x\n"); err == nil {
		t.Error("a system without an initrd is taken")
	}
	first := []byte("an archive") // of ten bytes
	if err := os.WriteFile(filepath.Join(dir, file), first, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := addToInitrds(root, mdadmFile, "ARRAY x\n"); err != nil {
			t.Fatal(err)
		}
	}
	b, err := fs.ReadFile(root.FS(), file)
	if err != nil || !bytes.HasPrefix(b, append(first, 0, 0)) || len(b)%4 != 0 {
		t.Fatalf("%v, %q", err, b)
	}
	to := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "cpio", "-idm", "--quiet")
	cmd.Dir, cmd.Stdin = to, bytes.NewReader(b[12:])
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("cpio: %v\n%s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(to, mdadmFile)); err != nil || string(got) != "ARRAY x\n" {
		t.Errorf("%q, %v", got, err)
	}
	if n := bytes.Count(b, []byte("TRAILER!!!")); n != 1 {
		t.Errorf("%d archives are there", n)
	}
}
