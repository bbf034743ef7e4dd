// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/roottree"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// toolLimit is how long one program may take: mkfs of a large disk takes seconds.
const toolLimit = 10 * time.Minute

// OnNode makes a layout on this very node, with the programs of the image.
type OnNode struct {
	Tools string // folder of the programs, see images/ramdisk.Tools; "": those of this system
	At    string // folder to mount at; made when absent

	inactive bool // logical volumes are made and not activated: of tests, whose kernel has no device mapper
}

var _ Node = OnNode{}

// run runs a program of the image. Its output is in the error when it fails.
func (n OnNode) run(ctx context.Context, argv ...string) error {
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	if n.Tools != "" {
		argv = append([]string{filepath.Join(n.Tools, "lib/ld.so"), "--library-path", filepath.Join(n.Tools, "lib"), filepath.Join(n.Tools, "bin", argv[0])}, argv[1:]...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/", "MDADM_NO_UDEV=1", "LVM_SYSTEM_DIR=", "LVM_SUPPRESS_FD_WARNINGS=1", "DM_DISABLE_UDEV=1", "MKE2FS_CONFIG=" + n.config("mke2fs.conf")}
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		text := out.Bytes()
		return errkind.New(errkind.Internal, "%s: %w: %q", strings.Join(argv, " "), err, strings.TrimSpace(string(text[max(0, len(text)-1000):])))
	}
	return nil
}

// config is the path of a file that the programs read.
func (n OnNode) config(name string) string {
	if n.Tools == "" {
		return filepath.Join("/etc", name)
	}
	return filepath.Join(n.Tools, "etc", name)
}

// Release implements Node.
func (n OnNode) Release(ctx context.Context, disks []string) error {
	if err := n.takeOff(""); err != nil {
		return err
	}
	names, err := kernelNames(disks)
	if err != nil {
		return err
	}
	if err := n.deactivate(ctx, names); err != nil {
		return err
	}
	arrays, err := filepath.Glob("/sys/block/md*")
	if err != nil {
		return err
	}
	for _, a := range arrays {
		if !liesOn(a, names) {
			continue
		}
		if err := n.run(ctx, "mdadm", "--stop", "/dev/"+filepath.Base(a)); err != nil {
			return err
		}
	}
	return nil
}

// kernelNames are the names of disks in /sys.
func kernelNames(disks []string) (names []string, err error) {
	for _, d := range disks {
		real, err := filepath.EvalSymlinks(d)
		if err != nil {
			return nil, err
		}
		names = append(names, filepath.Base(real))
	}
	return names, nil
}

// liesOn reports whether a block device, by its folder in /sys, is one of these disks, a
// partition of one, or made of such: an array, a logical volume, also of an array.
func liesOn(device string, disks []string) bool {
	real, err := filepath.EvalSymlinks(device)
	if err != nil {
		return false
	}
	whole := real
	if _, err := os.Stat(filepath.Join(real, "partition")); err == nil {
		whole = filepath.Dir(real)
	}
	if slices.Contains(disks, filepath.Base(whole)) {
		return true
	}
	slaves, _ := filepath.Glob(filepath.Join(real, "slaves", "*"))
	return slices.ContainsFunc(slaves, func(s string) bool { return liesOn(s, disks) })
}

// Partition implements Node by the kernel's name: sda3, but nvme0n1p3.
func (n OnNode) Partition(ctx context.Context, disk string, p wire.LayoutPartition) (string, error) {
	if end := disk[len(disk)-1]; end >= '0' && end <= '9' {
		disk += "p"
	}
	path := disk + strconv.Itoa(p.Number)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		select {
		case <-ctx.Done():
			return "", errkind.New(errkind.Timeout, "no device %s after 30 s", path).Do("The kernel did not take the partition table; apply again.")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Array implements Node. The array's device has a number of its own for each name.
func (n OnNode) Array(ctx context.Context, v wire.Volume, devices []string) (string, error) {
	id := colons(v.Array)
	for number := 100; number < 200; number++ {
		device := "/dev/md" + strconv.Itoa(number)
		if _, err := os.Stat("/sys/block/" + filepath.Base(device)); err == nil {
			continue
		}
		if v.Kept {
			return device, n.run(ctx, append([]string{"mdadm", "--assemble", device, "--run", "--homehost=any", "--uuid=" + id}, devices...)...)
		}
		return device, n.run(ctx, append([]string{"mdadm", "--create", device, "--run", "--level=" + strconv.Itoa(v.RAID), "--raid-devices=" + strconv.Itoa(len(devices)),
			"--metadata=1.2", "--bitmap=internal", "--homehost=any", "--name=" + v.Name, "--uuid=" + id}, devices...)...)
	}
	return "", errkind.New(errkind.Internal, "a hundred arrays are there already")
}

// colons is a UUID as mdadm writes it.
func colons(guid string) string {
	h := strings.ReplaceAll(guid, "-", "")
	return h[:8] + ":" + h[8:16] + ":" + h[16:24] + ":" + h[24:]
}

// Format implements Node. GRUB has to read a root: of XFS it does not know what Linux
// 5.10 did not make by itself (the profile of that kernel is no help, since that of
// xfsprogs 6.1 has an option in the wrong section); ext4 is made by the configuration
// that comes with the programs.
func (n OnNode) Format(ctx context.Context, v wire.Volume, device string) error {
	if v.Encryption != "" {
		return blank(device)
	}
	switch v.Filesystem {
	case "ext4":
		return n.run(ctx, "mke2fs", "-t", "ext4", "-F", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", "-L", v.Label, "-U", v.UUID, device)
	case "xfs":
		return n.formatXFS(ctx, v, device)
	case "swap":
		return n.run(ctx, "mkswap", "-L", v.Label, "-U", v.UUID, device)
	}
	return errkind.New(errkind.Internal, "no file system %q is made", v.Filesystem)
}

// blank zeroes both ends of a device.
func blank(device string) (err error) {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Sync(), f.Close()) }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for _, s := range endsOf(size) {
		if _, err := f.WriteAt(make([]byte, s.to-s.from), s.from); err != nil {
			return err
		}
	}
	return nil
}

// rootXFS are the features that a root on XFS is made without, since not every GRUB reads
// them: all that there are, those of mkfs.xfs before 5.19 (nrext64), and before 5.10.
var rootXFS = [][]string{{"-i", "nrext64=0", "-m", "bigtime=0,inobtcount=0,rmapbt=0"}, {"-m", "bigtime=0,inobtcount=0,rmapbt=0"}, {"-m", "rmapbt=0"}}

// formatXFS makes an XFS. One that does not know an option says so before it writes.
func (n OnNode) formatXFS(ctx context.Context, v wire.Volume, device string) (err error) {
	options := [][]string{nil}
	if v.Use == wire.VolumeRoot {
		options = rootXFS
	}
	for _, more := range options {
		err = n.run(ctx, slices.Concat([]string{"mkfs.xfs", "-f", "-q", "-K", "-L", v.Label, "-m", "uuid=" + v.UUID}, more, []string{device})...)
		if err == nil || !strings.Contains(err.Error(), "unknown option") {
			return err
		}
	}
	return err
}

// Unpack implements Node. What is read back comes from the disks: the file systems are
// taken off and mounted again in between.
func (n OnNode) Unpack(ctx context.Context, on []Mount, tree io.Reader, read func(int64)) error {
	var files roottree.Files
	if err := n.with(on, func() (err error) {
		files, err = roottree.Unpack(ctx, tree, n.At)
		return err
	}); err != nil {
		return err
	}
	return n.with(on, func() error {
		if err := files.Verify(ctx, n.At, read); err != nil {
			return &wire.PartError{Part: wire.PartDisk, Err: errkind.New(errkind.Corrupt, "%w", err).Do("A disk does not keep data; look at the health of the disks.")}
		}
		return nil
	})
}

// Mounted implements Node.
func (n OnNode) Mounted(_ context.Context, root Mount, do func(rootfs.Root) error) error {
	return n.with([]Mount{root}, func() error {
		r, err := rootfs.Open(n.At)
		if err != nil {
			return err
		}
		defer r.Close()
		return do(r)
	})
}

// with mounts file systems, calls do, and takes them off again.
func (n OnNode) with(on []Mount, do func() error) (err error) {
	for _, m := range on {
		at := filepath.Join(n.At, m.At)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.Device, at, m.Filesystem, unix.MS_NOATIME, ""); err != nil {
			return errkind.New(errkind.Corrupt, "mount %s as %s: %w", m.Device, m.Filesystem, err)
		}
		defer func() { err = errors.Join(err, n.takeOff(m.At)) }()
	}
	return do()
}

// takeOff syncs and unmounts what is mounted at a place of the tree; of the root all that
// an agent that was killed has left.
func (n OnNode) takeOff(at string) error {
	where := []string{filepath.Join(n.At, at)}
	if at == "" {
		where = n.left()
	}
	for _, dir := range where {
		var err error
		for range 50 {
			syncMount(dir)
			if err = unix.Unmount(dir, 0); !errors.Is(err, unix.EBUSY) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	return nil
}

// syncMount writes out the file system that is mounted at a folder, and waits for no other
// disk. Unmounting does as well, but a mount that is busy stays.
func syncMount(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return // nothing is mounted there
	}
	defer f.Close()
	unix.Syncfs(int(f.Fd())) //nolint:errcheck // what cannot be written is found when files are read back
}

// left are the mounts at and below the folder, the innermost first.
func (n OnNode) left() (dirs []string) {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && (f[1] == n.At || strings.HasPrefix(f[1], n.At+"/")) {
			dirs = append(dirs, f[1])
		}
	}
	slices.Reverse(dirs)
	return dirs
}
