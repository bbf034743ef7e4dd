// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
)

// The sparse disk against a plain slice.
func TestBlocks(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	r := rand.New(rand.NewPCG(1, 2))
	model := make([]byte, size)
	b := blocks{store: newStore(), segments: map[int64]*segment{}}
	for i := range 400 {
		off := r.Int64N(size)
		if r.IntN(2) == 0 {
			off = off / blockSize * blockSize
		}
		n := min(r.Int64N(1<<r.IntN(21))+1, size-off)
		switch r.IntN(4) {
		case 0:
			b.zero(off, n)
			clear(model[off : off+n])
		case 1:
			p := bytes.Repeat([]byte{byte(r.IntN(3))}, int(n)) // zeroes too
			b.write(p, off)
			copy(model[off:], p)
		default:
			p := make([]byte, n)
			for j := range p {
				p[j] = byte(j*7 + i)
			}
			b.write(p, off)
			clear(p[1:]) // the disk must not hold on to it
			for j := range n {
				model[off+j] = byte(int(j)*7 + i)
			}
		}
		got := make([]byte, size-off)
		if b.read(got, off); !bytes.Equal(got, model[off:]) {
			t.Fatalf("after step %d, at %d for %d, the disk differs", i, off, n)
		}
	}
	b.zero(0, size)
	if len(b.segments) != 0 {
		t.Errorf("a blank disk holds %d segments", len(b.segments))
	}
}

// Two disks with one image hold it once; a change of one is not seen by the other.
func TestDisksShareBlocks(t *testing.T) {
	t.Parallel()
	shared := NewShared()
	nodes := fleet(2, Options{Shared: shared})
	image := metaltest.MakeImage(5<<20, 3)
	for _, n := range nodes {
		if err := n.Disks()[0].Fill(0, image); err != nil {
			t.Fatal(err)
		}
	}
	one, two := nodes[0].Disks()[0], nodes[1].Disks()[0]
	if one.content.segments[1][8] == nil || one.content.segments[1][8] != two.content.segments[1][8] {
		t.Error("the image is there twice")
	}
	if err := one.Fill(1<<20+8*blockSize, []byte("changed")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(image))
	if _, err := two.ReadAt(got, 0); err != nil || !bytes.Equal(got, image) {
		t.Errorf("the other disk changed too: %v", err)
	}
}

// A disk takes its time, which ends with the power.
func TestDiskTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := BuildNode(hgxNode(), Options{Scale: 1000})
		ctx, cut := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("no power"))
		defer cut()
		d, err := n.Kernel().Opener(ctx)("/dev/nvme0n1", disk.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		began, b := time.Now(), make([]byte, 3<<20)
		if _, err := d.WriteAt(b, 0); err != nil || time.Since(began) != 0 {
			t.Errorf("a small write waits %v: %v", time.Since(began), err)
		}
		if err := d.Sync(); err != nil || time.Since(began).Round(time.Millisecond) != 1049*time.Millisecond {
			t.Errorf("3 GiB at 3 GB/s took %v: %v", time.Since(began), err)
		}
		for range 10000 {
			if _, err = d.WriteAt(b, 0); err != nil {
				break
			}
		}
		if err == nil || err.Error() != "no power" || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, err := n.Kernel().Opener(ctx)("/dev/nvme9n1", disk.Look); err != nil {
			t.Error(err)
		}
		if _, err := n.Kernel().Opener(ctx)("/dev/sda", disk.Look); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

// The root in memory does what the root of a real folder does.
func TestRootLikeAFolder(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	real, err := rootfs.Open(base)
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	roots := []rootfs.Root{real, newRoot(newTree().sort())}
	for _, step := range []struct {
		name string
		do   func(r rootfs.Root) error
	}{
		{"write", func(r rootfs.Root) error { return rootfs.WriteText(r, "etc/ssh/key", "x", 0o600) }},
		{"write again", func(r rootfs.Root) error { return rootfs.WriteText(r, "etc/ssh/key", "y", 0o640) }},
		{"folder that is a file", func(r rootfs.Root) error { return rootfs.WriteText(r, "etc/ssh/key/z", "y", 0o640) }},
		{"file that is a folder", func(r rootfs.Root) error { return rootfs.WriteText(r, "etc/ssh", "y", 0o640) }},
		{"mode", func(r rootfs.Root) error { return r.Chmod("etc/ssh", 0o700) }},
		{"mode of nothing", func(r rootfs.Root) error { return r.Chmod("nothing", 0o700) }},
		{"link to a folder", func(r rootfs.Root) error { return rootfs.Link(r, "etc", "conf") }},
		{"write through a link", func(r rootfs.Root) error { return rootfs.WriteText(r, "conf/hosts", "h", 0o644) }},
		{"link over a file", func(r rootfs.Root) error { return rootfs.Link(r, "hosts", "etc/ssh/key") }},
		{"file over a link", func(r rootfs.Root) error { return rootfs.WriteText(r, "etc/ssh/key", "again", 0o644) }},
		{"absolute link", func(r rootfs.Root) error { return rootfs.Link(r, "/etc", "abs") }},
		{"write through an absolute link", func(r rootfs.Root) error { return rootfs.WriteText(r, "abs/file", "h", 0o644) }},
		{"link that leads out", func(r rootfs.Root) error { return rootfs.Link(r, "../..", "out") }},
		{"write through it", func(r rootfs.Root) error { return rootfs.WriteText(r, "out/file", "h", 0o644) }},
		{"circle", func(r rootfs.Root) error { return rootfs.Link(r, "circle", "circle") }},
		{"write into a circle", func(r rootfs.Root) error { return rootfs.WriteText(r, "circle/file", "h", 0o644) }},
		{"link where one is", func(r rootfs.Root) error { return r.Symlink("x", "conf") }},
		{"remove a full folder", func(r rootfs.Root) error { return r.Remove("etc/ssh") }},
		{"remove", func(r rootfs.Root) error { return r.Remove("etc/ssh/key") }},
		{"remove again", func(r rootfs.Root) error { return r.Remove("etc/ssh/key") }},
		{"remove an empty folder", func(r rootfs.Root) error { return r.Remove("etc/ssh") }},
		{"name that climbs", func(r rootfs.Root) error { return r.Put("../x", strings.NewReader(""), 0o644) }},
	} {
		want, got := step.do(roots[0]), step.do(roots[1])
		if (want == nil) != (got == nil) || errors.Is(want, fs.ErrNotExist) != errors.Is(got, fs.ErrNotExist) || errors.Is(want, fs.ErrExist) != errors.Is(got, fs.ErrExist) {
			t.Errorf("%s: a folder says %v, memory says %v", step.name, want, got)
		}
		if want, got := listing(t, roots[0]), listing(t, roots[1]); want != got {
			t.Errorf("after %s, a folder has\n%s, memory has\n%s", step.name, want, got)
		}
	}
	if names, _ := filepath.Glob(filepath.Join(base, "*")); len(names) == 0 {
		t.Error("nothing was written")
	}
}

// listing is every entry of a root with its mode and content.
func listing(t *testing.T, r rootfs.Root) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(r.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			c, err := fs.ReadFile(r.FS(), name)
			if err != nil {
				return err
			}
			content = string(c)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if content, err = fs.ReadLink(r.FS(), name); err != nil {
				return err
			}
		}
		fmt.Fprintf(&b, "%s %v %q\n", name, info.Mode(), content)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return b.String()
}
