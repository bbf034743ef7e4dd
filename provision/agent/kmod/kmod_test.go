// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// indexes as depmod writes them.
var indexes = map[string]string{
	"modules.dep": "kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko\nkernel/lib/crc16.ko:\nkernel/fs/jbd2/jbd2.ko: kernel/lib/crc16.ko\n" +
		"kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko\nkernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko\nkernel/net/core/failover.ko:\n" +
		"kernel/crypto/crc32c-generic.ko:\nkernel/drivers/net/ethernet/intel/e1000/e1000.ko:\nkernel/bad.ko.xz:\nkernel/needsbad.ko: kernel/bad.ko.xz\n",
	"modules.alias": "# comment\nalias virtio:d00000001v* virtio_net\nalias fs-ext4 ext4\nalias pci:v00008086d0000100Esv*sd*bc*sc*i* e1000\nalias acpi*:XYZ0001:* e1000\n" +
		"alias crypto-crc32c crc32c-generic\nalias crc32c crc32c-generic\nalias of:N*T*Cibm,i2c/x e1000\n",
	"modules.softdep": "softdep ext4 pre: crc32c post: nothing\n", "modules.builtin": "kernel/fs/nls/nls-base.ko\n",
}

// tree returns a tree whose insert only records.
func tree(t *testing.T) (*Tree, *[]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range indexes {
		path := filepath.Join(dir, "lib/modules/6.1", name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	modules, err := Open(dir, "6.1")
	if err != nil {
		t.Fatal(err)
	}
	var inserted []string
	modules.insert = func(path string) error {
		inserted = append(inserted, name(path))
		if name(path) == "bad" {
			return errors.New("exec format error")
		}
		return nil
	}
	return modules, &inserted
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ask  string
		want string
		err  string
	}{
		{"virtio_net", "failover net_failover virtio_net", ""},
		{"virtio-net", "failover net_failover virtio_net", ""},
		{"virtio:d00000001v00001AF4", "failover net_failover virtio_net", ""},
		{"fs-ext4", "jbd2-first", ""},
		{"crypto-crc32c", "crc32c_generic", ""},
		{"pci:v00008086d0000100Esv00001AF4sd00001100bc02sc00i00", "e1000", ""},
		{"acpi:XYZ0001:", "e1000", ""},
		{"of:NxTyCibm,i2c/x", "e1000", ""},
		{"nls_base", "", ""},
		{"nothing", "", "no kernel module for nothing"},
		{"needsbad", "bad", "needsbad: load bad: exec format error"},
	} {
		t.Run(c.ask, func(t *testing.T) {
			t.Parallel()
			modules, inserted := tree(t)
			err := modules.Load(c.ask)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
			got := strings.Join(*inserted, " ")
			if c.ask == "fs-ext4" {
				judgeExt4(t, *inserted)
			} else if got != c.want {
				t.Errorf("inserted %q, want %q", got, c.want)
			}
			before := len(*inserted)
			modules.Load(c.ask)
			if len(*inserted) != before {
				t.Errorf("loaded again: %q", *inserted)
			}
		})
	}
}

// judgeExt4 wants every dependency before its user, and the soft one.
func judgeExt4(t *testing.T, order []string) {
	t.Helper()
	for _, pair := range [][2]string{{"crc16", "jbd2"}, {"jbd2", "ext4"}, {"crc32c_generic", "ext4"}} {
		a, b := slices.Index(order, pair[0]), slices.Index(order, pair[1])
		if a < 0 || b < 0 || a > b {
			t.Errorf("%s is not before %s in %q", pair[0], pair[1], order)
		}
	}
}

func TestColdplug(t *testing.T) {
	t.Parallel()
	modules, inserted := tree(t)
	sys := t.TempDir()
	device := func(name, alias string) {
		path := filepath.Join(sys, "devices", name, "modalias")
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(alias+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	device("pci0000:00/0000:00:02.0", "pci:v00008086d0000100Esv00001AF4sd00001100bc02sc00i00")
	device("unknown", "pci:v0000FFFFd*")
	record := modules.insert
	modules.insert = func(path string) error { // a driver that brings a new device
		if name(path) == "e1000" {
			device("pci0000:00/0000:00:02.0/virtio0", "virtio:d00000001v00001AF4")
		}
		return record(path)
	}
	loaded, err := modules.Coldplug(sys)
	if err != nil || loaded != 2 || !slices.Contains(*inserted, "virtio_net") {
		t.Errorf("loaded %d (%q), %v", loaded, *inserted, err)
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("module"), 1000)
	var gz, x, z bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write(want)
	g.Close()
	xw, err := xz.NewWriter(&x)
	if err != nil {
		t.Fatal(err)
	}
	xw.Write(want)
	xw.Close()
	zw, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	zw.Write(want)
	zw.Close()
	for ext, packed := range map[string]*bytes.Buffer{".gz": &gz, ".xz": &x, ".zst": &z} {
		if got, err := unpack(packed, ext); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", ext, len(got), err)
		}
	}
	if _, err := unpack(&gz, ".lz4"); err == nil {
		t.Error("an unknown compression was taken")
	}
}

func TestNoModules(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.TempDir(), "6.1"); err == nil {
		t.Error("no error without modules.dep")
	}
}
