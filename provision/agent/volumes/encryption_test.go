// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
)

// TestPeerEncrypted leaves a volume blank that will be encrypted, keeps one that the installed
// system has encrypted, by its label, and changes none of the two into the other.
func TestPeerEncrypted(t *testing.T) {
	node, m, l := room(t)
	peertest.Need(t, "cryptsetup", "wipefs")
	l.Volumes[2].Encryption = wire.EncryptionTPM2
	// The partition has had another use.
	sh(t, "mke2fs -q -F -t ext4 -E offset=$((2*1048576)) \"$1\" 300m", l.Disks[1].Disk.Path)
	allow(l)
	run := func(key string) (wire.Layout, error) {
		is, _, err := m.Run(t.Context(), l, key, "sha256:"+key, image(t, strings.ReplaceAll(key, "/", "-")))
		return is, err
	}
	partition := func() string {
		t.Helper()
		must(t, node.Release(t.Context(), []string{l.Disks[0].Disk.Path, l.Disks[1].Disk.Path}))
		path, err := node.Partition(t.Context(), l.Disks[1].Disk.Path, l.Disks[1].Partitions[0])
		must(t, err)
		return path
	}
	if _, err := run("n1/a/write"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, "wipefs --no-act --parsable \"$1\"", partition()); got != "" {
		t.Errorf("the volume is not blank: %s", got)
	}
	// Nothing was encrypted: there is nothing that is lost by a reinstall.
	if is, err := run("n1/b/write"); err != nil || is.Volumes[2].Kept {
		t.Errorf("a reinstall with the volume blank: %v", err)
	}
	const luks = "11111111-2222-4333-8444-555555555555"
	sh(t, "printf secret | cryptsetup -q luksFormat --type luks2 --uuid "+luks+" --label scratch --subsystem ironrail --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file - \"$1\"", partition())
	is, err := run("n1/c/write")
	if err != nil || !is.Volumes[2].Kept || is.Volumes[2].UUID != luks {
		t.Fatalf("a reinstall with the volume encrypted: %v, %+v", err, is.Volumes)
	}
	sh(t, "printf secret | cryptsetup open --test-passphrase --key-file - \"$1\"", partition())

	l.Volumes[2].Encryption = ""
	if _, err := run("n1/d/write"); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "it is a LUKS2 volume, and the layout does not encrypt it") || errkind.HasBegun(err) {
		t.Errorf("a layout that does not encrypt it: %v", err)
	}
	l.Volumes[2].Encryption = wire.EncryptionTPM2
	sh(t, "mkfs.xfs -q -f -L scratch \"$1\"", partition())
	if _, err := run("n1/e/write"); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "it is not encrypted, and the layout encrypts it") || errkind.HasBegun(err) {
		t.Errorf("a layout that encrypts what is not: %v", err)
	}
	sh(t, "dd if=/dev/urandom of=\"$1\" bs=4096 count=1 conv=notrunc,fsync status=none", partition())
	if _, err := run("n1/f/write"); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "no file system with that label") || errkind.HasBegun(err) {
		t.Errorf("a volume whose header is lost: %v", err)
	}
	sh(t, "blkdiscard -z -l 8M \"$1\" && dd if=/dev/urandom of=\"$1\" bs=4096 count=1 seek=4096 conv=notrunc,fsync status=none", partition())
	if _, err := run("n1/f/write"); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "no file system with that label") || errkind.HasBegun(err) {
		t.Errorf("a volume whose header was zeroed: %v", err)
	}
	l.Volumes[2].Use = wire.VolumeRoot
	if _, err := run("n1/g/write"); errkind.Of(err) != errkind.Internal {
		t.Errorf("an encrypted root: %v", err)
	}
}

// sh runs a shell script on a device and returns what it printed.
func sh(t *testing.T, script, device string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-euc", script, "bash", device).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}
