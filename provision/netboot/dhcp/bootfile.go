// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// Policy is what a server says about itself in every reply.
type Policy struct {
	Address  netip.Addr // server identifier and siaddr
	HTTPPort uint16
	Lease    uint32          // seconds; 0xffffffff is forever
	Loaders  map[string]bool // names of the loaders that there are
	Chain    *Chain          // memory of forced chains; nil: none is forced
	Relays   []netip.Addr    // relay agents that are answered, beside the gateway of the client's network
	AnyRelay bool            // all relay agents are
}

// loaders is the first program for each architecture. UEFI gets snponly.efi,
// which uses the firmware's own driver: iPXE's native ones break on several
// NICs (Broadcom, 82599, ConnectX-4 and -5).
var loaders = map[Arch]struct {
	name string
	http bool // by URL, not by TFTP
}{
	ArchBIOS:      {loader.Undionly, false},
	ArchX64:       {loader.SNPOnly, false},
	ArchEBC:       {loader.SNPOnly, false},
	ArchX64HTTP:   {loader.SNPOnly, true},
	ArchARM64:     {loader.SNPARM64, false},
	ArchARM64HTTP: {loader.SNPARM64, true},
}

// maxFile is what fits the file field with its final zero (RFC 2131 section 2);
// firmware that reads only that field cannot take a longer URL.
const maxFile = 127

// bootFile names what the client loads next: a TFTP file name or a URL. Empty
// without an error means that this client boots nothing from us. forced is
// whether iPXE of a ROM is to load undionly.kpxe first.
func (p Policy) bootFile(c boot.Client, cl Class, mac addr.MAC, forced bool) (string, error) {
	if c.Kind == boot.BMC || !cl.Boots() {
		return "", nil
	}
	if cl.IPXE && !forced {
		return p.url("/boot/" + dashMAC(mac) + "/script.ipxe"), nil
	}
	if !cl.HasArch {
		return "", fmt.Errorf("the firmware did not say its architecture (option 93)")
	}
	l, ok := loaders[cl.Arch]
	if !ok {
		return "", fmt.Errorf("there is no boot program for %s", cl.Arch)
	}
	if !p.Loaders[l.name] {
		return "", fmt.Errorf("the loader %s for %s is not installed on the controller", l.name, cl.Arch)
	}
	if !l.http {
		return l.name, nil
	}
	u := p.url("/loader/" + l.name)
	if len(u) > maxFile {
		return "", fmt.Errorf("the URL of the loader has %d characters and firmware takes %d", len(u), maxFile)
	}
	return u, nil
}

// url makes a URL of ours. The address is a literal: iPXE started by UEFI HTTP
// boot may have no resolver.
func (p Policy) url(path string) string {
	return "http://" + netip.AddrPortFrom(p.Address, p.HTTPPort).String() + path
}

// dashMAC writes a MAC without colons, which some firmware takes for a port.
func dashMAC(m addr.MAC) string { return strings.ReplaceAll(m.String(), ":", "-") }
