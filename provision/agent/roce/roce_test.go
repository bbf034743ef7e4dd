// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// fake is a kernel with its /sys and /proc in a folder.
type fake struct {
	t         *testing.T
	dir       string
	addresses map[string][]netip.Prefix
	routing   map[string]Route
	devices   map[string]string
	sorting   map[string]wire.RoCESorting
	writes    int // calls that change something
}

// put writes a file of the tree.
func (f *fake) put(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// nic adds a network interface with a PCI parent.
func (f *fake) nic(name, pci, mac string) {
	f.t.Helper()
	device := "sys/devices/pci0000:00/" + pci + "/virtio1"
	for file, text := range map[string]string{"address": mac, "mtu": "1500", "carrier": "1"} {
		f.put(device+"/net/"+name+"/"+file, text+"\n")
	}
	for _, s := range settings {
		f.put("proc/sys/net/ipv4/conf/"+name+"/"+s.name, "0\n")
		f.put("proc/sys/net/ipv4/conf/all/"+s.name, "0\n")
	}
	if err := os.MkdirAll(filepath.Join(f.dir, "sys/class/net"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	for link, to := range map[string]string{
		"sys/class/net/" + name:             "../../" + strings.TrimPrefix(device, "sys/") + "/net/" + name,
		device + "/net/" + name + "/device": "../..",
	} {
		if err := os.Symlink(to, filepath.Join(f.dir, link)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// gid fills one slot of a GID table.
func (f *fake) gid(device, index, kind, netdev, gid string) {
	at := "sys/class/infiniband/" + device + "/ports/1/"
	f.put(at+"gids/"+index, gid+"\n")
	f.put(at+"gid_attrs/types/"+index, kind+"\n")
	f.put(at+"gid_attrs/ndevs/"+index, netdev+"\n")
	f.put(at+"state", "4: ACTIVE\n")
}

func (f *fake) Addresses(netdev string) ([]netip.Prefix, error) { return f.addresses[netdev], nil }

func (f *fake) SetLink(netdev string, mtu int) error {
	f.put("sys/class/net/"+netdev+"/mtu", map[int]string{1500: "1500", 9000: "9000"}[mtu])
	return nil
}

func (f *fake) SetAddress(netdev string, a netip.Prefix) error {
	f.writes++
	f.addresses[netdev] = append(f.addresses[netdev], a)
	return nil
}

func (f *fake) DropAddress(netdev string, a netip.Prefix) error {
	f.writes++
	f.addresses[netdev] = slices.DeleteFunc(f.addresses[netdev], func(b netip.Prefix) bool { return a == b })
	return nil
}

func (f *fake) Routing(netdev string, r Route) (bool, error) { return f.routing[netdev] == r, nil }

func (f *fake) SetRouting(netdev string, r Route) error {
	f.writes++
	f.routing[netdev] = r
	return nil
}

func (f *fake) SetIPv4(netdev, setting, value string) error {
	f.put("proc/sys/net/ipv4/conf/"+netdev+"/"+setting, value+"\n")
	return nil
}

func (f *fake) Device(netdev string) string { return f.devices[netdev] }

// AddSoft makes the device as rxe does: link-local first, then the IPv4 address.
func (f *fake) AddSoft(_ context.Context, device, netdev string) error {
	f.writes++
	f.devices[netdev] = device
	f.gid(device, "0", typeV2, netdev, "fe80:0000:0000:0000:5054:00ff:fe77:1011")
	for _, a := range f.addresses[netdev] {
		f.gid(device, "1", typeV2, netdev, gidOf(a.Addr()))
	}
	return nil
}

// gidOf is the text of the IPv4-mapped GID in sysfs.
func gidOf(a netip.Addr) string {
	b := a.As16()
	b[10], b[11] = 0xff, 0xff
	var groups []string
	const hex = "0123456789abcdef"
	for i := 0; i < 16; i += 2 {
		groups = append(groups, string([]byte{hex[b[i]>>4], hex[b[i]&15], hex[b[i+1]>>4], hex[b[i+1]&15]}))
	}
	return strings.Join(groups, ":")
}

func newFake(t *testing.T) (*fake, Node) {
	t.Helper()
	f := &fake{t: t, dir: t.TempDir(), addresses: map[string][]netip.Prefix{}, routing: map[string]Route{}, devices: map[string]string{}, sorting: map[string]wire.RoCESorting{}}
	f.nic("ens3", "0000:00:03.0", "52:54:00:77:00:11")
	f.nic("ens4", "0000:00:04.0", "52:54:00:77:10:11")
	return f, Node{FS: sysfs.Dir(f.dir), Root: func() (rootfs.Root, error) { return rootfs.Open(f.dir) }, Network: f, RDMA: f, QoS: f, Settle: 10 * time.Millisecond}
}

func rail(address string) wire.RoCEParams {
	return wire.RoCEParams{MTU: 1500, Ports: []wire.RoCEPort{{
		Rail: 0, PCI: "0000:00:04.0", MAC: addr.MAC{0x52, 0x54, 0, 0x77, 0x10, 0x11}, Address: address, SoftwareRDMA: "rxe", Table: 100, Gateway: "10.77.16.1",
	}}}
}

func TestApply(t *testing.T) {
	t.Parallel()
	f, node := newFake(t)
	p := rail("10.77.16.11/24")
	if r := node.Check(p); r.Conforms || r.Error != nil || f.writes != 0 {
		t.Errorf("before: %+v, %d writes", r, f.writes)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "etc")); err == nil {
		t.Error("check has written files")
	}
	r := node.Apply(t.Context(), p)
	want := wire.RoCEPortState{
		Netdev: "ens4", RDMADevice: "rxe0", GIDIndex: 1, GID: "0000:0000:0000:0000:0000:ffff:0a4d:100b", GIDType: typeV2,
		State: "ACTIVE", MTU: 1500, ActiveMTU: 1024, Address: "10.77.16.11/24",
	}
	if !r.Conforms || r.Error != nil || len(r.Ports) != 1 || len(r.Ports[0].Problems) != 0 || len(r.Changed) == 0 {
		t.Fatalf("apply: %+v", r)
	}
	if got := r.Ports[0]; got.Netdev != want.Netdev || got.RDMADevice != want.RDMADevice || got.GIDIndex != want.GIDIndex || got.GID != want.GID ||
		got.GIDType != want.GIDType || got.State != want.State || got.MTU != want.MTU || got.ActiveMTU != want.ActiveMTU || got.Address != want.Address {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, want := range []string{"/etc/ironrail/roce.json", "rail 0: address 10.77.16.11/24", "rail 0: routing table 100", "rail 0: RDMA device rxe0"} {
		if !slices.Contains(r.Changed, want) {
			t.Errorf("changed %q lacks %q", r.Changed, want)
		}
	}
	writes := f.writes
	if r := node.Apply(t.Context(), p); !r.Conforms || len(r.Changed) != 0 || f.writes != writes {
		t.Errorf("second apply changed %v (%d writes)", r.Changed, f.writes-writes)
	}
	if r := node.Check(p); !r.Conforms {
		t.Errorf("check: %+v", r)
	}
	if len(f.addresses["ens3"]) != 0 {
		t.Error("the boot NIC was touched")
	}
	judgeFiles(t, f.dir)
}

func judgeFiles(t *testing.T, dir string) {
	t.Helper()
	for name, want := range map[string]string{
		"etc/systemd/network/20-ironrail-rail0.network": "[Match]\nMACAddress=52:54:00:77:10:11\nType=ether\n\n[Link]\nMTUBytes=1500\n",
		"etc/sysctl.d/90-ironrail-roce.conf":            "net.ipv4.conf.all.arp_announce = 2\n",
		"etc/systemd/system/ironrail-roce.service":      "ExecStart=/usr/local/sbin/ironrail-agent roce up\n",
		"etc/ironrail/roce.json":                        `"address": "10.77.16.11/24"`,
		"proc/sys/net/ipv4/conf/ens4/rp_filter":         "2",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v, got %q, want %q in it", name, err, b, want)
		}
	}
	b, _ := os.ReadFile(filepath.Join(dir, "etc/systemd/network/20-ironrail-rail0.network"))
	for _, want := range []string{"From=10.77.16.11\nTable=100\nPriority=10100\n", "Destination=10.77.16.0/24\nScope=link\nPreferredSource=10.77.16.11\nTable=100\n", "Gateway=10.77.16.1\nTable=100\n"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("network file: got %q, want %q in it", b, want)
		}
	}
}

// TestManager: where NetworkManager sets interfaces up, it leaves the rails alone, and reads that
// before an address is there; what is set up at every boot comes after it.
func TestManager(t *testing.T) {
	t.Parallel()
	f, node := newFake(t)
	f.put("usr/lib/systemd/system/NetworkManager.service", "")
	var reloads []int // addresses of the rail at each
	fails, held := true, 2
	node.Held = func(_ context.Context, netdev string) (bool, error) {
		if netdev != "ens4" {
			t.Errorf("asked for %s", netdev)
		}
		held--
		return held > 0, nil
	}
	node.Reload = func(ctx context.Context) error {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("no deadline")
		}
		reloads = append(reloads, len(f.addresses["ens4"]))
		if fails {
			return errors.New("NetworkManager is not running")
		}
		return nil
	}
	if r := node.Apply(t.Context(), rail("10.77.16.11/24")); r.Error == nil || !strings.Contains(r.Error.Text, "NetworkManager does not read /etc/NetworkManager/conf.d/20-ironrail-rails.conf: NetworkManager is not running") || f.writes != 0 {
		t.Errorf("%+v, %d writes", r, f.writes)
	}
	fails = false
	if r := node.Apply(t.Context(), rail("10.77.16.11/24")); held != 0 || !r.Conforms || !slices.Equal(reloads, []int{0, 0}) {
		t.Errorf("%+v, reloads %v", r, reloads)
	}
	for name, want := range map[string]string{
		"etc/NetworkManager/conf.d/20-ironrail-rails.conf": "[keyfile]\nunmanaged-devices+=mac:52:54:00:77:10:11\n",
		"etc/systemd/system/ironrail-roce.service":         "After=NetworkManager.service systemd-modules-load.service\n",
	} {
		if b, err := os.ReadFile(filepath.Join(f.dir, name)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if _, err := os.Stat(filepath.Join(f.dir, networkDir)); err == nil {
		t.Error("files of systemd-networkd are there")
	}
	if r := node.Apply(t.Context(), rail("10.77.16.11/24")); !r.Conforms || len(r.Changed) > 0 || len(reloads) != 2 {
		t.Errorf("again: %+v, reloads %v", r, reloads)
	}
	fine := node
	if err := os.Remove(filepath.Join(f.dir, managerFile)); err != nil {
		t.Fatal(err)
	}
	node.Held = func(context.Context, string) (bool, error) { return false, errors.New("no such device") }
	if r := node.Apply(t.Context(), rail("10.77.16.11/24")); r.Error == nil || !strings.Contains(r.Error.Text, "whether it holds ens4: no such device") || len(reloads) != 3 {
		t.Errorf("not known: %+v, reloads %v", r, reloads)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	node.Held = func(context.Context, string) (bool, error) { return true, nil }
	if r := node.Apply(ctx, rail("10.77.16.11/24")); r.Error == nil || !strings.Contains(r.Error.Text, "NetworkManager still holds ens4") || r.Error.Action == "" || len(reloads) != 4 {
		t.Errorf("held: %+v, reloads %v", r, reloads)
	}
	if _, err := os.Stat(filepath.Join(f.dir, managerFile)); err == nil {
		t.Error("the next time NetworkManager would not be asked again")
	}
	node = fine
	if held = 2; !node.Apply(t.Context(), rail("10.77.16.11/24")).Conforms || len(reloads) != 5 {
		t.Errorf("reloads %v", reloads)
	}
	reloads = reloads[:2]
	for _, name := range []string{"etc/NetworkManager/conf.d/20-ironrail-rails.conf", unitFile} {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.put(unitFile+"/in its place", "") // so that it cannot be written, after that of NetworkManager was
	if r := node.Apply(t.Context(), rail("10.77.16.11/24")); r.Error == nil || len(reloads) != 2 {
		t.Errorf("in the way: %+v, reloads %v", r, reloads)
	}
	if err := os.RemoveAll(filepath.Join(f.dir, unitFile)); err != nil {
		t.Fatal(err)
	}
	if r := node.Apply(t.Context(), rail("10.77.16.11/24")); !r.Conforms || len(reloads) != 3 {
		t.Errorf("resumed: %+v, reloads %v", r, reloads)
	}
	f.put("etc/NetworkManager/conf.d/20-ironrail-rails.conf", "")
	if r := node.Check(rail("10.77.16.11/24")); r.Conforms || !strings.Contains(strings.Join(r.Problems, " "), "20-ironrail-rails.conf is not as it should be") {
		t.Errorf("drift: %+v", r)
	}
}

// A changed address takes the old one away, and a rail that is no more its file.
func TestChange(t *testing.T) {
	t.Parallel()
	f, node := newFake(t)
	if r := node.Apply(t.Context(), rail("10.77.16.11/24")); !r.Conforms {
		t.Fatalf("%+v", r)
	}
	f.gid("rxe0", "3", typeV2, "ens4", gidOf(netip.MustParseAddr("10.77.17.11")))
	f.gid("rxe0", "2", "IB/RoCE v1", "ens4", gidOf(netip.MustParseAddr("10.77.17.11")))
	r := node.Apply(t.Context(), rail("10.77.17.11/24"))
	if !r.Conforms || r.Ports[0].GIDIndex != 3 {
		t.Errorf("got %+v, want GID index 3", r)
	}
	if got := f.addresses["ens4"]; len(got) != 1 || got[0].String() != "10.77.17.11/24" {
		t.Errorf("addresses %v", got)
	}
	if r := node.Apply(t.Context(), wire.RoCEParams{MTU: 1500}); !r.Conforms || !slices.Contains(r.Changed, "/etc/systemd/network/20-ironrail-rail0.network removed") {
		t.Errorf("got %+v", r)
	}
}

func TestCheckFindsDrift(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		drift func(*fake)
		want  string
	}{
		{"MTU", func(f *fake) { f.put("sys/class/net/ens4/mtu", "9000") }, "MTU is 9000, not 1500"},
		{"address", func(f *fake) { f.addresses["ens4"] = nil }, "address 10.77.16.11/24 is not there"},
		{"routing", func(f *fake) { f.routing["ens4"] = Route{} }, "routing table 100"},
		{"RDMA device", func(f *fake) { f.devices["ens4"] = "" }, "no RDMA device on ens4"},
		{"RDMA state", func(f *fake) { f.put("sys/class/infiniband/rxe0/ports/1/state", "1: DOWN") }, "RDMA port is DOWN"},
		{"GID of another interface", func(f *fake) { f.put("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/1", "ens3") }, "has no GID of type RoCE v2"},
		{"GID of the old type", func(f *fake) { f.put("sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1", "IB/RoCE v1") }, "has no GID of type RoCE v2"},
		{"link", func(f *fake) { f.put("sys/class/net/ens4/carrier", "0") }, "no link"},
		{"sysctl", func(f *fake) { f.put("proc/sys/net/ipv4/conf/all/arp_ignore", "2") }, "arp_ignore is 2, not 1"},
		{"file", func(f *fake) { f.put("etc/systemd/network/20-ironrail-rail0.network", "") }, "20-ironrail-rail0.network is not as it should be"},
		{"unit", func(f *fake) { os.Remove(filepath.Join(f.dir, unitWanted)) }, "not set up at boot"},
		{"NIC", func(f *fake) { os.Remove(filepath.Join(f.dir, "sys/class/net/ens4")) }, "no network interface at PCI 0000:00:04.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, node := newFake(t)
			p := rail("10.77.16.11/24")
			if r := node.Apply(t.Context(), p); !r.Conforms {
				t.Fatalf("%+v", r)
			}
			c.drift(f)
			writes := f.writes
			r := node.Check(p)
			all := slices.Concat(r.Problems, r.Ports[0].Problems)
			if r.Conforms || !strings.Contains(strings.Join(all, "\n"), c.want) || f.writes != writes {
				t.Errorf("got %q, want %q", all, c.want)
			}
		})
	}
}

func TestUp(t *testing.T) {
	t.Parallel()
	f, node := newFake(t)
	if r := node.Up(t.Context()); r.Error == nil || r.Error.Kind != "not-found" {
		t.Errorf("without saved rails: %+v", r)
	}
	p := rail("10.77.16.11/24")
	node.Apply(t.Context(), p)
	maps.DeleteFunc(f.addresses, func(string, []netip.Prefix) bool { return true }) // a boot
	maps.DeleteFunc(f.devices, func(string, string) bool { return true })
	if r := node.Up(t.Context()); !r.Conforms {
		t.Errorf("after a boot: %+v", r)
	}
}

// TestSeveralNetdevs: of two interfaces at one PCI function the one with the MAC is the
// rail; where neither has it, none is.
func TestSeveralNetdevs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ mac, want string }{
		"the MAC tells":       {"52:54:00:77:10:12", "ens4r0"},
		"neither has the MAC": {"52:54:00:77:10:99", ""},
		"no MAC is known":     {"00:00:00:00:00:00", ""},
	} {
		f, node := newFake(t)
		f.nic("ens4r0", "0000:00:04.0", "52:54:00:77:10:12")
		p := rail("10.77.16.11/24")
		mac, err := addr.ParseMAC(c.mac)
		if err != nil {
			t.Fatal(err)
		}
		p.Ports[0].MAC = mac
		result := node.Apply(t.Context(), p)
		if c.want != "" {
			if result.Error != nil || result.Ports[0].Netdev != c.want || len(f.addresses["ens4"]) > 0 {
				t.Errorf("%s: %+v, %+v", name, result.Error, result.Ports)
			}
			continue
		}
		if result.Error == nil || !strings.Contains(result.Error.Text, "ens4 (52:54:00:77:10:11), ens4r0 (52:54:00:77:10:12)") || f.writes > 0 {
			t.Errorf("%s: error %+v, %d writes", name, result.Error, f.writes)
		}
		if r := node.Check(p); r.Conforms || len(r.Ports) != 1 || len(r.Ports[0].Problems) != 1 || !strings.Contains(r.Ports[0].Problems[0], "ens4r0") {
			t.Errorf("%s: check %+v", name, r)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(*wire.RoCEParams)
	}{
		{"no MTU", func(p *wire.RoCEParams) { p.MTU = 0 }},
		{"address", func(p *wire.RoCEParams) { p.Ports[0].Address = "10.0.0.1" }},
		{"gateway", func(p *wire.RoCEParams) { p.Ports[0].Gateway = "x" }},
		{"two of one rail", func(p *wire.RoCEParams) { p.Ports = append(p.Ports, p.Ports[0]) }},
		{"main table", func(p *wire.RoCEParams) { p.Ports[0].Table = 254 }},
		{"software RDMA", func(p *wire.RoCEParams) { p.Ports[0].SoftwareRDMA = "siw" }},
		{"nowhere", func(p *wire.RoCEParams) { p.Ports[0].PCI, p.Ports[0].MAC = "", addr.MAC{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := rail("10.77.16.11/24")
			c.spoil(&p)
			if _, err := parse(p); err == nil {
				t.Error("was taken")
			}
		})
	}
}

// At 9000 all of 4096 fits; at 1500 only 1024; the lab saw exactly that.
func TestRDMAMTU(t *testing.T) {
	t.Parallel()
	for mtu, want := range map[int]int{9000: 4096, 4200: 4096, 4191: 2048, 1500: 1024, 576: 256, 300: 0} {
		if got := rdmaMTU(mtu); got != want {
			t.Errorf("MTU %d: got %d, want %d", mtu, got, want)
		}
	}
}
