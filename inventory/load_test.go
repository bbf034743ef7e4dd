// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory/diag"
)

// text renders diagnostics for a failed test.
func text(t *testing.T, l Diagnostics, files Files) string {
	t.Helper()
	var b strings.Builder
	if err := diag.WriteText(&b, l, files, 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// loadClean loads a folder that must not have a single finding, but warnings of the
// checks that are named.
func loadClean(t *testing.T, dir string, but ...string) *Inventory {
	t.Helper()
	inv, diags, files := Load(dir, Options{})
	diags = slices.DeleteFunc(diags, func(d Diagnostic) bool { return d.Severity == diag.Warning && slices.Contains(but, d.Check) })
	if len(diags) > 0 {
		t.Fatalf("%s is not clean:\n%s", dir, text(t, diags, files))
	}
	return inv
}

func TestLoadLab(t *testing.T) {
	t.Parallel()
	inv := loadClean(t, "../examples/lab")
	if len(inv.Nodes) != 2 {
		t.Fatalf("nodes: got %d, want 2", len(inv.Nodes))
	}
	n, ok := inv.Node("n2")
	if !ok {
		t.Fatal("there is no n2")
	}
	checks := []struct{ what, got, want string }{
		{"hardware", n.Hardware.Name, "lab-uefi"},
		{"boot", string(n.Hardware.Boot), "uefi"},
		{"address", n.Address.String(), "10.77.0.12"},
		{"boot network", n.BootNetwork.Name, "boot"},
		{"boot MAC", n.BootMAC.String(), "52:54:00:77:00:12"},
		{"BMC address", n.BMC.Address.String(), "10.77.1.12"},
		{"BMC password", string(n.BMC.Password), "env:LAB_BMC_PASSWORD"},
		{"BMC protocol", n.BMC.Protocol, "ipmi"},
		{"UUID", n.UUID, "6c616230-0000-4000-8000-000000000002"},
		{"image", n.Image.Kind + "." + n.Image.Name, "debian.os"},
		{"router advertisement", n.BootNetwork.DHCP.RouterAdvertisement, "empty"},
		{"root size", n.Disks.Root.Size.String(), "3GiB"},
		{"disk", n.Hardware.Disks[0].Size.String(), ">= 4GB"},
		{"software RDMA", n.Hardware.NICs[1].SoftwareRDMA, "rxe"},
		{"rail fabric", n.Hardware.NICs[1].Fabric.Name, "rail"},
		{"pair size", n.Validation.Pair.Size.String(), "64KiB"},
		{"scope", strings.Join(n.Validation.AllReduce.Scope, ","), "all"},
		{"driver packages", n.Drivers[0].Packages[0], "rdma-core"},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
	if n.BMC.CipherSuite != 3 || n.BMC.Port != 623 {
		t.Errorf("cipher suite %d port %d, want 3 and 623", n.BMC.CipherSuite, n.BMC.Port)
	}
	if inv.Site.MaxErase != 2 {
		t.Errorf("max_erase: got %d, want 2", inv.Site.MaxErase)
	}
}

// TestLoadSpecification loads the language's specification by example, where it
// is present.
func TestLoadSpecification(t *testing.T) {
	t.Parallel()
	const dir = "../../shared/language"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the specification's example is not here: %v", err)
	}
	inv := loadClean(t, dir, "host.key") // the key of its administrators is a placeholder
	n, ok := inv.Node("r01-u09")
	if !ok {
		t.Fatal("there is no r01-u09")
	}
	if want := netip.MustParseAddr("10.20.0.73"); n.Address != want {
		t.Errorf("address: got %s, want %s (rack 1, unit 9)", n.Address, want)
	}
	if got := string(n.BMC.FactoryPassword); got != "csv:manifest.csv#SN2/factory_password" {
		t.Errorf("factory password: got %q", got)
	}
	if len(n.Feeds) != 6 || n.Feeds[0].PDU.Name != "r01/a" || n.Feeds[1].PDU.Name != "r01/b" || n.Feeds[5].Supply != "psu6" {
		t.Errorf("feeds: got %+v", n.Feeds)
	}
	if len(n.Partitions) != 1 || n.Partitions[0].PKey != 1 {
		t.Errorf("partitions: got %+v", n.Partitions)
	}
	s := inv.Summary()
	if s.Racks != 2 || s.Nodes != 4 || s.GPUs != 32 || s.Power["A"].MaxWatts != 4*8400/2 {
		t.Errorf("summary: got %+v", s)
	}
	if pdu := inv.Racks[1].PDUs[0]; pdu.Control == nil || pdu.Control.Address.String() != "10.10.0.12" || pdu.Control.Community != "env:PDU_COMMUNITY" {
		t.Errorf("PDU control of r02/a: got %+v", pdu.Control)
	}
}

// TestLoadSite loads a site of ours that has every block of the language.
func TestLoadSite(t *testing.T) {
	t.Parallel()
	inv := loadClean(t, "testdata/site")
	node := func(name string) *Node {
		n, ok := inv.Node(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		return n
	}
	amd, far, tray := node("a-0-u9"), node("a-1-u1"), node("t-1")
	checks := []struct{ what, got, want string }{
		{"address by position", amd.Address.String(), "10.1.0.73"},
		{"BMC address by position", amd.BMC.Address.String(), "10.0.0.73"},
		{"address by override", far.Address.String(), "10.1.200.1"},
		{"BMC address by override", far.BMC.Address.String(), "10.0.200.1"},
		{"layout of the role", amd.Disks.Name, "mirror"},
		{"layout by override", far.Disks.Name, "plain"},
		{"disk by override", far.InstallDisk, "S6CKNE0X100132"},
		{"disk of others", amd.InstallDisk, ""},
		{"hardware of the node", tray.Hardware.Name, "tray"},
		{"address of rack 10", tray.Address.String(), "10.1.2.130"},
		{"fingerprint", amd.BMC.TLS.Fingerprint[:4], "aabb"},
		{"user of the node's BMC", tray.BMC.Username, "admin"},
		{"secret of the profile", string(tray.BMC.Password), "vault:kv/bmc#password"},
		{"PDU by for_each", amd.Feeds[1].PDU.Name, "a-0/right"},
		{"feed of the PDU", amd.Feeds[1].PDU.Feed, "B"},
		{"network of for_each", inv.Networks[4].Name + " " + inv.Networks[4].CIDR.String(), "tenant-red 10.2.101.0/24"},
		{"network of JSON", inv.Networks[2].CIDR.String(), "10.3.16.0/20"},
		{"state", inv.State.Endpoints[1], "https://10.1.0.3:2379"},
		{"where in etcd", strings.Join([]string{inv.State.Prefix, inv.State.Authority, inv.State.Certificate, inv.State.Key}, " "), "/ironrail/north etcd/ca.pem /etc/ironrail/etcd.pem /etc/ironrail/etcd.key"},
		{"user data", amd.Host.UserData, "#cloud-config\nfqdn: north.example\n# ntp 10.1.0.2\n# ntp 10.1.0.3\n"},
		{"P_Key", strconv.Itoa(int(tray.Partitions[1].PKey)), "32766"},
		{"sizes in order", inv.Validations[0].AllReduce.Sizes[0].String(), "8GiB"},
		{"limit", strconv.FormatFloat(inv.Validations[0].Limits[1].AtMost.Value, 'f', -1, 64), "3000"},
		{"allowed gate", inv.Validations[0].Allowed[0].Gate + ": " + inv.Validations[0].Allowed[0].Reason, "iommu: virtual machines of tenants"},
		{"cable", inv.Cables[0].From.Node.Name + " " + inv.Cables[0].To.Switch.Name, "a-0-u1 a-0/leaf"},
		{"order of roles", amd.Role.After[0].Name, "nvl"},
		{"firmware", amd.Hardware.Versions.BMC.String(), ">= 1.2.3"},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
	if amd.Protect || !far.Protect || !tray.Protect {
		t.Errorf("protect: got %t, %t, %t; want false, true (override), true (role)", amd.Protect, far.Protect, tray.Protect)
	}
	if tray.BMC.Protocol != "ipmi" || tray.BMC.CipherSuite != 3 || node("t-0").BMC.Port != 623 {
		t.Errorf("BMC of the tray: got %+v", tray.BMC)
	}
	if far.Override == nil || strings.Join(far.Override.Sets, " ") != "address bmc disks install_disk protect" {
		t.Errorf("override: got %+v", far.Override)
	}
	want := Summary{Racks: 3, Nodes: 5, GPUs: 32, Switches: 3, Cables: 1, Power: map[string]FeedPower{"A": {TypicalWatts: 16800, MaxWatts: 16800}, "B": {TypicalWatts: 16800, MaxWatts: 16800}}, Fabrics: []FabricCounts{}}
	if got := inv.Summary(); !reflect.DeepEqual(got, want) {
		t.Errorf("summary: got %+v, want %+v", got, want)
	}
}
