// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

var (
	n1mac, n2mac, bmcMAC = addr.MAC{2, 0, 0, 0, 0, 1}, addr.MAC{2, 0, 0, 0, 0, 2}, addr.MAC{2, 0, 0, 0, 1, 1}
	controller           = netip.MustParseAddr("10.0.0.2")
	now                  = time.Unix(1_700_000_000, 0)
)

const n1UUID = "00112233-4455-6677-8899-aabbccddeeff"

type clients []boot.Client

func (cs clients) ByMAC(m addr.MAC) (boot.Client, bool) {
	for _, c := range cs {
		if slices.Contains(c.MACs, m) {
			return c, true
		}
	}
	return boot.Client{}, false
}
func (cs clients) ByAddress(netip.Addr) (boot.Client, bool) { return boot.Client{}, false }
func (cs clients) Attempt(string) (boot.Attempt, bool)      { return boot.Attempt{}, false }

func site() clients {
	return clients{
		{Node: "n1", MACs: []addr.MAC{n1mac}, UUID: n1UUID, Address: netip.MustParsePrefix("10.0.0.11/24"), Gateway: netip.MustParseAddr("10.0.0.1"),
			DNS: []netip.Addr{controller, netip.MustParseAddr("fd00::1")}, Domain: "site.example", Hostname: "n1"},
		{Node: "n2", MACs: []addr.MAC{n2mac}, Address: netip.MustParsePrefix("10.0.0.12/24"), ForceUndionly: true},
		{Node: "n1", Kind: boot.BMC, MACs: []addr.MAC{bmcMAC}, Address: netip.MustParsePrefix("10.0.1.11/24")},
	}
}

func rules() Policy {
	return Policy{Address: controller, HTTPPort: 80, Lease: 86400, Chain: &Chain{},
		Relays:  []netip.Addr{netip.MustParseAddr("10.0.0.254"), netip.MustParseAddr("10.0.9.1")},
		Loaders: map[string]bool{loader.Undionly: true, loader.SNPOnly: true}}
}

// ask makes a request of a client.
func ask(t dhcpv4.MessageType, mac addr.MAC, mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	p := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet, ClientHWAddr: mac.HardwareAddr(),
		TransactionID: dhcpv4.TransactionID{1, 2, 3, 4}, Options: dhcpv4.Options{}}
	p.UpdateOption(dhcpv4.OptMessageType(t))
	for _, m := range mods {
		m(p)
	}
	return p
}

func opt(code uint8, v ...byte) dhcpv4.Modifier {
	return dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(code), v)
}
func vendor(s string) dhcpv4.Modifier { return opt(60, []byte(s)...) }
func arch(a byte) dhcpv4.Modifier     { return opt(93, 0, a) }
func wants(s string) dhcpv4.Modifier  { return opt(50, net.ParseIP(s).To4()...) }
func from(s string) dhcpv4.Modifier   { return opt(54, net.ParseIP(s).To4()...) }
func uuid(s string) dhcpv4.Modifier {
	b, _ := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	return opt(97, append([]byte{0}, b...)...)
}

const (
	pxeVendor  = "PXEClient:Arch:00007:UNDI:003000"
	httpVendor = "HTTPClient:Arch:00016:UNDI:003000"
	scriptN1   = "http://10.0.0.2:80/boot/02-00-00-00-00-01/script.ipxe"
)

// TestTagged: a client whose firmware is to tag frames gets iPXE by UEFI alone, and one that tags.
func TestTagged(t *testing.T) {
	t.Parallel()
	cs := site()
	cs[0].VLAN = 30
	for _, c := range []struct {
		name, vendor string
		arch         byte
		old          string // version of iPXE
		file, detail string
	}{
		{"UEFI", pxeVendor, 7, "", "snponly.efi", "snponly.efi"},
		{"UEFI HTTP", httpVendor, 16, "", "", "iPXE sends untagged frames behind HTTP boot"},
		{"an old iPXE", pxeVendor, 7, "1.0.0+git-20190125", "", "the iPXE of this controller, 1.0.0+git-20190125, sends untagged frames"},
		{"BIOS", "PXEClient:Arch:00000:UNDI:002001", 0, "", "", "whose frames have no tag, and its boot network has vlan = 30"},
		{"arm64", pxeVendor, 11, "", "", "shimaa64.efi sends nothing on a VLAN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := rules()
			p.Untagged = c.old
			p.Loaders = map[string]bool{loader.Undionly: true, loader.SNPOnly: true, loader.ShimARM64: true, loader.GRUBARM64: true}
			d := p.Decide(cs, ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(c.vendor), arch(c.arch)), now)
			file := ""
			if d.Reply != nil {
				file = d.Reply.BootFileNameOption()
			}
			if file != c.file || !strings.Contains(d.Detail, c.detail) {
				t.Errorf("%q, %q", file, d.Detail)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const discover, request = dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest
	tests := []struct {
		name   string
		in     *dhcpv4.DHCPv4
		reply  dhcpv4.MessageType // none: no reply
		what   string
		file   string
		detail string // contained
	}{
		{"plain client gets an address only", ask(discover, n1mac), dhcpv4.MessageTypeOffer, EventOffer, "", "no boot program"},
		{"BIOS PXE", ask(discover, n1mac, vendor("PXEClient:Arch:00000:UNDI:002001"), arch(0)), dhcpv4.MessageTypeOffer, EventOffer, "undionly.kpxe", "BIOS"},
		{"BIOS PXE without option 93", ask(discover, n1mac, vendor("PXEClient:Arch:00000:UNDI:002001")), dhcpv4.MessageTypeOffer, EventOffer, "undionly.kpxe", "BIOS"},
		{"UEFI x64 as 7", ask(discover, n1mac, vendor(pxeVendor), arch(7)), dhcpv4.MessageTypeOffer, EventOffer, "snponly.efi", "UEFI x64"},
		{"UEFI x64 as 9", ask(discover, n1mac, vendor(pxeVendor), arch(9)), dhcpv4.MessageTypeOffer, EventOffer, "snponly.efi", "UEFI x64"},
		{"UEFI HTTP", ask(discover, n1mac, vendor(httpVendor), arch(16)), dhcpv4.MessageTypeOffer, EventOffer, "http://10.0.0.2:80/loader/snponly.efi", "HTTP"},
		{"iPXE by bare user class", ask(discover, n1mac, vendor(pxeVendor), arch(7), opt(77, []byte("iPXE")...)), dhcpv4.MessageTypeOffer, EventOffer, scriptN1, "iPXE"},
		{"iPXE by RFC 3004 user class", ask(discover, n1mac, vendor(pxeVendor), arch(7), opt(77, []byte("\x01x\x04iPXE")...)), dhcpv4.MessageTypeOffer, EventOffer, scriptN1, "iPXE"},
		{"iPXE by option 175", ask(discover, n1mac, vendor(pxeVendor), arch(0), opt(175, 1, 1, 1)), dhcpv4.MessageTypeOffer, EventOffer, scriptN1, "iPXE"},
		{"arm64 without a loader", ask(discover, n1mac, vendor(pxeVendor), arch(11)), 0, eventNoFile, "", "shimaa64.efi for UEFI arm64 is not on the controller: an image of kind debian for arm64 brings it"},
		{"ia32 firmware", ask(discover, n1mac, vendor(pxeVendor), arch(6)), 0, eventNoFile, "", "UEFI ia32"},
		{"unheard architecture", ask(discover, n1mac, vendor("PXEClient"), arch(200)), 0, eventNoFile, "", "architecture 200"},
		{"PXE without architecture", ask(discover, n1mac, vendor("PXEClient")), 0, eventNoFile, "", "option 93"},
		{"BMC that speaks PXE gets no program", ask(discover, bmcMAC, vendor(pxeVendor), arch(7)), dhcpv4.MessageTypeOffer, EventOffer, "", "10.0.1.11"},
		{"unknown MAC", ask(discover, addr.MAC{2, 9, 9, 9, 9, 9}, vendor(pxeVendor)), 0, eventUnknown, "", "02:09:09:09:09:09"},
		{"UUID agrees in text order", ask(discover, n1mac, uuid(n1UUID)), dhcpv4.MessageTypeOffer, EventOffer, "", ""},
		{"UUID agrees in SMBIOS order", ask(discover, n1mac, uuid("33221100-5544-7766-8899-aabbccddeeff")), dhcpv4.MessageTypeOffer, EventOffer, "", ""},
		{"UUID of zeros", ask(discover, n1mac, uuid("00000000-0000-0000-0000-000000000000")), dhcpv4.MessageTypeOffer, EventOffer, "", ""},
		{"UUID that is not present", ask(discover, n1mac, uuid("ffffffff-ffff-ffff-ffff-ffffffffffff")), dhcpv4.MessageTypeOffer, EventOffer, "", ""},
		{"UUID of a wrong length is ignored", ask(discover, n1mac, opt(97, 0, 1, 2)), dhcpv4.MessageTypeOffer, EventOffer, "", ""},
		{"UUID of another node", ask(discover, n1mac, uuid("ffffffff-4455-6677-8899-aabbccddeeff")), 0, eventUUID, "", n1UUID},
		{"selecting us", ask(request, n1mac, wants("10.0.0.11"), from("10.0.0.2")), dhcpv4.MessageTypeAck, EventAck, "", "10.0.0.11"},
		{"selecting another server", ask(request, n1mac, wants("10.0.0.11"), from("10.0.0.9")), 0, EventOtherServer, "", "10.0.0.9"},
		{"init-reboot with the right address", ask(request, n1mac, wants("10.0.0.11")), dhcpv4.MessageTypeAck, EventAck, "", ""},
		{"init-reboot with a stale address", ask(request, n1mac, wants("192.168.1.5")), dhcpv4.MessageTypeNak, eventNak, "", "192.168.1.5"},
		{"renewing", ask(request, n1mac, dhcpv4.WithClientIP(net.IP{10, 0, 0, 11})), dhcpv4.MessageTypeAck, EventAck, "", ""},
		{"renewing somebody else's", ask(request, n1mac, dhcpv4.WithClientIP(net.IP{10, 0, 0, 12})), dhcpv4.MessageTypeNak, eventNak, "", "10.0.0.12"},
		{"request for nothing", ask(request, n1mac), dhcpv4.MessageTypeNak, eventNak, "", "0.0.0.0"},
		{"request by an unknown MAC is never NAKed", ask(request, addr.MAC{2, 9, 9, 9, 9, 9}, wants("10.0.0.11")), 0, eventUnknown, "", ""},
		{"inform", ask(dhcpv4.MessageTypeInform, n1mac, dhcpv4.WithClientIP(net.IP{10, 0, 0, 11})), dhcpv4.MessageTypeAck, eventInform, "", ""},
		{"inform of another address", ask(dhcpv4.MessageTypeInform, n1mac, dhcpv4.WithClientIP(net.IP{10, 0, 0, 12})), 0, eventInform, "", "as 10.0.0.12, and 10.0.0.11 is reserved"},
		{"inform without an address", ask(dhcpv4.MessageTypeInform, n1mac), 0, eventInform, "", "as 0.0.0.0"},
		{"inform without a loader", ask(dhcpv4.MessageTypeInform, n1mac, dhcpv4.WithClientIP(net.IP{10, 0, 0, 11}), vendor(pxeVendor), arch(6)), 0, eventNoFile, "", "UEFI ia32"},
		{"release", ask(dhcpv4.MessageTypeRelease, n1mac), 0, eventRelease, "", "10.0.0.11"},
		{"decline", ask(dhcpv4.MessageTypeDecline, n1mac), 0, eventDecline, "", "another owner"},
		{"a server's message type", ask(dhcpv4.MessageTypeOffer, n1mac), 0, eventMalformed, "", ""},
		{"no message type", ask(dhcpv4.MessageTypeNone, n1mac, dhcpv4.WithoutOption(dhcpv4.OptionDHCPMessageType)), 0, eventMalformed, "", ""},
		{"multicast chaddr", ask(discover, addr.MAC{1, 0, 0, 0, 0, 1}), 0, eventMalformed, "", ""},
		{"InfiniBand", ask(discover, n1mac, dhcpv4.WithHWType(iana.HWTypeInfiniband)), 0, eventMalformed, "", "not Ethernet"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := rules().Decide(site(), tt.in, now)
			var got dhcpv4.MessageType
			file := ""
			if d.Reply != nil {
				got, file = d.Reply.MessageType(), d.Reply.BootFileNameOption()
			}
			if got != tt.reply || d.What != tt.what || file != tt.file || !strings.Contains(d.Detail, tt.detail) {
				t.Errorf("got reply %v, %q, file %q, %q\nwant %v, %q, %q, %q", got, d.What, file, d.Detail, tt.reply, tt.what, tt.file, tt.detail)
			}
			if d.Refused && d.Reply != nil {
				t.Error("refused and answered")
			}
			if e := d.Evidence(now); e.What == "" || e.Detail == "" || e.Proto != boot.DHCP {
				t.Errorf("evidence %+v", e)
			}
		})
	}
}

// TestARM64Loaders: shim is named where GRUB is there as well, which it loads; else iPXE
// where the controller has one for arm64.
func TestARM64Loaders(t *testing.T) {
	t.Parallel()
	const byHTTP = "http://10.0.0.2:80/loader/"
	for name, c := range map[string]struct {
		loaders    []string
		pxe, https string // boot file; "": no reply
	}{
		"shim and GRUB":     {[]string{loader.ShimARM64, loader.GRUBARM64}, loader.ShimARM64, byHTTP + loader.ShimARM64},
		"shim before iPXE":  {[]string{loader.SNPARM64, loader.ShimARM64, loader.GRUBARM64}, loader.ShimARM64, byHTTP + loader.ShimARM64},
		"shim without GRUB": {[]string{loader.SNPARM64, loader.ShimARM64}, loader.SNPARM64, byHTTP + loader.SNPARM64},
		"iPXE alone":        {[]string{loader.SNPARM64}, loader.SNPARM64, byHTTP + loader.SNPARM64},
		"GRUB alone":        {[]string{loader.GRUBARM64, loader.SNPOnly}, "", ""},
	} {
		r := rules()
		r.Loaders = map[string]bool{}
		for _, l := range c.loaders {
			r.Loaders[l] = true
		}
		for _, x := range []struct {
			vendor string
			arch   byte
			want   string
		}{{pxeVendor, 11, c.pxe}, {httpVendor, 19, c.https}} {
			got := ""
			if d := r.Decide(site(), ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(x.vendor), arch(x.arch)), now); d.Reply != nil {
				got = d.Reply.BootFileNameOption()
			}
			if got != x.want {
				t.Errorf("%s, architecture %d: got %q, want %q", name, x.arch, got, x.want)
			}
		}
	}
}

// TestSecureBootLoaders: a node with Secure Boot is offered shim, where GRUB is there as well,
// and never iPXE; firmware that boots without it is refused with that reason.
func TestSecureBootLoaders(t *testing.T) {
	t.Parallel()
	const byHTTP = "http://10.0.0.2:80/loader/"
	both := []string{loader.ShimX64, loader.GRUBX64, loader.SNPOnly, loader.Undionly}
	arm := []string{loader.ShimARM64, loader.GRUBARM64, loader.SNPARM64}
	ubuntu := []string{loader.ShimX64, loader.GRUBX64, "ubuntu/shimx64.efi", "ubuntu/grubx64.efi"}
	for name, c := range map[string]struct {
		loaders []string
		signed  string // the distribution
		vendor  string
		arch    byte
		more    []dhcpv4.Modifier
		want    string // boot file; "": no reply
		why     string
	}{
		"PXE":               {both, "", pxeVendor, 7, nil, loader.ShimX64, ""},
		"HTTP":              {both, "debian", httpVendor, 16, nil, byHTTP + loader.ShimX64, ""},
		"no image is made":  {[]string{loader.SNPOnly}, "", pxeVendor, 7, nil, "", "shimx64.efi for UEFI x64 is not on the controller: an image of its distribution brings it that is built for nodes with secure_boot"},
		"shim alone":        {[]string{loader.ShimX64, loader.SNPOnly}, "", pxeVendor, 7, nil, "", "is not on the controller"},
		"BIOS":              {both, "", "PXEClient:Arch:00000:UNDI:002001", 0, nil, "", "BIOS boots without Secure Boot, and secure_boot of its hardware is true"},
		"iPXE":              {both, "", pxeVendor, 7, []dhcpv4.Modifier{opt(77, []byte("iPXE")...)}, "", "iPXE runs, which Secure Boot refuses"},
		"arm64":             {arm, "debian", pxeVendor, 11, nil, loader.ShimARM64, ""},
		"arm64 by HTTP":     {arm, "debian", httpVendor, 19, nil, byHTTP + loader.ShimARM64, ""},
		"arm64, iPXE alone": {[]string{loader.SNPARM64}, "debian", pxeVendor, 11, nil, "", "shimaa64.efi for UEFI arm64 is not on the controller"},
		"of Ubuntu":         {ubuntu, "ubuntu", pxeVendor, 7, nil, "ubuntu/shimx64.efi", ""},
		"of Ubuntu by HTTP": {ubuntu, "ubuntu", httpVendor, 16, nil, byHTTP + "ubuntu/shimx64.efi", ""},
		"of another one":    {ubuntu, "rhel", pxeVendor, 7, nil, "", "the loader rhel/shimx64.efi for UEFI x64 is not on the controller: an image of its distribution brings it"},
		"GRUB of another":   {append([]string{"rhel/shimx64.efi"}, ubuntu...), "rhel", pxeVendor, 7, nil, "", "the loader rhel/shimx64.efi for UEFI x64 is not on the controller"},
	} {
		all := site()
		for i := range all {
			all[i].SecureBoot, all[i].Signed = true, c.signed
		}
		r := rules()
		r.Loaders = map[string]bool{}
		for _, l := range c.loaders {
			r.Loaders[l] = true
		}
		d := r.Decide(all, ask(dhcpv4.MessageTypeDiscover, n1mac, append(c.more, vendor(c.vendor), arch(c.arch))...), now)
		got := ""
		if d.Reply != nil {
			got = d.Reply.BootFileNameOption()
		}
		if got != c.want || !strings.Contains(d.Detail, c.why) || (c.want == "") != d.Refused {
			t.Errorf("%s: got %q, %q; want %q, %q", name, got, d.Detail, c.want, c.why)
		}
	}
}

func TestReplyContents(t *testing.T) {
	t.Parallel()
	rai := opt(82, 1, 3, 'p', '0', '7', 11, 4, 10, 0, 0, 254)
	in := ask(dhcpv4.MessageTypeRequest, n1mac, wants("10.0.0.11"), vendor(httpVendor), arch(16), uuid(n1UUID), rai, opt(61, 1, 2),
		dhcpv4.WithRelay(net.IP{10, 0, 0, 254}))
	r := rules().Decide(site(), in, now).Reply
	if r == nil {
		t.Fatal("no reply")
	}
	r, err := dhcpv4.FromBytes(r.ToBytes())
	if err != nil {
		t.Fatal(err)
	}
	checks := []struct {
		what      string
		got, want any
	}{
		{"xid", r.TransactionID, in.TransactionID},
		{"yiaddr", r.YourIPAddr.String(), "10.0.0.11"},
		{"siaddr", r.ServerIPAddr.String(), "10.0.0.2"},
		{"giaddr", r.GatewayIPAddr.String(), "10.0.0.254"},
		{"file", r.BootFileName, "http://10.0.0.2:80/loader/snponly.efi"},
		{"66", r.TFTPServerName(), "10.0.0.2"},
		{"60 of HTTP boot", r.ClassIdentifier(), "HTTPClient"},
		{"54 of the relay (RFC 5107)", r.ServerIdentifier().String(), "10.0.0.254"},
		{"82", string(r.Options.Get(dhcpv4.OptionRelayAgentInformation)), string(in.Options.Get(dhcpv4.OptionRelayAgentInformation))},
		{"97", string(r.Options.Get(optUUID)), string(in.Options.Get(optUUID))},
		{"61", string(r.Options.Get(dhcpv4.OptionClientIdentifier)), "\x01\x02"},
		{"mask", net.IP(r.SubnetMask()).String(), "255.255.255.0"},
		{"router", r.Router()[0].String(), "10.0.0.1"},
		{"DNS without IPv6", len(r.DNS()), 1},
		{"host name", r.HostName(), "n1"},
		{"domain", r.DomainName(), "site.example"},
		{"lease", r.IPAddressLeaseTime(0), 24 * time.Hour},
		{"T1", r.IPAddressRenewalTime(0), 12 * time.Hour},
		{"T2", r.IPAddressRebindingTime(0), 21 * time.Hour},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	inform := rules().Decide(site(), ask(dhcpv4.MessageTypeInform, n1mac, dhcpv4.WithClientIP(net.IP{10, 0, 0, 11})), now).Reply
	if isSet(inform.YourIPAddr) || inform.Options.Has(dhcpv4.OptionIPAddressLeaseTime) {
		t.Errorf("an INFORM must get neither address nor lease: %v", inform.Summary())
	}
	pxe := rules().Decide(site(), ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7)), now).Reply
	if pxe.Options.Has(dhcpv4.OptionClassIdentifier) || pxe.Options.Has(dhcpv4.OptionVendorSpecificInformation) {
		t.Error("options 60 and 43 would make a PXE firmware look for a boot server")
	}
	p := rules()
	p.Lease = 0xffffffff
	if r := p.Decide(site(), ask(dhcpv4.MessageTypeDiscover, n1mac), now).Reply; r.Options.Has(dhcpv4.OptionRenewTimeValue) {
		t.Error("a lease forever has no T1")
	}
}

func TestPathOf(t *testing.T) {
	t.Parallel()
	const discover, request = dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest
	relay := dhcpv4.WithRelay(net.IP{10, 0, 9, 1})
	flag := dhcpv4.WithBroadcast(true)
	renewing := dhcpv4.WithClientIP(net.IP{10, 0, 0, 11})
	tests := []struct {
		name string
		in   *dhcpv4.DHCPv4
		path Path
		dst  string
	}{
		{"relay", ask(discover, n1mac, relay), ToRelay, "10.0.9.1"},
		{"relay before broadcast flag", ask(discover, n1mac, relay, flag), ToRelay, "10.0.9.1"},
		{"no address, no flag", ask(discover, n1mac), ToHardware, "10.0.0.11"},
		{"no address, flag", ask(discover, n1mac, flag), ToBroadcast, "255.255.255.255"},
		{"renewing", ask(request, n1mac, renewing), ToAddress, "10.0.0.11"},
		{"NAK", ask(request, n1mac, wants("10.0.0.99")), ToBroadcast, "255.255.255.255"},
		{"NAK through a relay", ask(request, n1mac, wants("10.0.0.99"), relay), ToRelay, "10.0.9.1"},
		{"inform", ask(dhcpv4.MessageTypeInform, n1mac, renewing), ToAddress, "10.0.0.11"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := rules().Decide(site(), tt.in, now).Reply
			path, dst := PathOf(tt.in, r)
			if path != tt.path || dst.String() != tt.dst {
				t.Errorf("got %v to %s, want %v to %s", path, dst, tt.path, tt.dst)
			}
			if r.MessageType() == dhcpv4.MessageTypeNak && path == ToRelay && !r.IsBroadcast() {
				t.Error("a relayed NAK must be broadcast by the relay")
			}
		})
	}
}

// TestChain walks n2, whose ROM is iPXE and too old, through two boots.
func TestChain(t *testing.T) {
	t.Parallel()
	p, at := rules(), now
	send := func(mt dhcpv4.MessageType, xid byte) string {
		in := ask(mt, n2mac, arch(0), vendor("PXEClient:Arch:00000:UNDI:002001"), opt(77, []byte("iPXE")...), wants("10.0.0.12"))
		in.TransactionID[0] = xid
		return p.Decide(site(), in, at).File
	}
	const script = "http://10.0.0.2:80/boot/02-00-00-00-00-02/script.ipxe"
	steps := []struct {
		name string
		mt   dhcpv4.MessageType
		xid  byte
		pass time.Duration
		want string
	}{
		{"ROM discovers", dhcpv4.MessageTypeDiscover, 1, 0, loader.Undionly},
		{"and again", dhcpv4.MessageTypeDiscover, 1, time.Second, loader.Undionly},
		{"and starts over before any ACK", dhcpv4.MessageTypeDiscover, 2, time.Second, loader.Undionly},
		{"ROM requests", dhcpv4.MessageTypeRequest, 2, time.Second, loader.Undionly},
		{"its ACK was lost", dhcpv4.MessageTypeRequest, 2, time.Second, loader.Undionly},
		{"undionly.kpxe discovers", dhcpv4.MessageTypeDiscover, 3, 2 * time.Second, script},
		{"undionly.kpxe requests", dhcpv4.MessageTypeRequest, 3, time.Second, script},
		{"next boot", dhcpv4.MessageTypeDiscover, 4, 10 * time.Second, loader.Undionly},
		{"ROM requests", dhcpv4.MessageTypeRequest, 4, time.Second, loader.Undionly},
		{"switched off, and on the next day", dhcpv4.MessageTypeDiscover, 5, 24 * time.Hour, loader.Undionly},
	}
	for _, s := range steps {
		at = at.Add(s.pass)
		if got := send(s.mt, s.xid); got != s.want {
			t.Errorf("%s: got %q, want %q", s.name, got, s.want)
		}
	}
	in := ask(dhcpv4.MessageTypeDiscover, n2mac, arch(7), vendor(pxeVendor), opt(77, []byte("iPXE")...))
	if got := p.Decide(site(), in, at).File; got != script {
		t.Errorf("iPXE of a UEFI ROM must not be chained: got %q", got)
	}
	for i := range 2 * maxChains {
		p.Chain.Loader(addr.MAC{2, 1, 0, 0, byte(i >> 8), byte(i)}, dhcpv4.TransactionID{}, at)
	}
	if n := len(p.Chain.seen); n > maxChains {
		t.Errorf("%d chains are remembered, want at most %d", n, maxChains)
	}
}

// TestRelays: only relays that the site has may speak for a node, and one that it does
// not have is told as an unknown client's, not as the node's.
func TestRelays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, relay string
		any, want   bool
	}{
		{"declared", "10.0.9.1", false, true},
		{"the gateway", "10.0.0.1", false, true},
		{"neither", "10.0.0.66", false, false},
		{"the controller itself", controller.String(), false, false},
		{"where all are taken", "10.0.0.66", true, true},
	} {
		p := rules()
		p.AnyRelay = tt.any
		for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeDecline, dhcpv4.MessageTypeRelease} {
			in := ask(kind, n1mac, dhcpv4.WithRelay(netip.MustParseAddr(tt.relay).AsSlice()))
			d := p.Decide(site(), in, now)
			if refused := d.What == eventRelay; refused == tt.want || refused && (d.Reply != nil || d.Client.Node != "" || !d.Refused || !strings.Contains(d.Detail, tt.relay)) {
				t.Errorf("%s, %s: %+v", tt.name, kind, d)
			}
		}
	}
}

// TestNothingToTell: a decision without a word is not told.
func TestNothingToTell(t *testing.T) {
	t.Parallel()
	var seen []boot.Evidence
	s := Server{cfg: Config{Recorder: recorder(func(e boot.Evidence) { seen = append(seen, e) })}}
	s.recordDecision(Decision{}, now)
	if s.recordDecision(Decision{}.refuse(eventUnknown, "who"), now); len(seen) != 1 {
		t.Errorf("got %v, want the refusal only", seen)
	}
}

type recorder func(boot.Evidence)

func (w recorder) Record(e boot.Evidence) { w(e) }

func TestFrame(t *testing.T) {
	t.Parallel()
	src, dst := netip.MustParseAddrPort("10.0.0.2:67"), netip.MustParseAddrPort("10.0.0.11:68")
	b := buildFrame(src, dst, []byte("payload"))
	if checksumOf(b[:20]) != 0xffff {
		t.Errorf("header checksum: %#x", checksumOf(b[:20]))
	}
	got, from := parseFrame(append(slices.Clone(b), 0, 0, 0), 68) // Ethernet pads short frames
	if string(got) != "payload" || from != src.Addr() {
		t.Errorf("got %q from %s", got, from)
	}
	for i := range b {
		if got, _ := parseFrame(b[:i], 68); got != nil {
			t.Errorf("cut at %d: got %q", i, got)
		}
	}
	if got, _ := parseFrame(b, 67); got != nil {
		t.Error("another port was accepted")
	}
}

// FuzzDecide feeds raw packets: whatever the codec accepts is answered or
// refused, with a reply that can be encoded and read back.
func FuzzDecide(f *testing.F) {
	for _, p := range []*dhcpv4.DHCPv4{
		ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7)),
		ask(dhcpv4.MessageTypeRequest, n2mac, wants("10.0.0.12"), arch(0), opt(77, []byte("iPXE")...)),
		ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(httpVendor), arch(16), uuid(n1UUID), opt(82, 11, 4, 1, 2, 3, 4)),
	} {
		f.Add(p.ToBytes())
	}
	src, p := site(), rules()
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := dhcpv4.FromBytes(b)
		if err != nil {
			return
		}
		d := p.Decide(src, in, now)
		if d.Reply == nil {
			return
		}
		if d.Client.Node == "" {
			t.Errorf("an unknown client was answered: %s", in.Summary())
		}
		PathOf(in, d.Reply)
		if _, err := dhcpv4.FromBytes(d.Reply.ToBytes()); err != nil {
			t.Errorf("reply cannot be read: %v", err)
		}
	})
}

func FuzzUnframe(f *testing.F) {
	f.Add(buildFrame(netip.MustParseAddrPort("10.0.0.2:67"), netip.MustParseAddrPort("10.0.0.11:68"), []byte("payload")))
	f.Fuzz(func(t *testing.T, b []byte) { parseFrame(b, 68) })
}
