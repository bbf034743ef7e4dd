// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/lvm"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/roottree"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

const mib = 1 << 20

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loops is OnNode on ordinary files: a partition is a loop device of its own, since the
// kernels of many build hosts read no partition table.
type loops struct {
	OnNode
	t     *testing.T
	calls int
	fail  int // the call that fails; 0: none
	held  int // disks that are open exclusively: on a real node nobody else gets at their partitions

	parts  map[string]wire.LayoutPartition // by loop device
	disks  map[string]string               // the same
	groups map[string]string               // volume groups of other disks
}

// holder counts the disks that are held.
type holder struct {
	disk.Device
	held *int
}

func (h holder) Close() error {
	*h.held--
	return h.Device.Close()
}

func (l *loops) open(path string, use disk.Use) (disk.Device, error) {
	d, err := disk.Open(path, use)
	if err != nil || use != disk.Exclusive {
		return d, err
	}
	l.held++
	return holder{d, &l.held}, nil
}

var errCut = errors.New("the run is cut off here")

func (l *loops) cut() error {
	if l.calls++; l.calls == l.fail {
		return errCut
	}
	return nil
}

func (l *loops) Release(_ context.Context, disks []string) error {
	if err := l.takeOff(""); err != nil {
		return err
	}
	for _, d := range disks {
		out, _ := exec.Command("losetup", "-n", "-O", "NAME", "-j", d).Output()
		for name := range strings.FieldsSeq(string(out)) {
			if err := exec.Command("losetup", "-d", name).Run(); err != nil {
				return err
			}
		}
	}
	return l.cut()
}

func (l *loops) Partition(ctx context.Context, disk string, p wire.LayoutPartition) (string, error) {
	if err := l.cut(); err != nil {
		return "", err
	}
	if l.held > 0 {
		l.t.Errorf("partition %d of %s is used while %d disks are held", p.Number, disk, l.held)
	}
	out, err := exec.CommandContext(ctx, "losetup", "-f", "--show", "-o", strconv.FormatInt(p.Start, 10), "--sizelimit", strconv.FormatInt(p.Size, 10), disk).Output()
	device := strings.TrimSpace(string(out))
	l.parts[device], l.disks[device] = p, disk
	return device, err
}

func (l *loops) Groups(context.Context, []string) (map[string]string, error) {
	return l.groups, l.cut()
}

func (l *loops) Group(ctx context.Context, v wire.Volume, device string, remove []string) error {
	if err := l.cut(); err != nil {
		return err
	}
	if err := l.OnNode.Group(ctx, v, device, remove); err != nil {
		return err
	}
	return l.cut()
}

// Logical has LVM make the logical volume. What the kernel would show of it is a loop
// device, where the metadata say that it lies.
func (l *loops) Logical(ctx context.Context, v wire.Volume, on string) (string, error) {
	if err := l.cut(); err != nil {
		return "", err
	}
	if _, err := l.OnNode.Logical(ctx, v, on); err != nil {
		return "", err
	}
	f, err := os.Open(on)
	if err != nil {
		return "", err
	}
	defer f.Close()
	g, _, err := lvm.Read(f, l.parts[on].Size)
	if err != nil {
		return "", err
	}
	for _, x := range g.Volumes {
		if x.Name == v.Name {
			return l.Partition(ctx, l.disks[on], wire.LayoutPartition{Start: l.parts[on].Start + x.At, Size: x.Extents * g.ExtentSize})
		}
	}
	return "", errors.New("lvm made nothing")
}

func (l *loops) Format(ctx context.Context, v wire.Volume, device string) error {
	return errors.Join(l.cut(), l.OnNode.Format(ctx, v, device))
}

func (l *loops) Unpack(ctx context.Context, on []Mount, tree io.Reader, read func(int64)) error {
	if err := l.cut(); err != nil {
		return err
	}
	if err := l.OnNode.Unpack(ctx, on, tree, read); err != nil {
		return err
	}
	return l.cut()
}

// picture is an image.
type picture struct{ tree []byte }

func (p picture) Boot(context.Context) (Boot, error) {
	return Boot{Code: []byte{0xeb, 0x63, 0x90}, BIOS: bytes.Repeat([]byte("B"), 512), ESP: bytes.Repeat([]byte("E"), 4096)}, nil
}

func (p picture) Tree(context.Context) io.ReadCloser {
	return io.NopCloser(bytes.NewReader(p.tree))
}

// image has a file of a name, so that images can be distinguished.
func image(t *testing.T, name string) picture {
	t.Helper()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "srv"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte(name), 3000), 0o640))
	must(t, os.WriteFile(filepath.Join(dir, "srv/of-image"), []byte("x"), 0o600))
	var b bytes.Buffer
	must(t, roottree.Pack(&b, dir))
	return picture{b.Bytes()}
}

// room makes two disks and a layout on them: swap and an XFS root on the one, two data
// file systems on the other.
func room(t *testing.T) (*loops, Maker, wire.Layout) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes loop devices and mounts them")
	}
	for _, p := range []string{"losetup", "mke2fs", "mkfs.xfs", "mkswap", "sgdisk"} {
		peertest.Need(t, p)
	}
	dir := t.TempDir()
	node := &loops{OnNode: OnNode{At: filepath.Join(dir, "mnt"), inactive: true}, t: t, parts: map[string]wire.LayoutPartition{}, disks: map[string]string{}}
	l := wire.Layout{}
	for i, size := range []int64{700 * mib, 500 * mib} {
		path := filepath.Join(dir, "disk"+strconv.Itoa(i))
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Truncate(path, size))
		l.Disks = append(l.Disks, wire.LayoutDisk{Disk: wire.Disk{Name: "d" + strconv.Itoa(i), Path: path, Serial: "S" + strconv.Itoa(i), Size: size}, GUID: guid(i, 0), System: i == 0})
	}
	l.Disks[0].Partitions = []wire.LayoutPartition{part(0, 1, gpt.BIOSBoot, "bios", 1, 1), part(0, 2, gpt.EFISystem, "esp", 2, 64), part(0, 3, gpt.LinuxSwap, "swap", 66, 32), part(0, 4, gpt.LinuxFilesystem, "root", 98, 600)}
	l.Disks[1].Partitions = []wire.LayoutPartition{part(1, 1, gpt.LinuxFilesystem, "data-scratch", 2, 310), part(1, 2, gpt.LinuxFilesystem, "data-srv", 312, 100)}
	vol := func(use wire.VolumeUse, name, fs, mount string, disk, number int) wire.Volume {
		return wire.Volume{Use: use, Name: name, Label: name, Filesystem: fs, Mount: mount, RAID: -1, UUID: guid(8, 10*disk+number), Members: []wire.Member{{Disk: disk, Partition: number}}}
	}
	l.Volumes = []wire.Volume{vol(wire.VolumeSwap, "swap", "swap", "", 0, 3), vol(wire.VolumeRoot, "root", "xfs", "/", 0, 4), vol(wire.VolumeData, "scratch", "xfs", "/scratch", 1, 1), vol(wire.VolumeData, "srv", "ext4", "/srv", 1, 2)}
	l.Volumes[2].Keep, l.Preserve = true, []string{"scratch"}
	m := Maker{Node: node, Open: node.open, Find: func(d wire.Disk) (wire.Disk, error) {
		f, err := disk.Open(d.Path, disk.Look)
		if err != nil {
			return d, err
		}
		defer f.Close()
		old, _ := disk.ReadMarker(f)
		d.Marker, d.Content = old.Text, disk.Probe(f, f.Size())
		return d, nil
	}}
	t.Cleanup(func() {
		if err := node.Release(context.Background(), []string{l.Disks[0].Disk.Path, l.Disks[1].Disk.Path}); err != nil && !errors.Is(err, errCut) {
			t.Error(err)
		}
	})
	return node, m, l
}

func guid(a, b int) string { return fmt.Sprintf("%08x-1111-4222-8333-%012x", a+1, b+1) }

func part(disk, number int, kind, name string, start, size int64) wire.LayoutPartition {
	return wire.LayoutPartition{Number: number, Type: kind, GUID: guid(disk, number), Name: name, Start: start * mib, Size: size * mib}
}

// look mounts a volume and calls do.
func look(t *testing.T, n *loops, l wire.Layout, volume int, do func(rootfs.Root)) {
	t.Helper()
	v := l.Volumes[volume]
	must(t, n.Release(t.Context(), []string{l.Disks[0].Disk.Path, l.Disks[1].Disk.Path}))
	groups := map[string]string{}
	if i := groupOf(l.Volumes, v.Group); i >= 0 {
		path, err := device(t.Context(), n, l, l.Volumes[i], groups)
		must(t, err)
		groups[v.Group] = path
	}
	v.Kept = true
	path, err := device(t.Context(), n, l, v, groups)
	must(t, err)
	must(t, n.Mounted(t.Context(), Mount{path, v.Filesystem, "/"}, func(r rootfs.Root) error { do(r); return nil }))
}

// has is whether a volume has a file.
func has(t *testing.T, n *loops, l wire.Layout, volume int, name string) (ok bool) {
	t.Helper()
	look(t, n, l, volume, func(r rootfs.Root) { ok = rootfs.Exists(r, name) })
	return ok
}

// TestPeerLayout makes the layout, finds it made, and makes it again with another image,
// with and without what is preserved.
func TestPeerLayout(t *testing.T) {
	node, m, l := room(t)
	first, already, err := m.Run(t.Context(), l, "n1/a/write", "sha256:1", image(t, "one"))
	if err != nil || already || first.Volumes[2].Kept {
		t.Fatalf("%v, already %v, %+v", err, already, first.Volumes)
	}
	for _, d := range l.Disks {
		out, err := exec.CommandContext(t.Context(), "sgdisk", "-v", d.Disk.Path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "No problems found") {
			t.Errorf("sgdisk: %v\n%s", err, out)
		}
		f, err := os.Open(d.Disk.Path)
		must(t, err)
		defer f.Close()
		if got, ok := disk.ReadMarker(f); !ok || got.State != disk.Complete || got.Text != "n1/a/write" {
			t.Errorf("marker %+v", got)
		}
	}
	if text := probe(t, l, 0); text != "GPT; p1 BIOS boot; p2 no known file system; p3 swap label swap; p4 xfs label root" {
		t.Errorf("the first disk has %q", text)
	}
	if !has(t, node, l, 1, "one") || has(t, node, l, 1, "srv/of-image") || !has(t, node, l, 3, "of-image") {
		t.Error("the files are not where they belong")
	}
	look(t, node, l, 2, func(r rootfs.Root) { must(t, rootfs.WriteText(r, "precious", "data", 0o600)) })

	if _, already, err = m.Run(t.Context(), l, "n1/a/write", "sha256:1", image(t, "two")); err != nil || !already || has(t, node, l, 1, "two") {
		t.Errorf("the same write again: %v, already %v", err, already)
	}
	if _, _, err = m.Run(t.Context(), l, "n1/b/write", "sha256:2", image(t, "two")); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "is not blank") || errkind.HasBegun(err) {
		t.Errorf("another write without leave: %v", err)
	}
	allow(l)
	l.Volumes[2].UUID = guid(9, 9)
	second, already, err := m.Run(t.Context(), l, "n1/b/write", "sha256:2", image(t, "two"))
	if err != nil || already || !second.Volumes[2].Kept || second.Volumes[2].UUID != first.Volumes[2].UUID {
		t.Fatalf("another write: %v, %+v", err, second.Volumes)
	}
	if !has(t, node, l, 1, "two") || has(t, node, l, 1, "one") || !has(t, node, l, 2, "precious") {
		t.Error("the second image and the preserved file are not there")
	}
	third, already, err := m.Run(t.Context(), l, "n1/b/write", "sha256:2", image(t, "two"))
	if err != nil || !already || third.Volumes[2].UUID != first.Volumes[2].UUID {
		t.Errorf("the second write again: %v, already %v, %+v", err, already, third.Volumes)
	}
	l.Volumes[2].Keep, l.Preserve = false, nil
	if _, _, err = m.Run(t.Context(), l, "n1/c/write", "sha256:2", image(t, "two")); err != nil || has(t, node, l, 2, "precious") {
		t.Errorf("nothing preserved: %v", err)
	}
}

func allow(l wire.Layout) {
	for i := range l.Disks {
		l.Disks[i].AllowData = true
	}
}

func probe(t *testing.T, l wire.Layout, i int) string {
	t.Helper()
	f, err := disk.Open(l.Disks[i].Disk.Path, disk.Look)
	must(t, err)
	defer f.Close()
	return disk.Probe(f, f.Size())
}

// TestPeerCutOff cuts a reinstall off at each call; the next run ends it, and what is
// preserved is there.
func TestPeerCutOff(t *testing.T) {
	node, m, l := room(t)
	_, _, err := m.Run(t.Context(), l, "n1/0/write", "sha256:0", image(t, "zero"))
	must(t, err)
	look(t, node, l, 2, func(r rootfs.Root) { must(t, rootfs.WriteText(r, "precious", "data", 0o600)) })
	allow(l)
	for at := 1; ; at++ {
		key := fmt.Sprintf("n1/%d/write", at)
		node.calls, node.fail = 0, at
		_, _, err := m.Run(t.Context(), l, key, "sha256:1", image(t, "one"))
		if err == nil {
			if at < 8 {
				t.Errorf("only %d calls", at)
			}
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		node.calls, node.fail = 0, 0
		is, already, err := m.Run(t.Context(), l, key, "sha256:1", image(t, "one"))
		if err != nil || already || !is.Volumes[2].Kept || !has(t, node, l, 1, "one") || !has(t, node, l, 2, "precious") {
			t.Errorf("cut off at call %d: %v, already %v", at, err, already)
		}
	}
}

// TestPeerKeepRefuses: what is preserved and cannot stay is a refusal, and no byte is
// changed.
func TestPeerKeepRefuses(t *testing.T) {
	_, m, l := room(t)
	_, _, err := m.Run(t.Context(), l, "n1/0/write", "sha256:0", image(t, "zero"))
	must(t, err)
	allow(l)
	for want, change := range map[string]func(*wire.Layout){
		"the layout puts it at 3 MiB with 309 MiB": func(l *wire.Layout) {
			l.Disks[1].Partitions[0].Start += mib
			l.Disks[1].Partitions[0].Size -= mib
		},
		"the layout needs that place for data-other": func(l *wire.Layout) {
			l.Disks[1].Partitions[0].Name, l.Volumes[2].Label, l.Volumes[2].Name = "data-other", "other", "other"
		},
		"the layout puts it onto other disks": func(l *wire.Layout) {
			l.Volumes[2].Members[0], l.Volumes[3].Members[0] = wire.Member{Disk: 0, Partition: 4}, wire.Member{Disk: 1, Partition: 1}
			l.Volumes[1].Members[0] = wire.Member{Disk: 1, Partition: 2}
		},
		"of another RAID": func(l *wire.Layout) { l.Volumes[2].RAID, l.Volumes[2].Array = 1, guid(7, 7) },
	} {
		x := clone(l)
		for i := range x.Volumes {
			x.Volumes[i].Members = append([]wire.Member{}, x.Volumes[i].Members...)
		}
		change(&x)
		before := sums(t, l)
		_, _, err := m.Run(t.Context(), x, "n1/1/write", "sha256:1", image(t, "one"))
		if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), want) || errkind.HasBegun(err) {
			t.Errorf("want %q: %v", want, err)
		}
		if sums(t, l) != before {
			t.Errorf("%s: a disk was changed", want)
		}
	}
	f, err := os.OpenFile(l.Disks[1].Disk.Path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt(make([]byte, 4096), 2*mib)
	must(t, err)
	if _, _, err := m.Run(t.Context(), l, "n1/1/write", "sha256:1", image(t, "one")); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), `was made for "scratch"`) {
		t.Errorf("a superblock that is gone: %v", err)
	}
}

// sums is what the disks hold.
func sums(t *testing.T, l wire.Layout) (out [2]uint32) {
	t.Helper()
	table := crc32.MakeTable(crc32.Castagnoli) // processors have it, and these are gigabytes
	b := make([]byte, 4*mib)
	for i := range out {
		f, err := os.Open(l.Disks[i].Disk.Path)
		must(t, err)
		defer f.Close()
		for {
			n, err := f.Read(b)
			out[i] = crc32.Update(out[i], table, b[:n])
			if err == io.EOF {
				break
			}
			must(t, err)
		}
	}
	return out
}

// TestPeerOldXFS: a root on XFS is made by mkfs.xfs of images that know fewer features.
func TestPeerOldXFS(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "mkfs.xfs")
	for name, c := range map[string]struct{ unknown, fails string }{
		"6.1": {"nothing", ""}, "5.13": {"nrext64", ""}, "5.3": {"nrext64\\|bigtime", ""}, "none of ours": {"-K", "unknown option"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			device := filepath.Join(dir, "device")
			for file, text := range map[string]string{
				"lib/ld.so":    "#!/bin/sh\nshift 2\nexec \"$@\"\n",
				"bin/mkfs.xfs": "#!/bin/sh\nif echo \"$*\" | grep -q -e '" + c.unknown + "'; then echo \"unknown option $*\" >&2; exit 1; fi\nexec mkfs.xfs \"$@\"\n",
				"device":       "",
			} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Truncate(device, 310<<20); err != nil {
				t.Fatal(err)
			}
			v := wire.Volume{Use: wire.VolumeRoot, Filesystem: "xfs", Label: "ironrail-os", UUID: "11111111-2222-4333-8444-555555555555"}
			err := OnNode{Tools: dir}.Format(t.Context(), v, device)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Fatalf("%v", err)
			}
			f, openErr := os.Open(device)
			if openErr != nil {
				t.Fatal(openErr)
			}
			defer f.Close()
			if is := fileSystem(f, 0); err == nil && (is.uuid != v.UUID || is.label != v.Label) {
				t.Errorf("made is %+v", is)
			}
		})
	}
}
