// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/reach"
)

// learnWait bounds the look at the BMC of a new chassis; it may start yet.
const learnWait = 3 * time.Minute

// learnChassis asks the BMC of a node who the chassis is that was put in its
// place, and stages what it says for planning. The certificate that was believed
// of the old chassis is not looked at: that the operator typed a serial number,
// and that this BMC has it, is what permits to believe another one.
func (o *Request) learnChassis(ctx context.Context, r state.Reader, access reach.Access, desired *overrides.Desired) error {
	n, _ := desired.Inv.Node(o.Nodes[0])
	x := overrides.Replacement{Node: n.Name, Chassis: overrides.Chassis{Serial: o.Serial, UUID: strings.ToLower(o.UUID), BootMAC: o.BootMAC},
		Was: desired.InFiles(n.Name), By: o.By, Reason: o.Reason, At: o.At.UTC()}
	l := chassisReader{access: access, node: n, was: overrides.ChassisOf(n), x: &x}
	if err := l.readBMC(ctx, reach.Facts(r)); err != nil {
		return err
	}
	if x.BootMAC.IsZero() {
		return l.noMAC()
	}
	if err := l.claimed(); err != nil {
		return err
	}
	o.replacement, o.certificate = &x, l.certificate
	for _, w := range x.Learned {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: %s", n.Name, w))
	}
	o.Notes = append(o.Notes, l.notes...)
	return nil
}

// chassisReader is the look at one new chassis.
type chassisReader struct {
	access      reach.Access // of the site as it is desired
	node        *inventory.Node
	was         overrides.Chassis // before this rebuild
	x           *overrides.Replacement
	proven      bool // the BMC has the serial number
	certificate string
	ports       []bmc.NIC
	notes       []string
}

// readBMC reads identity and NICs from the BMC.
func (l *chassisReader) readBMC(ctx context.Context, facts func(fact.Key) (fact.Fact, bool)) error {
	ctx, cancel := context.WithTimeout(ctx, learnWait)
	defer cancel()
	pin := oob.CertificateFact.Of(subject.OfNode(l.node.Name))
	b := l.access.BMCs(func(k fact.Key) (fact.Fact, bool) {
		if k == pin {
			return fact.Fact{}, false
		}
		return facts(k)
	})
	defer func() { _ = b.Pool.Close(context.WithoutCancel(ctx)) }() // a session that is left ends by itself
	t, err := b.Target(l.node, l.x.Serial)
	if err != nil {
		return err
	}
	h := b.Pool.Handle(t)
	id, err := h.Identity(ctx)
	if err != nil {
		return errkind.New(errkind.Of(err), "the BMC of %s at %s cannot be asked who its chassis is: %w", l.node.Name, l.node.BMC.Address, err).Do(errkind.Action(err))
	}
	if err := l.compare(id); err != nil {
		return err
	}
	l.certificate = h.Certificate()
	if pinned := oob.Pins(l.node); !pinned {
		l.certificate = ""
	}
	return l.nics(ctx, h)
}

// compare holds what the BMC says against what the operator typed.
func (l *chassisReader) compare(id bmc.Identity) error {
	got := strings.TrimSpace(id.Serial())
	switch {
	case got == "":
		l.notes = append(l.notes, fmt.Sprintf("%s: its BMC does not know a serial number; what the ramdisk sees has to prove who the chassis is", l.node.Name))
	case got != l.x.Serial:
		return errkind.New(errkind.Mismatch, "the BMC of %s at %s says that it sits in serial %q%s, and not in %q", l.node.Name, l.node.BMC.Address, got, l.owner(got), l.x.Serial).
			Do(fmt.Sprintf("Read the label of the chassis in rack %s unit %d again: the serial number is typed wrong, or the chassis is in another slot. Nothing was changed.", l.node.Rack.Name, l.node.Unit))
	default:
		l.proven = true
	}
	if id.GUID.IsZero() {
		return nil
	}
	if l.x.UUID != "" {
		if _, ok := id.GUID.Match(l.x.UUID); !ok {
			return errkind.New(errkind.Mismatch, "the BMC of %s says UUID %s, and not %s", l.node.Name, id.GUID, l.x.UUID).Do("Leave --uuid out, or correct it. Nothing was changed.")
		}
		return nil
	}
	// The bytes of an IPMI GUID have no certain order; a Redfish UUID is text.
	if bmc.Protocol(l.node.BMC.Protocol) == bmc.Redfish {
		l.x.UUID = id.GUID.String()
		l.x.Learned = append(l.x.Learned, fmt.Sprintf("UUID %s, from its BMC", l.x.UUID))
	}
	return nil
}

// owner names the node that a serial number is of.
func (l *chassisReader) owner(serial string) string {
	for _, n := range l.access.Inv.Nodes {
		if n.Serial == serial && n.Name != l.node.Name {
			return fmt.Sprintf(" (%s's)", n.Name)
		}
	}
	if serial == l.was.Serial {
		return " (the one that it had)"
	}
	return ""
}

// nics chooses the MAC that boots among those that the BMC shows.
func (l *chassisReader) nics(ctx context.Context, h *bmc.Handle) error {
	if !l.x.BootMAC.IsZero() {
		return nil
	}
	err := bmc.Use(ctx, h, "read the NICs", func(b bmc.NICs) (err error) {
		l.ports, err = b.NICs(ctx)
		return err
	})
	if err != nil && errkind.Of(err) != errkind.Unsupported {
		return err
	}
	if nic, ok := bootPort(l.node.Hardware, l.ports); ok {
		l.x.BootMAC = nic.MAC
		l.x.Learned = append(l.x.Learned, fmt.Sprintf("boot MAC %s, port %s of its BMC", nic.MAC, nic.ID))
	}
	return nil
}

// bootPort is the one port that can be the boot NIC: the only one, or the only one
// of its speed where the hardware block has only one of that speed.
func bootPort(h *inventory.Hardware, ports []bmc.NIC) (bmc.NIC, bool) {
	if len(ports) == 1 {
		return ports[0], true
	}
	boot, ok := h.BootNIC()
	if !ok || boot.Speed == 0 {
		return bmc.NIC{}, false
	}
	want := int(boot.Speed / 1e6)
	var fit []bmc.NIC
	for _, p := range ports {
		if p.Mbps == 0 {
			return bmc.NIC{}, false // it may be any
		}
		if p.Mbps == want {
			fit = append(fit, p)
		}
	}
	if len(fit) != 1 {
		return bmc.NIC{}, false
	}
	return fit[0], true
}

// noMAC asks for the boot MAC.
func (l *chassisReader) noMAC() error {
	do := "Give it with --boot-mac, from the label of the chassis or its firmware's setup."
	if len(l.ports) > 0 {
		var list []string
		for _, p := range l.ports {
			s := p.MAC.String() + " (port " + p.ID
			if p.Mbps > 0 {
				s += fmt.Sprintf(", %d Mbit/s", p.Mbps)
			}
			list = append(list, s+")")
		}
		slices.Sort(list)
		do = "Give it with --boot-mac; the BMC shows " + strings.Join(list, ", ") + "."
	}
	return errkind.New(errkind.Refused, "the BMC of %s does not report which MAC boots", l.node.Name).Do(do)
}

// claimed looks whether another node has the serial number or the MAC by the
// site's files. A chassis that a BMC proves may have moved from there.
func (l *chassisReader) claimed() error {
	for _, n := range l.access.Inv.Nodes {
		if n.Name == l.node.Name {
			continue
		}
		same := n.Serial == l.x.Serial
		if !same && !sameMAC(n.BootMAC, l.x.BootMAC) {
			continue
		}
		if !l.proven || !same {
			return errkind.New(errkind.Refused, "serial %s or boot MAC %s is that of %s", l.x.Serial, l.x.BootMAC, n.Name).
				Do(fmt.Sprintf("Correct what was typed; or rebuild %s first, when another chassis stands in its place.", n.Name))
		}
		l.notes = append(l.notes, fmt.Sprintf("serial %s is %s's by the site's files (%s:%d), and the BMC of %s proves that it is here: %s has another chassis, rebuild it with its serial number",
			l.x.Serial, n.Name, n.Ranges.Serial.Filename, n.Ranges.Serial.Start.Line, l.node.Name, n.Name))
	}
	return nil
}

func sameMAC(a, b addr.MAC) bool { return a == b && !a.IsZero() }
