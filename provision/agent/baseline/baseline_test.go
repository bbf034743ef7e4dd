// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

const status = `Package: dpkg
Status: install ok installed
Architecture: amd64
Version: 1.21.22

Package: libc6
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9
Description: GNU C Library
 Version: 9 is what this line is not about

Package: libc6
Status: install ok installed
Architecture: i386
Version: 2.36-9

Package: tzdata
Status: hold ok installed
Architecture: all
Version: 2024a

Package: nginx
Status: deinstall ok config-files
Architecture: amd64
Version: 1.22

Package: half
Status: install reinstreq half-installed
Architecture: amd64
Version: 1
`

func TestParseStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"installed and held ones, foreign ones by architecture", status, "dpkg=1.21.22 libc6=2.36-9 libc6:i386=2.36-9 tzdata=2024a"},
		{"no blank line at the end, CR LF", "Package: a\r\nStatus: install ok installed\r\nVersion: 1\r\n\r\n\r\nPackage: b\r\nStatus: install ok installed\r\nVersion: 2", "a=1 b=2"},
		{"without name or version", "Status: install ok installed\nVersion: 1\n\nPackage: x\nStatus: install ok installed\n", ""},
		{"a name that is none", "Package: a:b\nStatus: install ok installed\nVersion: 1\n", ""},
		{"endless field", "Package: " + strings.Repeat("x", dpkg.MaxField+1) + "\nStatus: install ok installed\nVersion: 1\n", ""},
	} {
		list, err := ParseStatus([]byte(c.text))
		var got []string
		for _, p := range list {
			got = append(got, p.Name+"="+p.Version)
		}
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	if _, err := ParseStatus([]byte(strings.Repeat("Package: a\nStatus: install ok installed\nVersion: 1\n\n", dpkg.MaxPackages+2))); err == nil {
		t.Error("endless list: no error")
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(status))
	f.Add([]byte("Package: a\nStatus: install ok installed\nVersion: 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseStatus(text)
		if err != nil {
			return
		}
		for i, p := range list {
			if p.Name == "" || p.Version == "" || i > 0 && list[i-1].Name > p.Name {
				t.Errorf("%d: %+v", i, p)
			}
		}
		var again strings.Builder
		for _, p := range list {
			name, arch, _ := strings.Cut(p.Name, ":")
			fmt.Fprintf(&again, "Package: %s\nStatus: install ok installed\nArchitecture: %s\nVersion: %s\n\n", name, arch, p.Version)
		}
		back, err := ParseStatus([]byte(again.String()))
		if err != nil || len(back) > len(list) {
			t.Errorf("its own words: %d of %d, %v", len(back), len(list), err)
		}
	})
}

// tree is a node with a GPU, a NIC with an RDMA device, and one disk.
func tree() fstest.MapFS {
	t := fstest.MapFS{}
	for name, text := range map[string]string{
		"proc/cmdline": "root=LABEL=x  ro\n", "proc/sys/kernel/osrelease": "6.1.0-1\n", "proc/sys/kernel/random/boot_id": "b1\n", "proc/uptime": "61.50 60.00\n",
		"proc/cpuinfo": "processor : 0\nmodel name : X\nmicrocode : 0x2b\n", "sys/class/dmi/id/product_serial": "S1\n", "sys/class/dmi/id/bios_version": "2.4.1\n",
		"sys/devices/pci0000:00/0000:00:01.0/class": "0x030200\n", "sys/devices/pci0000:00/0000:00:01.0/vendor": "0x10de\n", "sys/devices/pci0000:00/0000:00:01.0/device": "0x2330\n",
		"sys/devices/pci0000:00/0000:00:01.0/current_link_width": "16\n", "sys/devices/pci0000:00/0000:00:01.0/current_link_speed": "2.5 GT/s PCIe\n",
		"proc/driver/nvidia/gpus/0000:00:01.0/information": "Model: \t H100\nGPU UUID: \t GPU-1234\nVideo BIOS: \t ??.??\n",
		"sys/devices/pci0000:00/0000:00:02.0/class":        "0x020000\n", "sys/devices/pci0000:00/0000:00:02.0/vendor": "0x15b3\n", "sys/devices/pci0000:00/0000:00:02.0/device": "0x1021\n",
		"sys/devices/pci0000:00/0000:00:02.0/current_link_width": "16\n", "sys/devices/pci0000:00/0000:00:02.0/current_link_speed": "32.0 GT/s PCIe\n",
		"sys/devices/pci0000:00/0000:00:02.0/net/eth1/mtu": "9000\n", "sys/devices/pci0000:00/0000:00:02.0/net/eth1/operstate": "up\n", "sys/devices/pci0000:00/0000:00:02.0/net/eth1/speed": "400000\n",
		"sys/devices/pci0000:00/0000:00:02.0/net/eth1/statistics/rx_crc_errors": "7\n",
		"sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0/fw_ver":          "28.39.1002\n", "sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
		"sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n", "sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0/ports/1/counters/symbol_error": "3\n",
		"sys/module/mlx5_core/version": "24.10\n", dpkg.StatusFile: status,
	} {
		t[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, to := range map[string]string{
		"sys/bus/pci/devices/0000:00:01.0": "../../../devices/pci0000:00/0000:00:01.0", "sys/bus/pci/devices/0000:00:02.0": "../../../devices/pci0000:00/0000:00:02.0",
		"sys/class/net/eth1": "../../devices/pci0000:00/0000:00:02.0/net/eth1", "sys/devices/pci0000:00/0000:00:02.0/net/eth1/device": "../../../0000:00:02.0",
		"sys/class/infiniband/mlx5_0": "../../devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0", "sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0/device": "../../../0000:00:02.0",
	} {
		t[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	return t
}

func TestLook(t *testing.T) {
	t.Parallel()
	none := func(string, disk.Use) (disk.Device, error) { return nil, fs.ErrNotExist }
	l := Reader{FS: sysfs.Of(tree()), Open: none}
	b := l.Read(wire.BaselineParams{})
	var got []string
	for _, i := range b.Items {
		got = append(got, strings.Join(strings.Fields(i.Kind+" "+i.Part+" "+i.Name), " ")+"="+i.Value)
	}
	want := []string{
		"drivers mlx5_core version=24.10", "firmware 0000:00:02.0 HCA=28.39.1002", "firmware BIOS version=2.4.1", "firmware CPU microcode=0x2b",
		"hardware serial=S1", "hardware 0000:00:01.0 GPU=10de:2330", "hardware 0000:00:01.0 GPU uuid=GPU-1234", "hardware 0000:00:02.0 NIC=15b3:1021",
		"hardware CPU model=X", "kernel arguments=root=LABEL=x ro", "kernel release=6.1.0-1",
		"link 0000:00:01.0 PCIe width=16", "link 0000:00:02.0 PCIe speed=32.0 GT/s PCIe", "link 0000:00:02.0 PCIe width=16",
		"link 0000:00:02.0 RDMA rate=400 Gb/sec (4X NDR)", "link 0000:00:02.0 RDMA state=ACTIVE", "link 0000:00:02.0 speed=400000 Mb/s", "link 0000:00:02.0 state=up",
		"network 0000:00:02.0 mtu=9000",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	if fmt.Sprint(b.Counters) != "[{0000:00:02.0 rx_crc_errors 7} {0000:00:02.0 symbol_error 3}]" {
		t.Errorf("counters %v", b.Counters)
	}
	if b.BootID != "b1" || b.Uptime != 61.5 || len(b.List) != 4 || b.Packages != Digest(b.List) || len(b.Gaps) != 0 {
		t.Errorf("got %+v", b)
	}
	if again := l.Read(wire.BaselineParams{Known: []string{b.Packages}}); again.List != nil || again.Packages != b.Packages {
		t.Errorf("a known list was sent again: %d packages", len(again.List))
	}
}

// TestInstallInMemory: what install a node has is said of its system in memory, and not of a disk with
// the marker of an older one.
func TestInstallInMemory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vda")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 8<<20)); err != nil {
		t.Fatal(err)
	}
	dev, err := disk.Open(path, disk.Shared)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(disk.PutMarker(dev, disk.Marker{Text: "n1/old/write", State: disk.Configured, Digest: "sha256:ab"}), dev.Close()); err != nil {
		t.Fatal(err)
	}
	open := func(_ string, use disk.Use) (disk.Device, error) { return disk.Open(path, use) }
	for _, c := range []struct{ name, text, want string }{
		{"on disk", "", "n1/old/write sha256:ab"},
		{"in memory", `{"marker":"n1/new/write","digest":"sha256:cd"}`, "n1/new/write sha256:cd"},
		{"damaged", "{", "n1/old/write sha256:ab gap"},
	} {
		fsys := tree()
		fsys["sys/block/vda/size"] = &fstest.MapFile{Data: []byte("16384\n")}
		if c.text != "" {
			fsys["etc/ironrail/memory.json"] = &fstest.MapFile{Data: []byte(c.text)}
		}
		b := Reader{FS: sysfs.Of(fsys), Open: open}.Read(wire.BaselineParams{})
		var got []string
		for _, name := range []string{"install", "digest"} {
			for _, i := range b.Items {
				if i.Kind == wire.ItemImage && i.Name == name && i.Value != "" {
					got = append(got, i.Value)
				}
			}
		}
		for _, g := range b.Gaps {
			if g.Kind == wire.ItemImage {
				got = append(got, "gap")
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}

func TestLookAtNothing(t *testing.T) {
	t.Parallel()
	b := Reader{FS: sysfs.Of(fstest.MapFS{})}.Read(wire.BaselineParams{})
	if len(b.Items) != 0 || len(b.Gaps) != 1 || b.Gaps[0].Kind != wire.ItemPackages {
		t.Errorf("got %+v", b)
	}
}
