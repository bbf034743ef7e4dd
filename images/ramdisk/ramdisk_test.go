// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/u-root/u-root/pkg/cpio"
	"github.com/ulikunitz/xz"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

const release = "6.1.0-test"

// system is an installed system with a few modules.
func system(t *testing.T) fstest.MapFS {
	t.Helper()
	m := fstest.MapFS{}
	add := func(name, text string) { m["lib/modules/"+release+"/"+name] = &fstest.MapFile{Data: []byte(text)} }
	add("modules.dep", strings.Join([]string{
		"kernel/drivers/net/ethernet/intel/e1000/e1000.ko:",
		"kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.zst kernel/fs/jbd2/jbd2.ko",
		"kernel/lib/crc16.ko.zst:",
		"kernel/fs/jbd2/jbd2.ko:",
		"kernel/crypto/crc32c_generic.ko:",
		"kernel/drivers/usb/core/usbcore.ko:",
		"kernel/drivers/net/usb/cdc_ether.ko: kernel/drivers/usb/core/usbcore.ko",
		"kernel/drivers/net/virtio_net.ko: kernel/net/core/failover-x.ko",
		"kernel/net/core/failover-x.ko:",
		"kernel/lib/odd-name.ko:",
	}, "\n")+"\n")
	add("modules.alias", "# comment\nalias pci:v00008086d0000100Esv*sd*bc*sc*i* e1000\nalias usb:v1d6b* cdc_ether\nalias crypto-odd odd_name\nalias fs-ext4 ext4\n")
	add("modules.softdep", "softdep ext4 pre: crypto-odd nowhere\nsoftdep cdc_ether pre: usbcore\n")
	add("modules.builtin", "kernel/fs/xfs/xfs.ko\n")
	add("kernel/drivers/net/ethernet/intel/e1000/e1000.ko", "e1000")
	add("kernel/fs/ext4/ext4.ko.xz", packed(t, "xz", "ext4"))
	add("kernel/lib/crc16.ko.zst", packed(t, "zst", "crc16"))
	for _, f := range []string{"fs/jbd2/jbd2", "crypto/crc32c_generic", "drivers/usb/core/usbcore", "drivers/net/usb/cdc_ether", "drivers/net/virtio_net", "net/core/failover-x", "lib/odd-name"} {
		add("kernel/"+f+".ko", f)
	}
	return m
}

func packed(t *testing.T, how, text string) string {
	t.Helper()
	var b bytes.Buffer
	if how == "xz" {
		w, err := xz.NewWriter(&b)
		must(t, err)
		_, err = w.Write([]byte(text))
		must(t, err)
		must(t, w.Close())
		return b.String()
	}
	w, err := zstd.NewWriter(&b)
	must(t, err)
	_, err = w.Write([]byte(text))
	must(t, err)
	must(t, w.Close())
	return b.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contents reads an archive, compressed or not.
func contents(t *testing.T, segment []byte) map[string]cpio.Record {
	t.Helper()
	if len(segment)%4 != 0 {
		t.Errorf("the segment's %d bytes are no multiple of 4", len(segment))
	}
	if !bytes.HasPrefix(segment, []byte("0707")) {
		dec, err := zstd.NewReader(nil)
		must(t, err)
		defer dec.Close()
		plain, err := dec.DecodeAll(bytes.TrimRight(segment, "\x00"), nil)
		if err != nil { // the frame itself ended in zeroes
			plain, err = dec.DecodeAll(segment, nil)
		}
		must(t, err)
		segment = plain
	}
	records, err := cpio.ReadAllRecords(cpio.Newc.Reader(bytes.NewReader(segment)))
	must(t, err)
	all := map[string]cpio.Record{}
	for _, r := range records {
		for d := filepath.Dir(r.Name); d != "."; d = filepath.Dir(d) {
			if _, ok := all[d]; !ok {
				t.Errorf("%s comes before its folder %s", r.Name, d)
			}
		}
		all[r.Name] = r
	}
	return all
}

func text(t *testing.T, r cpio.Record) string {
	t.Helper()
	if r.ReaderAt == nil {
		return ""
	}
	b := make([]byte, r.FileSize)
	_, err := r.ReadAt(b, 0)
	if err != nil && len(b) > 0 && err.Error() != "EOF" {
		t.Fatal(err)
	}
	return string(b)
}

func TestModules(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	size, err := PackModules(t.Context(), &b, system(t), release, false)
	must(t, err)
	all := contents(t, b.Bytes())
	dir := "lib/modules/" + release + "/"
	var got []string
	for name := range all {
		if strings.HasSuffix(name, ".ko") {
			got = append(got, strings.TrimPrefix(name, dir+"kernel/"))
		}
	}
	slices.Sort(got)
	want := []string{
		"crypto/crc32c_generic.ko", "drivers/net/ethernet/intel/e1000/e1000.ko", "drivers/net/virtio_net.ko",
		"fs/ext4/ext4.ko", "fs/jbd2/jbd2.ko", "lib/crc16.ko", "lib/odd-name.ko", "net/core/failover-x.ko",
	}
	if !slices.Equal(got, want) {
		t.Errorf("modules\n %v, want\n %v", got, want)
	}
	if size.Modules != len(want) || size.Packed != int64(b.Len()) {
		t.Errorf("size %+v", size)
	}
	if slices.Contains(size.Absent, "fs/ext4/ext4") || slices.Contains(size.Absent, "fs/xfs/xfs") || !slices.Contains(size.Absent, "drivers/nvme/host/nvme") {
		t.Errorf("absent: %v, want nvme among them, but not ext4, which is a module, and xfs, which is built in", size.Absent)
	}
	for file, want := range map[string]string{
		"kernel/fs/ext4/ext4.ko": "ext4", "kernel/lib/crc16.ko": "crc16",
		"modules.alias":   "alias pci:v00008086d0000100Esv*sd*bc*sc*i* e1000\nalias crypto-odd odd_name\nalias fs-ext4 ext4\n",
		"modules.softdep": "softdep ext4 pre: crypto-odd nowhere\n",
		"modules.builtin": "kernel/fs/xfs/xfs.ko\n",
	} {
		if got := text(t, all[dir+file]); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if dep := text(t, all[dir+"modules.dep"]); !strings.Contains(dep, "kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko\n") || strings.Contains(dep, "usb") {
		t.Errorf("modules.dep:\n%s", dep)
	}
}

func TestModulesAreRepeatable(t *testing.T) {
	t.Parallel()
	var a, b bytes.Buffer
	_, err := PackModules(t.Context(), &a, system(t), release, false)
	must(t, err)
	_, err = PackModules(t.Context(), &b, system(t), release, false)
	must(t, err)
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two runs differ")
	}
}

func TestModulesRefuses(t *testing.T) {
	t.Parallel()
	dir := "lib/modules/" + release + "/"
	for _, c := range []struct {
		name, release string
		change        func(fstest.MapFS)
		want          string
	}{
		{"no such release", "5.0", nil, "modules.dep"},
		{"a path as release", "../x", nil, "no kernel release"},
		{"a module that is listed and absent", release, func(m fstest.MapFS) { delete(m, dir+"kernel/fs/jbd2/jbd2.ko") }, "jbd2"},
		{"a broken xz file", release, func(m fstest.MapFS) { m[dir+"kernel/fs/ext4/ext4.ko.xz"].Data = []byte("nonsense") }, "ext4"},
		{"a path that leaves the folder", release, func(m fstest.MapFS) { m[dir+"modules.dep"].Data = []byte("../../../etc/x.ko:\n") }, "is not FILE"},
		{"nothing wanted", release, func(m fstest.MapFS) { m[dir+"modules.dep"].Data = []byte("kernel/sound/x.ko:\n") }, "none of the modules"},
	} {
		m := system(t)
		if c.change != nil {
			c.change(m)
		}
		_, err := PackModules(t.Context(), &bytes.Buffer{}, m, c.release, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestNodeSegment(t *testing.T) {
	t.Parallel()
	want := wire.Boot{Version: 1, Node: "n1", Attempt: "a", Token: "secret", Controller: "https://192.0.2.1:1", Address: "192.0.2.2/24"}
	b, err := NodeSegment(want)
	must(t, err)
	all := contents(t, b)
	r, ok := all["ironrail/boot.json"]
	if !ok || r.Mode&0o7777 != 0o600 || all["ironrail"].Mode&0o7777 != 0o700 {
		t.Fatalf("records %v", all)
	}
	var got wire.Boot
	must(t, json.Unmarshal([]byte(text(t, r)), &got))
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAgent(t *testing.T) {
	t.Parallel()
	program := append(elfHeader(0xb7), bytes.Repeat([]byte("x"), 1001)...)
	b, err := Agent(program, inventory.ARM64)
	must(t, err)
	all := contents(t, b)
	if r := all["init"]; r.Mode != cpio.S_IFREG|0o755 || text(t, r) != string(program) {
		t.Errorf("init %v", r)
	}
	if r := all["dev/console"]; r.Mode&cpio.S_IFMT != cpio.S_IFCHR || r.Rmajor != 5 || r.Rminor != 1 {
		t.Errorf("console %v", r)
	}
	for name, c := range map[string]struct {
		program []byte
		want    string
	}{
		"a script":           {[]byte("#!/bin/sh"), "no ELF program for amd64: it is for nothing that is known"},
		"cut off":            {elfHeader(0x3e)[:19], "nothing that is known"},
		"another processor":  {elfHeader(0xb7), "no ELF program for amd64: it is arm64"},
		"an unknown machine": {elfHeader(0xf3), "nothing that is known"},
	} {
		if _, err := Agent(c.program, inventory.AMD64); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// elfHeader begins a 64-bit program for a machine (e_machine of elf(5)).
func elfHeader(machine byte) []byte {
	return append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"), machine, 0)
}

// TestPeerCpioReadsIt asks the program that the format comes from.
func TestPeerCpioReadsIt(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "cpio")
	b, err := NodeSegment(wire.Boot{Node: "n1"})
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "cpio", "-it", "--quiet")
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "ironrail\nironrail/boot.json\n" {
		t.Errorf("cpio: %v: %q", err, out)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("\x80.ko:"), []byte("0"), []byte("0"))
	f.Add([]byte("kernel/a.ko: kernel/b.ko\nkernel/b.ko: kernel/a.ko\n"), []byte("alias x a\n"), []byte("softdep a pre: x\n"))
	f.Fuzz(func(t *testing.T, dep, alias, soft []byte) {
		x, err := parseIndex(dep, alias, soft)
		if err != nil {
			return
		}
		names := x.closure(func(string) bool { return true })
		for _, name := range names {
			if file := x.files[name]; !fs.ValidPath(file) {
				t.Errorf("path %q", file)
			}
		}
		x.writeDep(&bytes.Buffer{}, names)
		x.writeAlias(&bytes.Buffer{}, names)
		filterSoft(&bytes.Buffer{}, soft, names)
	})
}
