// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/netip"
)

// ownInterface is a network interface of the manager (DMTF DSP0268, EthernetInterface), with what
// is read of it.
type ownInterface struct {
	IPv4Addresses, IPv6Addresses []struct{ Address text }
	VLAN                         *struct {
		VLANEnable *bool
		VLANId     number //nolint:revive // the schema's spelling
	}
}

// has reports whether an address is the interface's.
func (o ownInterface) has(a netip.Addr) bool {
	for _, x := range append(o.IPv4Addresses, o.IPv6Addresses...) {
		if b, err := netip.ParseAddr(string(x.Address)); err == nil && b.Unmap() == a.Unmap() {
			return true
		}
	}
	return false
}

// VLAN reads which VLAN the manager's interface tags its frames with: of that with the address
// that it is reached by, or of the only one. 0: they are untagged. One that shows no VLAN, or
// several interfaces of which none has the address, is an error of kind Unsupported.
func (c *Client) VLAN(ctx context.Context) (int, error) {
	p, err := c.where(ctx)
	if err != nil {
		return 0, err
	}
	if p.manager == "" {
		return 0, unsupported("manager of its own")
	}
	var manager struct{ EthernetInterfaces link }
	if _, err := c.get(ctx, p.manager, &manager); err != nil {
		return 0, err
	}
	all, err := c.members(ctx, string(manager.EthernetInterfaces.or(p.manager+"/EthernetInterfaces")), maxNICs)
	if err != nil {
		if ignoreUnsupported(err) == nil {
			err = unsupported("network interface of its own")
		}
		return 0, err
	}
	var seen []ownInterface
	for _, l := range all {
		var o ownInterface
		if _, err := c.get(ctx, string(l), &o); err != nil {
			if ignoreUnsupported(err) != nil {
				return 0, err
			}
			continue
		}
		if o.has(c.cfg.Addr.Addr()) {
			return o.vlan()
		}
		seen = append(seen, o)
	}
	if len(seen) != 1 {
		return 0, unsupported("network interface with the address that it is reached by")
	}
	return seen[0].vlan()
}

// vlan is the ID of the interface's VLAN; 0: its frames are untagged.
func (o ownInterface) vlan() (int, error) {
	switch {
	case o.VLAN == nil || o.VLAN.VLANEnable == nil:
		return 0, unsupported("VLAN of its network interface")
	case !*o.VLAN.VLANEnable:
		return 0, nil
	case o.VLAN.VLANId.value == nil:
		return 0, unsupported("VLANId of its network interface, whose VLAN is switched on")
	}
	return int(*o.VLAN.VLANId.value), nil
}
