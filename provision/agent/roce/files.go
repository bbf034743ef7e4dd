// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// Where the settings are kept, below the root of the node.
const (
	savedFile  = "etc/ironrail/roce.json"
	sysctlFile = "etc/sysctl.d/90-ironrail-roce.conf"
	unitFile   = "etc/systemd/system/ironrail-roce.service"
	unitWanted = "etc/systemd/system/multi-user.target.wants/ironrail-roce.service"
	networkDir = "etc/systemd/network"
	networkPre = "20-ironrail-rail"

	managerFile = "etc/NetworkManager/conf.d/20-ironrail-rails.conf"
)

const written = "# Written by ironrail; the fabric step of the node makes it again.\n"

// networkd is the service of systemd that sets interfaces up, in unit.
const networkd = "systemd-networkd.service"

const unit = written + `[Unit]
Description=RDMA devices and routes of the rails (ironrail)
After=` + networkd + ` systemd-modules-load.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/ironrail-agent roce up

[Install]
WantedBy=multi-user.target
`

// settings of the IPv4 stack: with several rails on one node, each interface
// answers ARP for its own address only, and replies may leave by another one.
var settings = []struct{ name, value string }{
	{"arp_ignore", "1"},
	{"arp_announce", "2"},
	{"rp_filter", "2"},
}

// files returns every file that makes the rails come back after a boot.
func (n Node) files(p wire.RoCEParams, ports []port) map[string]string {
	saved, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		saved = nil // cannot be: plain data
	}
	sysctl := written
	for _, s := range settings {
		for _, which := range []string{"all", "default"} {
			sysctl += fmt.Sprintf("net.ipv4.conf.%s.%s = %s\n", which, s.name, s.value)
		}
	}
	files := map[string]string{savedFile: string(saved) + "\n", sysctlFile: sysctl, unitFile: unit}
	if n.managed() {
		files[unitFile] = strings.Replace(unit, networkd, "NetworkManager.service", 1)
		files[managerFile] = n.unmanaged(ports)
		return files
	}
	for _, q := range ports {
		files[fmt.Sprintf("%s/%s%d.network", networkDir, networkPre, q.Rail)] = n.network(p.MTU, q)
	}
	return files
}

// managed reports whether NetworkManager sets the interfaces of the node up.
func (n Node) managed() bool { return interfaces.HasManager(n.FS) }

// unmanaged is the file by which NetworkManager leaves the rails alone (NetworkManager.conf(5)):
// the unit sets them up at every boot, with routes and an RDMA device that it would not know.
func (n Node) unmanaged(ports []port) string {
	var macs []string
	for _, q := range ports {
		macs = append(macs, "mac:"+n.macOf(q))
	}
	return written + "[keyfile]\nunmanaged-devices+=" + strings.Join(macs, ";") + "\n"
}

// macOf is the MAC of the port that is really in the slot, else the one that is expected.
func (n Node) macOf(q port) string {
	if netdev := n.netdev(q); netdev != "" {
		return n.FS.Text("sys/class/net", netdev, "address")
	}
	return q.MAC.String()
}

// network is the file for systemd-networkd. It matches by MAC, since names
// change; Type keeps VLANs and bridges on top out.
func (n Node) network(mtu int, q port) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s[Match]\nMACAddress=%s\nType=ether\n\n[Link]\nMTUBytes=%d\nRequiredForOnline=no\n\n", written, n.macOf(q), mtu)
	fmt.Fprintf(&b, "[Network]\nDHCP=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\nAddress=%s\n", q.address)
	if q.Table == 0 {
		return b.String()
	}
	r := Route{Table: q.Table}
	fmt.Fprintf(&b, "\n[RoutingPolicyRule]\nFrom=%s\nTable=%d\nPriority=%d\n", q.address.Addr(), q.Table, r.Priority())
	fmt.Fprintf(&b, "\n[Route]\nDestination=%s\nScope=link\nPreferredSource=%s\nTable=%d\n", q.address.Masked(), q.address.Addr(), q.Table)
	if q.gateway.IsValid() {
		fmt.Fprintf(&b, "\n[Route]\nGateway=%s\nTable=%d\n", q.gateway, q.Table)
	}
	return b.String()
}

// persist writes the files that are not so yet and removes those of rails that
// are no more.
func (n Node) persist(p wire.RoCEParams, ports []port, done *changes) error {
	root, err := n.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	files := n.files(p, ports)
	for _, name := range sorted(files) {
		if n.text(name) == files[name] {
			continue
		}
		if err := rootfs.WriteText(root, name, files[name], 0o644); err != nil {
			return err
		}
		*done = append(*done, "/"+name)
	}
	for _, name := range n.staleFiles(files) {
		if err := rootfs.Remove(root, name); err != nil {
			return err
		}
		*done = append(*done, "/"+name+" removed")
	}
	if n.FS.Target(unitWanted) != "/"+unitFile {
		if err := rootfs.Link(root, "/"+unitFile, unitWanted); err != nil {
			return err
		}
		*done = append(*done, "/"+unitWanted)
	}
	return nil
}

// reload has NetworkManager read which interfaces are not its own, before anything is set up on
// them. Where all files were there already, it has read them: a file that could not be written ends
// Apply before.
func (n Node) reload(ctx context.Context, ports []port, done changes) error {
	if n.Reload == nil || !n.managed() || len(done) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	again := func() { // the next Apply has it read once more
		if root, err := n.Root(); err == nil {
			_ = rootfs.Remove(root, managerFile)
			_ = root.Close()
		}
	}
	if err := n.Reload(ctx); err != nil {
		again()
		return errkind.New(errkind.Refused, "NetworkManager does not read /%s: %w", managerFile, err).Do("Look at `systemctl status NetworkManager` on the node.")
	}
	for _, q := range ports {
		if err := n.waitReleased(ctx, n.netdev(q)); err != nil {
			again()
			return err
		}
	}
	return nil
}

// waitReleased waits until NetworkManager has let go of an interface, which it does some time after it
// has read that it is none of its own: it takes the link down and its addresses away with that, and would take
// those that are set meanwhile.
func (n Node) waitReleased(ctx context.Context, netdev string) error {
	for n.Held != nil && netdev != "" {
		held, err := n.Held(ctx, netdev)
		if err != nil && ctx.Err() == nil {
			return errkind.New(errkind.Refused, "NetworkManager does not say whether it holds %s: %w", netdev, err).Do("Look at `nmcli device` on the node.")
		}
		if err == nil && !held {
			return nil
		}
		if (clock.Wall{}).Sleep(ctx, lookEvery) != nil {
			return errkind.New(errkind.Refused, "NetworkManager still holds %s, which /%s takes away from it: what is set up on it would not stay", netdev, managerFile).
				Do(fmt.Sprintf("Look at `nmcli device show %s` and `ethtool -P %s` on the node: the file names the NIC by the address that it was made with.", netdev, netdev))
		}
	}
	return nil
}

// staleFiles returns our files of rails that are not among files.
func (n Node) staleFiles(files map[string]string) []string {
	var stale []string
	for _, name := range n.FS.Names(networkDir) {
		full := networkDir + "/" + name
		if _, wanted := files[full]; strings.HasPrefix(name, networkPre) && !wanted {
			stale = append(stale, full)
		}
	}
	return stale
}

// filesProblems compares the files with what they should be.
func (n Node) filesProblems(p wire.RoCEParams, ports []port) []string {
	var problems []string
	files := n.files(p, ports)
	for _, name := range sorted(files) {
		if n.text(name) != files[name] {
			problems = append(problems, "/"+name+" is not as it should be")
		}
	}
	for _, name := range n.staleFiles(files) {
		problems = append(problems, "/"+name+" is of a rail that is no more")
	}
	if n.FS.Target(unitWanted) != "/"+unitFile {
		problems = append(problems, "the rails are not set up at boot: no /"+unitWanted)
	}
	return problems
}

// text returns a file as it is, untrimmed.
func (n Node) text(name string) string { return string(n.FS.Bytes(name)) }

// setSysctl sets the IPv4 settings now, for the interface and for all: the kernel
// uses the larger of the two for these three.
func (n Node) setSysctl(netdev string) error {
	for _, s := range settings {
		for _, which := range []string{"all", netdev} {
			if err := n.Network.SetIPv4(which, s.name, s.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// sysctlProblems compares the IPv4 settings.
func (n Node) sysctlProblems(netdev string) []string {
	var problems []string
	for _, s := range settings {
		have := max(n.FS.Int("proc/sys/net/ipv4/conf/all", s.name), n.FS.Int("proc/sys/net/ipv4/conf", netdev, s.name))
		if fmt.Sprint(have) != s.value {
			problems = append(problems, fmt.Sprintf("%s is %d, not %s", s.name, have, s.value))
		}
	}
	return problems
}

// sorted returns the keys of files in order.
func sorted(files map[string]string) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
