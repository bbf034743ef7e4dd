// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"

	"github.com/ironrail/ironrail/internal/addr"
)

// NIC is a network port of the node, as its BMC shows it.
type NIC struct {
	ID   string // the BMC's own name of the port
	MAC  addr.MAC
	Mbps int // 0: not told; many tell 0 while the node is off
}

// maxNICs bounds how many ports are read one by one.
const maxNICs = 64

// NICs reads the node's network ports: the system's EthernetInterfaces, and where
// a service shows none there, the adapters of its chassis. Ports without a MAC are
// left out, and so is each MAC that was shown before. Some services show nothing
// before the node's first POST (iDRAC, HPE; see also quirk of BlueField, whose
// EthernetInterfaces are not there at all): an empty list is no error.
func (c *Client) NICs(ctx context.Context) ([]NIC, error) {
	p, err := c.where(ctx)
	if err != nil {
		return nil, err
	}
	var sys struct{ EthernetInterfaces link }
	if _, err := c.get(ctx, p.system, &sys); err != nil {
		return nil, err
	}
	out, err := c.interfaces(ctx, sys.EthernetInterfaces.or(p.system+"/EthernetInterfaces"))
	if err != nil || len(out) > 0 || p.chassis == "" {
		return out, err
	}
	var ch struct{ NetworkAdapters link }
	if _, err := c.get(ctx, p.chassis, &ch); err != nil || ch.NetworkAdapters == "" {
		return nil, ignoreUnsupported(err)
	}
	return c.adapters(ctx, string(ch.NetworkAdapters))
}

// interfaces reads a collection of EthernetInterface.
func (c *Client) interfaces(ctx context.Context, path string) (out []NIC, err error) {
	all, err := c.members(ctx, path, maxNICs)
	if err != nil {
		return nil, ignoreUnsupported(err)
	}
	for _, l := range all {
		var x struct {
			ID                              text `json:"Id"`
			MACAddress, PermanentMACAddress text
			SpeedMbps                       number
		}
		if _, err := c.get(ctx, string(l), &x); ignoreUnsupported(err) != nil {
			return out, err
		}
		mac := x.PermanentMACAddress
		if mac == "" {
			mac = x.MACAddress
		}
		out = addNIC(out, x.ID, mac, x.SpeedMbps)
	}
	return out, nil
}

// adapters reads the device functions of NetworkAdapters, and where there are
// none, their ports.
func (c *Client) adapters(ctx context.Context, path string) (out []NIC, err error) {
	all, err := c.members(ctx, path, maxNICs)
	if err != nil {
		return nil, ignoreUnsupported(err)
	}
	for _, l := range all {
		var a struct{ NetworkDeviceFunctions, Ports, NetworkPorts link }
		if _, err := c.get(ctx, string(l), &a); err != nil {
			if ignoreUnsupported(err) != nil {
				return out, err
			}
			continue
		}
		for _, of := range []link{a.NetworkDeviceFunctions, a.Ports, a.NetworkPorts} {
			had := len(out)
			if of != "" {
				if out, err = c.functions(ctx, string(of), out); err != nil {
					return out, err
				}
			}
			if len(out) > had {
				break
			}
		}
	}
	return out, nil
}

// functions reads device functions or ports, whichever schema they have.
func (c *Client) functions(ctx context.Context, path string, out []NIC) ([]NIC, error) {
	all, err := c.members(ctx, path, maxNICs)
	if err != nil {
		return out, ignoreUnsupported(err)
	}
	for _, l := range all {
		var x struct {
			ID       text `json:"Id"`
			Ethernet struct {
				MACAddress, PermanentMACAddress text
				Associated                      []text `json:"AssociatedMACAddresses"`
			}
			Associated []text `json:"AssociatedNetworkAddresses"`
		}
		if _, err := c.get(ctx, string(l), &x); ignoreUnsupported(err) != nil {
			return out, err
		}
		for _, mac := range append([]text{x.Ethernet.PermanentMACAddress, x.Ethernet.MACAddress}, append(x.Ethernet.Associated, x.Associated...)...) {
			out = addNIC(out, x.ID, mac, number{})
		}
	}
	return out, nil
}

// addNIC appends a port whose MAC can be read, is one of a NIC, and is new.
func addNIC(out []NIC, id, mac text, speed number) []NIC {
	m, err := addr.ParseMAC(string(mac))
	if err != nil || m.IsZero() || m[0]&1 != 0 {
		return out
	}
	for _, n := range out {
		if n.MAC == m {
			return out
		}
	}
	n := NIC{ID: OneLine(string(id)), MAC: m}
	if speed.value != nil && *speed.value > 0 {
		n.Mbps = int(*speed.value)
	}
	return append(out, n)
}

// ignoreUnsupported forgives what services say of resources that they have not.
func ignoreUnsupported(err error) error {
	if isStatus(err, http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest, http.StatusInternalServerError, http.StatusMethodNotAllowed, http.StatusNotImplemented) {
		return nil
	}
	return err
}
