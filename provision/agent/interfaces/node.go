// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Node is the node that runs.
type Node struct {
	FS   sysfs.FS                                         // its root
	Root func() (rootfs.Root, error)                      // opens the same root for writing files
	Link func(string, int) error                          // sets the MTU of an interface, bytes, and brings it up
	Run  func(context.Context, ...string) ([]byte, error) // a program of the node; its standard output

	Addresses func(netdev string) ([]netip.Prefix, error) // that an interface has
}

// settle is how long members of a bond may take until they carry packets: a switch that
// answers slowly sends a LACPDU every 30 s (IEEE 802.1AX, slow periodic time), and one
// that was just brought up some seconds later.
const settle = 45 * time.Second

// lookEvery is how long members that do not carry packets yet are left alone between two looks.
const lookEvery = 200 * time.Millisecond

// Look says how the interfaces are and changes nothing.
func (n Node) Look(p wire.NetworkParams) wire.NetworkResult {
	if err := Check(p); err != nil {
		return failed(err)
	}
	r := wire.NetworkResult{Conforms: true}
	add := func(l wire.InterfaceState) {
		for i, text := range l.Problems {
			l.Problems[i] = l.Name + ": " + text
		}
		r.Conforms = r.Conforms && len(l.Problems) == 0
		r.Links = append(r.Links, l)
	}
	netdevs := map[string]string{} // of ports and bonds by their names
	for _, b := range p.Bonds {
		add(n.lookAtBond(b))
		netdevs[b.Name] = b.Name
	}
	for _, q := range p.Ports {
		found, err := find(n.FS, q)
		if err != nil {
			add(wire.InterfaceState{Name: q.Name, Problems: []string{err.Error()}})
			continue
		}
		found.VLANs = vlansOver(p.VLANs, q.Name)
		netdevs[q.Name] = found.Netdev
		l := wire.InterfaceState{Name: q.Name, Netdev: found.Netdev}
		b, member := bondOf(p.Bonds, q.Name)
		if member {
			l.Problems = n.lookAtMember(found, b)
			l.Bonding = len(l.Problems) > 0
		}
		n.lookAtMTU(&l, q.MTU, n.fileOf(found, member))
		add(l)
	}
	for _, v := range p.VLANs {
		add(n.lookAtVLAN(v, netdevs))
	}
	if p.IPv6 != nil {
		own, _ := Layout{VLANs: p.VLANs}.bootVLAN()
		add(n.lookAtIPv6(*p.IPv6, own.Name))
	}
	return r
}

// lookAtMTU compares an MTU as it is and as it will be at boot; 0: nothing is said of it.
func (n Node) lookAtMTU(l *wire.InterfaceState, want int, f File) {
	l.MTU = int(n.FS.Int("sys/class/net", l.Netdev, "mtu"))
	if want == 0 {
		return
	}
	problem := func(format string, args ...any) { l.Problems = append(l.Problems, fmt.Sprintf(format, args...)) }
	if l.MTU != want {
		problem("the MTU of %s is %d, not %d", l.Netdev, l.MTU, want)
	}
	switch {
	case f.Name == "":
		problem("no file of ironrail sets up %s at boot: somebody else does on this node", l.Netdev)
	case string(n.FS.Bytes(f.Name)) != f.Text:
		problem("/%s does not set an MTU of %d at boot", f.Name, want)
	}
}

// Set gives the interfaces their MTU, now and at every boot, and says how they are then.
// What is so already is not touched. It changes nothing on a node whose boot NIC is not
// set up by a file of ironrail: somebody else does that there. Bonds are made by an
// installation alone; their members are given time to come up.
func (n Node) Set(ctx context.Context, p wire.NetworkParams) wire.NetworkResult {
	l, err := Find(n.FS, p)
	if err != nil {
		return failed(err)
	}
	root, err := n.Root()
	if err != nil {
		return failed(err)
	}
	defer root.Close()
	var done changes
	if err := n.setAll(root, l, &done); err != nil {
		return failed(err)
	}
	if err := n.reload(ctx, len(done) > 0); err != nil {
		return failed(err)
	}
	r := n.Look(p)
	for until := time.Now().Add(settle); (len(p.Bonds) > 0 || len(p.VLANs) > 0 || p.IPv6 != nil) && !r.Conforms && time.Now().Before(until) && (clock.Wall{}).Sleep(ctx, lookEvery) == nil; {
		r = n.Look(p)
	}
	r.Changed = done
	return r
}

// reload has what sets the interfaces up read its files, where they were changed and it
// does not by itself. Nothing of it touches an interface.
func (n Node) reload(ctx context.Context, changed bool) error {
	switch {
	case !changed:
	case n.usesNetplan():
		if _, err := n.Run(ctx, "netplan", "generate"); err != nil {
			return errkind.New(errkind.Refused, "netplan does not take /%s: %w", NetplanFile, err).Do("Look at the other files in /etc/netplan on the node: what they say is merged with it.")
		}
	case n.usesManager():
		if _, err := n.Run(ctx, "nmcli", "connection", "reload"); err != nil {
			return errkind.New(errkind.Refused, "NetworkManager does not read its changed profiles: %w", err).Do("Look at `systemctl status NetworkManager` on the node.")
		}
	}
	return nil
}

// setAll sets bonds before their members, which get the MTU of the bond from the kernel.
func (n Node) setAll(root rootfs.Root, l Layout, done *changes) error {
	for _, b := range l.Bonds {
		if b.MTU == 0 || !n.FS.Exists("sys/class/net", b.Name) {
			continue
		}
		if err := n.set(root, b.Name, b.Name, b.MTU, n.bondFile(b), done); err != nil {
			return err
		}
	}
	for _, q := range l.Ports {
		if q.MTU == 0 {
			continue
		}
		_, member := bondOf(l.Bonds, q.Name)
		if err := n.set(root, q.Name, q.Netdev, q.MTU, n.fileOf(q, member), done); err != nil {
			return err
		}
	}
	for _, v := range l.VLANs { // after what they are on, which limits them
		if !n.FS.Exists("sys/class/net", v.Name) {
			continue
		}
		if err := n.set(root, v.Name, v.Name, v.MTU, n.vlanFile(v), done); err != nil {
			return err
		}
	}
	return nil
}

// changes collects what was changed, in words.
type changes []string

// set gives one interface its MTU, now and by its file.
func (n Node) set(root rootfs.Root, name, netdev string, mtu int, f File, done *changes) error {
	if f.Name == "" {
		return nil
	}
	if string(n.FS.Bytes(f.Name)) != f.Text {
		if err := rootfs.WriteText(root, f.Name, f.Text, f.Mode); err != nil {
			return err
		}
		*done = append(*done, "/"+f.Name)
	}
	if int(n.FS.Int("sys/class/net", netdev, "mtu")) == mtu {
		return nil
	}
	if err := n.Link(netdev, mtu); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*done = append(*done, fmt.Sprintf("%s: MTU %d", netdev, mtu))
	return nil
}

// fileOf is the file of a port as it is to be; it has no name where ironrail does not set
// up the interfaces of this node.
func (n Node) fileOf(p Port, member bool) File {
	if n.usesNetplan() {
		return n.netplanFileOf(p, member)
	}
	own, mine := networkdPort(p), "\nMACAddress="+p.MAC.String()+"\n"
	if n.usesManager() {
		own, mine = managerPort(p), "\nmac-address="+strings.ToUpper(p.MAC.String())+"\n"
	}
	boot := n.bootFile()
	switch {
	case boot.Text == "":
		return File{}
	case strings.Contains(boot.Text, mine):
		return n.edited(boot, p.MTU)
	case member: // what else it says is the installation's
		return n.edited(own, p.MTU)
	}
	return own
}

// bondFile is the file of a bond as it is to be, as fileOf has it.
func (n Node) bondFile(b wire.NetworkBond) File {
	if n.usesNetplan() {
		return n.netplanFile(b.Name, b.MTU, netplanSection{})
	}
	own, mine := File{NetworkdPrefix + "bond-" + b.Name + ".network", "", 0o644}, "\nName="+b.Name+"\n"
	if n.usesManager() {
		own, mine = File{ManagerPrefix + "bond-" + b.Name + ".nmconnection", "", 0o600}, "\ninterface-name="+b.Name+"\n"
	}
	if boot := n.bootFile(); strings.Contains(boot.Text, mine) {
		own = boot
	}
	return n.edited(own, b.MTU)
}

// bootFile is the file with the addresses of the node.
func (n Node) bootFile() File {
	f := File{NetworkdPrefix + "boot.network", "", 0o644}
	if n.usesManager() {
		f = File{ManagerPrefix + "boot.nmconnection", "", 0o600}
	}
	f.Text = string(n.FS.Bytes(f.Name))
	return f
}

// edited is a file that is there with an MTU; one that is not has no name.
func (n Node) edited(f File, mtu int) File {
	text := string(n.FS.Bytes(f.Name))
	if text == "" {
		return File{}
	}
	if f.Text = withLinkMTU(text, mtu); n.usesManager() {
		f.Text = withProfileMTU(text, mtu)
	}
	return f
}

func (n Node) usesManager() bool {
	return HasManager(n.FS)
}

// failed is a result that is only an error.
func failed(err error) wire.NetworkResult {
	return wire.NetworkResult{Error: &wire.TaskError{Kind: errkind.Of(err).String(), Text: err.Error(), Action: errkind.Action(err)}}
}
