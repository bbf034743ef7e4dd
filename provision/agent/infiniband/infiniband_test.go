// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"io/fs"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// node is what a node with one ConnectX-7 and one Ethernet port shows.
func node() fstest.MapFS {
	files := fstest.MapFS{}
	text := func(name, content string) { files[name] = &fstest.MapFile{Data: []byte(content + "\n")} }
	link := func(name, to string) { files[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink} }
	const ib, eth = "sys/devices/pci0000:15/0000:18:00.0", "sys/devices/pci0000:26/0000:29:00.0"
	for device, dir := range map[string]string{"mlx5_0": ib, "mlx5_1": eth} {
		d := dir + "/infiniband/" + device
		link("sys/class/infiniband/"+device, "../../../"+d)
		link(d+"/device", "../../../"+dir[len(dir)-12:])
		text(d+"/node_guid", "946d:ae03:0000:0010")
		p := d + "/ports/1/"
		text(p+"state", "4: ACTIVE")
		text(p+"phys_state", "5: LinkUp")
		text(p+"rate", "400 Gb/sec (4X NDR)")
		text(p+"lid", "0x15")
		text(p+"link_layer", map[bool]string{true: "InfiniBand", false: "Ethernet"}[device == "mlx5_0"])
		text(p+"gids/0", "fe80:0000:0000:0000:946d:ae03:0000:0011")
		text(p+"pkeys/0", "0x7fff")
		text(p+"pkeys/1", "0x8001")
		text(p+"pkeys/2", "0x0000")
		text(p+"pkeys/10", "0x0003")
	}
	link("sys/class/net/ib0", "../../../"+ib+"/net/ib0")
	link(ib+"/net/ib0/device", "../../../0000:18:00.0")
	text(ib+"/net/ib0/type", "32")
	return files
}

func TestLook(t *testing.T) {
	t.Parallel()
	got := Read(sysfs.Of(node()))
	if len(got.Ports) != 2 {
		t.Fatalf("%+v", got)
	}
	want := wire.InfiniBandPort{Device: "mlx5_0", PCI: "0000:18:00.0", Number: 1, HCA: "0x946dae0300000010", GUID: "0x946dae0300000011", Layer: "InfiniBand",
		State: "ACTIVE", Physical: "LinkUp", Rate: "400 Gb/sec (4X NDR)", LID: 21, PKeys: []uint16{3, 0x7fff, 0x8001}, Netdev: "ib0"}
	if !reflect.DeepEqual(got.Ports[0], want) {
		t.Errorf("got  %+v\nwant %+v", got.Ports[0], want)
	}
	if got.Ports[1].Layer != "Ethernet" || got.Ports[1].Netdev != "" {
		t.Errorf("%+v", got.Ports[1])
	}
}

// TestPartial: a port without a link, and a device without anything.
func TestPartial(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"sys/class/infiniband/mlx5_0/ports/1/state":      {Data: []byte("1: DOWN\n")},
		"sys/class/infiniband/mlx5_0/ports/1/gids/0":     {Data: []byte("fe80:0000:0000:0000:0000:0000:0000:0000\n")},
		"sys/class/infiniband/mlx5_0/ports/1/phys_state": {Data: []byte("2: Polling\n")},
	}
	got := Read(sysfs.Of(files))
	if len(got.Ports) != 1 || got.Ports[0].GUID != "" || got.Ports[0].State != "DOWN" || got.Ports[0].Physical != "Polling" {
		t.Errorf("%+v", got)
	}
	if r := Read(sysfs.Of(fstest.MapFS{})); r.Ports == nil || len(r.Ports) != 0 {
		t.Errorf("%+v", r)
	}
}
