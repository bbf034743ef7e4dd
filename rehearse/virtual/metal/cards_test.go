// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// settingsOf are the settings of a card by name.
func settingsOf(t *testing.T, k *Kernel, address string) map[string]CardSetting {
	t.Helper()
	device, list, ok := k.Card(address)
	if !ok || device != "ConnectX7" {
		t.Fatalf("%s: %q, %v", address, device, ok)
	}
	all := map[string]CardSetting{}
	for _, s := range list {
		all[s.Name] = s
	}
	return all
}

// TestLinkType: a card that was delivered as InfiniBand has no network interface and another
// link layer until its flash was written and it got power; a reset is not enough.
func TestLinkType(t *testing.T) {
	t.Parallel()
	const at = "0000:18:00.0"
	n := BuildNode(hgxNode(), Options{})
	seen := func(k *Kernel) (layer string, netdev bool) {
		i := slices.IndexFunc(n.Ports(), func(p Port) bool { return p.PCI == at })
		b, err := fs.ReadFile(k.FS(), "sys/class/infiniband/"+n.Ports()[i].RDMA+"/ports/1/link_layer")
		if err != nil {
			t.Fatal(err)
		}
		_, err = fs.Stat(k.FS(), "sys/class/net/"+n.Ports()[i].Netdev)
		return string(b), err == nil
	}
	k := n.Boot(ramdiskRelease, "", nil)
	if layer, netdev := seen(k); layer != "Ethernet\n" || !netdev || n.OtherType(at) {
		t.Errorf("as ordered: %q, %v", layer, netdev)
	}
	if !n.FlipLinkType(at) || n.FlipLinkType("0000:29:00.0") {
		t.Error("the card of a rail cannot be another type, or one of another vendor can")
	}
	wrong := func(when string) {
		t.Helper()
		if layer, netdev := seen(k); layer != "InfiniBand\n" || netdev || !n.OtherType(at) {
			t.Errorf("%s: %q, %v", when, layer, netdev)
		}
	}
	wrong("delivered")
	if err := k.SetCard(at, "LINK_TYPE_P1", typeEthernet); err != nil {
		t.Fatal(err)
	}
	if s := settingsOf(t, k, at)["LINK_TYPE_P1"]; s != (CardSetting{"LINK_TYPE_P1", typeInfiniBand, typeInfiniBand, typeEthernet}) {
		t.Errorf("written: %+v", s)
	}
	k = n.Boot(ramdiskRelease, "", nil)
	wrong("after a reset")
	n.PowerUp()
	if layer, netdev := seen(k); layer != "Ethernet\n" || !netdev || n.OtherType(at) {
		t.Errorf("after a power cycle: %q, %v", layer, netdev)
	}
	if err := k.SetCard(at, "LINK_TYPE_P2", typeEthernet); err == nil {
		t.Error("a card of one port takes the type of a second one")
	}
	n.LoseSettings(at)
	if err := k.SetCard(at, "EXP_ROM_PXE_ENABLE", 0); err != nil || settingsOf(t, k, at)["EXP_ROM_PXE_ENABLE"].Next != 1 {
		t.Errorf("a flash that keeps nothing: %v", err)
	}
	if n.RemovePCI(at); func() bool { _, _, ok := k.Card(at); return ok }() {
		t.Error("a card that is gone answers")
	}
}

// TestSplit: the second function of a cage is off the bus until both settings are written and
// the card got power, and is there again after a change back alone.
func TestSplit(t *testing.T) {
	t.Parallel()
	const first, second = "0000:18:00.0", "0000:18:00.1"
	inv := hgxNode()
	for i := range inv.Hardware.NICs {
		if n := &inv.Hardware.NICs[i]; slices.ContainsFunc(n.Ports, func(p inventory.NICPort) bool { return p.PCI == first }) {
			n.Model, n.Split = "ConnectX-8", 2
			n.Ports = append(n.Ports, inventory.NICPort{Rail: 7, PCI: second})
		}
	}
	n := BuildNode(inv, Options{})
	k := n.Boot(ramdiskRelease, "", nil)
	there := func() bool {
		_, err := fs.Stat(k.FS(), "sys/bus/pci/devices/"+second+"/vendor")
		return err == nil
	}
	if there() || !n.OtherType(second) || n.OtherType(first) {
		t.Error("the second function is there before the split")
	}
	device, list, ok := k.Card(first)
	if !ok || device != "ConnectX8" || !slices.ContainsFunc(list, func(s CardSetting) bool { return s == CardSetting{"MODULE_SPLIT_M0[4]", 1, 1, 1} }) {
		t.Fatalf("%s %+v", device, list)
	}
	write := func(name string, v int) {
		t.Helper()
		if err := k.SetCard(first, name, v); err != nil {
			t.Fatal(err)
		}
	}
	for i := 4; i < 8; i++ {
		write(moduleSplit(i), 2)
	}
	if n.PowerUp(); there() {
		t.Error("a second port without a second function is there")
	}
	if write("NUM_OF_PF", 2); there() {
		t.Error("it is there before a power cycle")
	}
	if n.PowerUp(); !there() || n.OtherType(second) {
		t.Error("it is not there after the power cycle")
	}
	if write("NUM_OF_PF", 1); !there() {
		t.Error("it is gone before a power cycle")
	}
	if n.PowerUp(); there() {
		t.Error("it is there without a function")
	}
	write("NUM_OF_PF", 2)
	n.PowerUp()
	other := BuildNode(inv, Options{Shared: n.options.Shared})
	if err := ExchangeChassis(n, other); err != nil || n.OtherType(second) == other.OtherType(second) || there() {
		t.Errorf("the NICs of an exchanged chassis did not come along: %v", err)
	}
	if other.Replace("another"); !other.OtherType(second) {
		t.Error("new hardware is split already")
	}
}
