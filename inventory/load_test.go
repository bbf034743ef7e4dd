package inventory

import (
	"net/netip"
	"os"
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

// loadClean loads a folder that must not have a single finding.
func loadClean(t *testing.T, dir string) *Inventory {
	t.Helper()
	inv, diags, files := Load(dir, Options{})
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

// siteFolders are the folders of the whole example: our own, and the
// specification's where it is present.
func siteFolders(t *testing.T) []string {
	folders := []string{"testdata/site"}
	const shared = "../../shared/language"
	if _, err := os.Stat(shared); err == nil {
		folders = append(folders, shared)
	} else {
		t.Logf("the specification's example is not here: %v", err)
	}
	return folders
}

func TestLoadSite(t *testing.T) {
	t.Parallel()
	for _, dir := range siteFolders(t) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			inv := loadClean(t, dir)
			n, ok := inv.Node("r01-u09")
			if !ok {
				t.Fatal("there is no r01-u09")
			}
			if want := netip.MustParseAddr("10.20.0.73"); n.Address != want {
				t.Errorf("address: got %s, want %s (rack 1, unit 9)", n.Address, want)
			}
			if want := netip.MustParseAddr("10.10.0.73"); n.BMC.Address != want {
				t.Errorf("BMC address: got %s, want %s", n.BMC.Address, want)
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
		})
	}
}
