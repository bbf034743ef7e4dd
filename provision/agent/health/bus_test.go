// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// config is a configuration space with a PCIe capability of a port type behind a
// power management capability, and an ACS capability behind AER; acs < 0: none.
func config(port byte, acs int) []byte {
	b := make([]byte, 4096)
	b[0x34], b[0x40], b[0x41] = 0x40, 0x01, 0x68
	b[0x68], b[0x6a] = 0x10, port<<4|2
	binary.LittleEndian.PutUint32(b[0x100:], 0x158<<20|1<<16|0x0001)
	if acs >= 0 {
		binary.LittleEndian.PutUint32(b[0x158:], 1<<16|0x000d)
		binary.LittleEndian.PutUint16(b[0x15e:], uint16(acs))
	}
	return b
}

// TestBus: a GPU and a NIC below one switch, and a disk whose root port shows 64
// bytes of its configuration, as to who is not root.
func TestBus(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{}
	const host = "sys/devices/pci0000:15/"
	const root, up = host + "0000:15:01.0", host + "0000:15:01.0/0000:16:00.0"
	put := func(dir string, files map[string]string) {
		for name, text := range files {
			tree[dir+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		tree["sys/bus/pci/devices/"+dir[len(dir)-12:]] = &fstest.MapFile{Data: []byte("../../../../" + dir), Mode: fs.ModeSymlink}
	}
	put(root, map[string]string{"class": "0x060400\n", "config": string(config(4, 0x1d)), "current_link_width": "16\n", "max_link_width": "16\n", "current_link_speed": "32.0 GT/s PCIe\n", "max_link_speed": "32.0 GT/s PCIe\n"})
	put(up, map[string]string{"class": "0x060400\n", "config": string(config(5, -1))})
	put(up+"/0000:17:00.0", map[string]string{"class": "0x060400\n", "config": string(config(6, 0))})
	put(up+"/0000:17:01.0", map[string]string{"class": "0x060400\n", "config": string(config(6, 0x1d))})
	put(up+"/0000:17:00.0/0000:18:00.0", map[string]string{"class": "0x020000\n", "numa_node": "-1\n", "net/eth2/carrier_changes": "3\n", "net/eth2/speed": "400000\n", "iommu_group/type": "identity\n"})
	put(up+"/0000:17:01.0/0000:19:00.0", map[string]string{"class": "0x030200\n", "numa_node": "1\n"})
	put("sys/devices/pci0000:30/0000:30:01.0", map[string]string{"class": "0x060400\n", "config": string(config(4, 0x1d)[:64])})
	put("sys/devices/pci0000:30/0000:30:01.0/0000:31:00.0", map[string]string{"class": "0x010802\n"})
	put("sys/devices/pci0000:40/0000:40:00.0", map[string]string{"class": "0x080100\n", "vendor": "0x15b3\n", "device": "0x2100\n"})
	tree["sys/class/iommu/dmar0/intel-iommu/version"] = &fstest.MapFile{Data: []byte("1:0\n")}
	tree["sys/module/nvidia_peermem/refcnt"] = &fstest.MapFile{Data: []byte("0\n")}
	tree["proc/driver/nvidia/version"] = &fstest.MapFile{Data: []byte("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version:  gcc version 13.3.0\n")}
	tree["proc/uptime"] = &fstest.MapFile{Data: []byte("350735.47 234388.90\n")}
	tree["proc/sys/kernel/osrelease"] = &fstest.MapFile{Data: []byte("6.8.0-90-generic\n")}

	got := health.Read(sysfs.Of(tree))
	acs := func(n int) *int { return &n }
	want := []wire.PCIBridge{
		{Address: "0000:15:01.0", Port: "root", ACS: acs(0x1d), Width: acs(16), MaxWidth: acs(16), Speed: ptr(32.0), MaxSpeed: ptr(32.0)},
		{Address: "0000:16:00.0", Port: "upstream"}, {Address: "0000:17:00.0", Port: "downstream", ACS: acs(0)}, {Address: "0000:17:01.0", Port: "downstream", ACS: acs(0x1d)},
		{Address: "0000:30:01.0"},
	}
	if !reflect.DeepEqual(got.Bridges, want) {
		t.Errorf("got  %+v\nwant %+v", got.Bridges, want)
	}
	if len(got.PCI) != 3 || !reflect.DeepEqual(got.PCI[0].Above, []string{"0000:15:01.0", "0000:16:00.0", "0000:17:00.0"}) || got.PCI[0].NUMA != nil || *got.PCI[0].Carriers != 3 || *got.PCI[0].Bits != 400e9 || got.PCI[0].Domain != "identity" {
		t.Errorf("%+v", got.PCI)
	}
	if g := got.PCI[1]; *g.NUMA != 1 || g.Carriers != nil || g.Domain != "" {
		t.Errorf("%+v", g)
	}
	if !got.DirectNIC || !got.PeerMem || got.OpenGPU == nil || !*got.OpenGPU || got.Uptime != 350735.47 || got.Kernel != "6.8.0-90-generic" || !reflect.DeepEqual(got.IOMMUs, []string{"dmar0"}) {
		t.Errorf("%+v", got)
	}
}

func ptr[T any](v T) *T { return &v }

// TestDisks: one disk that answers, one that does not, and one of another node's.
func TestDisks(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		"nvme0/transport": "pcie", "nvme0/address": "0000:31:00.0", "nvme0/model": "SAMSUNG MZQL23T8HCLS-00A07    ", "nvme0/serial": "S64HNE0T500001      ",
		"nvme1/transport": "pcie", "nvme2/transport": "rdma",
	} {
		tree["sys/class/nvme/"+name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	page := make([]byte, 512)
	page[0], page[3], page[4], page[5] = 0x04, 99, 10, 2
	binary.LittleEndian.PutUint64(page[128:], 812)
	binary.LittleEndian.PutUint64(page[160:], 7)
	got := health.Disks(sysfs.Of(tree), func(device string) ([]byte, error) {
		if device == "/dev/nvme0" {
			return page, nil
		}
		return nil, errors.New(device + ": SMART log: input/output error")
	})
	want := []wire.NVMe{
		{Name: "nvme0", PCI: "0000:31:00.0", Model: "SAMSUNG MZQL23T8HCLS-00A07", Serial: "S64HNE0T500001", SMART: &wire.SMART{Critical: 4, Spare: 99, SpareLeast: 10, Used: 2, MediaErrors: 7, Hours: 812}},
		{Name: "nvme1", Why: "/dev/nvme1: SMART log: input/output error"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestReadSMART: what is no disk is not asked, and one that is not there is an error.
func TestReadSMART(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/dev/null", "/dev/nvme0n1", "/dev/nvme", "/dev/nvme99999"} {
		if _, err := health.ReadSMART(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
