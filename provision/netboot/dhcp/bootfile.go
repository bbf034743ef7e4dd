// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
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
	Untagged string          // version of a snponly.efi that sends untagged frames whatever the firmware does; "": it does not, or nobody knows
	Chain    *Chain          // memory of forced chains; nil: none is forced
	Relays   []netip.Addr    // relay agents that are answered, beside the gateway of the client's network
	AnyRelay bool            // all relay agents are
	Proxy    bool            // another server gives the addresses of networks that are not in Networks: ProxyDHCP
	// WrongPort says why a client that asks through a relay agent is at a port that is not
	// its own; "" where it is, or where nobody knows. Nil: nobody does.
	WrongPort func(boot.Client, Asked) string
	Networks  []Network // that clients ask from; others are not compared with the address of a client

	room *room // of the replies of one reader; nil: each is new
}

// loaders are the first programs for each architecture; the first that is there is
// taken. UEFI x64 gets snponly.efi, which uses the firmware's own driver: iPXE's native
// ones break on several NICs (Broadcom, 82599, ConnectX-4 and -5). UEFI arm64 gets shim,
// and behind it GRUB, which uses the firmware's driver too: Debian's iPXE has no snponly
// for arm64.
var loaders = map[Arch]bootProgram{
	ArchBIOS:      {[]string{loader.Undionly}, false},
	ArchX64:       {[]string{loader.SNPOnly}, false},
	ArchEBC:       {[]string{loader.SNPOnly}, false},
	ArchX64HTTP:   {[]string{loader.SNPOnly}, true},
	ArchARM64:     {[]string{loader.ShimARM64, loader.SNPARM64}, false},
	ArchARM64HTTP: {[]string{loader.ShimARM64, loader.SNPARM64}, true},
}

// bootProgram is what firmware of one architecture loads first.
type bootProgram struct {
	names []string
	http  bool // by URL, not by TFTP
}

// signed are the first programs of nodes with Secure Boot: firmware refuses all others, as
// Microsoft signs no iPXE that Debian has.
var signed = map[Arch]bootProgram{
	ArchX64:       {[]string{loader.ShimX64}, false},
	ArchX64HTTP:   {[]string{loader.ShimX64}, true},
	ArchARM64:     {[]string{loader.ShimARM64}, false},
	ArchARM64HTTP: {[]string{loader.ShimARM64}, true},
}

// programOf is the first program of a client.
func programOf(c boot.Client, a Arch) (bootProgram, error) {
	l, ok := loaders[a]
	if c.SecureBoot {
		if l, ok = signed[a]; !ok {
			return l, fmt.Errorf("%s boots without Secure Boot, and secure_boot of its hardware is true: set its boot mode to UEFI, without a CSM", a)
		}
		l.names = []string{loader.In(c.Signed, l.names[0])}
	}
	if !ok {
		return l, fmt.Errorf("there is no boot program for %s", a)
	}
	return l, nil
}

// tagged says why a program does not boot a client whose firmware tags frames; nil where it does, or
// where nothing is tagged. iPXE's snponly.efi behind PXE alone is known to: it makes a VLAN
// interface by the device path, but for that of EDK2's HTTP boot. GRUB 2.12 behind shim was started on a VLAN and sent nothing.
func (p Policy) tagged(c boot.Client, a Arch, l bootProgram) error {
	switch {
	case c.VLAN == 0:
		return nil
	case a == ArchBIOS:
		return fmt.Errorf("%s boots, whose frames have no tag, and its boot network has vlan = %d: set its boot mode to UEFI, with that VLAN for the NIC; or make the port an untagged member, and remove vlan", a, c.VLAN)
	case l.http && l.names[0] == loader.SNPOnly:
		return fmt.Errorf("its boot network has vlan = %d, and iPXE sends untagged frames behind HTTP boot: have its firmware boot by PXE", c.VLAN)
	case l.names[0] != loader.SNPOnly:
		return fmt.Errorf("its boot network has vlan = %d, and %s sends nothing on a VLAN: make the port an untagged member, and remove vlan", c.VLAN, l.names[0])
	case p.Untagged != "":
		return fmt.Errorf("its boot network has vlan = %d, and the iPXE of this controller, %s, sends untagged frames: install the package ipxe of Debian 13, or another iPXE since 2023, and start ironrail again", c.VLAN, p.Untagged)
	}
	return nil
}

// has reports whether a loader is there, with what it loads in turn.
func (p Policy) has(name string) bool {
	behind := loader.Behind(name)
	return p.Loaders[name] && (behind == "" || p.Loaders[behind])
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
	if cl.IPXE && c.SecureBoot {
		return "", fmt.Errorf("iPXE runs, which Secure Boot refuses, and secure_boot of its hardware is true: switch Secure Boot on in the firmware, and the NIC's own iPXE off")
	}
	if cl.IPXE && !forced {
		return p.url("/boot/" + dashMAC(mac) + "/script.ipxe"), nil
	}
	if !cl.HasArch {
		return "", fmt.Errorf("the firmware did not say its architecture (option 93)")
	}
	l, err := programOf(c, cl.Arch)
	if err != nil {
		return "", err
	}
	if err := p.tagged(c, cl.Arch, l); err != nil {
		return "", err
	}
	n := slices.IndexFunc(l.names, p.has)
	if n < 0 {
		return "", fmt.Errorf("the loader %s for %s is not on the controller%s", l.names[0], cl.Arch, wayTo(l.names[0]))
	}
	if !l.http {
		return l.names[n], nil
	}
	u := p.url("/loader/" + l.names[n])
	if len(u) > maxFile {
		return "", fmt.Errorf("the URL of the loader has %d characters and firmware takes %d", len(u), maxFile)
	}
	return u, nil
}

// wayTo says what brings a loader; "" for those of the package ipxe.
func wayTo(name string) string {
	switch path.Base(name) {
	case loader.ShimARM64:
		return ": an image of kind debian for arm64 brings it"
	case loader.ShimX64:
		return ": an image of its distribution brings it that is built for nodes with secure_boot"
	}
	return ""
}

// url makes a URL of ours. The address is a literal: iPXE started by UEFI HTTP
// boot may have no resolver.
func (p Policy) url(path string) string {
	return "http://" + netip.AddrPortFrom(p.Address, p.HTTPPort).String() + path
}

// dashMAC writes a MAC without colons, which some firmware takes for a port.
func dashMAC(m addr.MAC) string { return strings.ReplaceAll(m.String(), ":", "-") }
