// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"io/fs"
	"slices"
	"testing"
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
