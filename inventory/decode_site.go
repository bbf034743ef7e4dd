// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

func (l *loader) decodeSite() {
	for _, v := range l.result.Variables {
		l.inv.Variables = append(l.inv.Variables, &Variable{Name: v.Name, Description: v.Description, Sensitive: v.Sensitive, Decl: v.Decl})
	}
	slices.SortFunc(l.inv.Variables, func(a, b *Variable) int { return strings.Compare(a.Name, b.Name) })
	for _, b := range l.result.Bodies["site"] {
		l.checkName(b, rackName)
		g := b.Block("geometry")
		l.inv.Site = Site{
			Name: b.Name, Domain: language.Get[string](b, "domain"), TimeServers: language.GetList[string](b, "time_servers"), MaxErase: language.Get[int](b, "max_erase"), Decl: b.Decl,
			Geometry: Geometry{
				RackWidth: language.Get[unit.Length](g, "rack_width"), RowPitch: language.Get[unit.Length](g, "row_pitch"),
				TrayHeight: language.Get[unit.Length](g, "tray_height"), Slack: language.Get[unit.Length](g, "slack"),
			},
		}
	}
	for _, b := range l.result.Bodies["site"] {
		if p := b.Block("prices"); p != nil {
			l.inv.Site.Prices = l.prices(p)
		}
	}
	for _, b := range l.result.Bodies["state"] {
		l.inv.State = l.stateStore(b)
	}
	if len(l.result.Bodies["site"]) == 0 && !l.diags.HasErrors() {
		*l.diags = append(*l.diags, Diagnostic{Check: "language.required", Summary: "No site block", Detail: `The files describe no site. One of them needs a block such as: site "dc1" { domain = "dc1.example" }.`})
	}
}

// stateStore decodes where state is kept.
func (l *loader) stateStore(b *language.Body) StateStore {
	s := StateStore{Kind: b.Kind, Decl: b.Decl}
	if b.Kind != "etcd" {
		return s
	}
	s.Endpoints, s.Prefix = language.GetList[string](b, "endpoints"), language.Get[string](b, "prefix")
	s.Authority, s.Certificate, s.Key = language.Get[string](b, "authority"), language.Get[string](b, "certificate"), language.Get[string](b, "key")
	wrong := func(summary, detail string) {
		l.diags.Add("language.value", b.Range("endpoints"), summary, detail).In(b.Decl)
	}
	if b.Right("endpoints") && len(s.Endpoints) == 0 {
		wrong("No endpoints", `The members of etcd are not named: list the client URL of each, such as ["https://10.20.0.11:2379", "https://10.20.0.12:2379", "https://10.20.0.13:2379"].`)
	}
	for i, e := range s.Endpoints {
		if slices.Contains(s.Endpoints[:i], e) {
			wrong("Endpoint named twice", fmt.Sprintf("%q is named twice. List each member of etcd once.", e))
		}
	}
	return s
}

// prices decodes what things cost, and reports what no price can be.
func (l *loader) prices(b *language.Body) *Prices {
	p := &Prices{Currency: language.Get[string](b, "currency"), KWh: language.Get[float64](b, "kwh"), PUE: 1, Each: map[string]float64{}, Places: map[string]hcl.Range{}}
	wrong := func(b *language.Body, name, text string) {
		l.diags.Add("language.value", b.Range(name), "Wrong value of "+name, text).In(b.Decl)
	}
	if b.Given("pue") {
		if p.PUE = language.Get[float64](b, "pue"); b.Right("pue") && (p.PUE < 1 || p.PUE > 4) {
			wrong(b, "pue", "pue is the energy that the building takes for each that its racks take: 1 to 4.")
		}
	}
	if b.Right("kwh") && p.KWh < 0 {
		wrong(b, "kwh", "kwh is the price of a kilowatt-hour: 0 or more.")
	}
	for _, part := range b.Blocks("part") {
		each := language.Get[float64](part, "each")
		if part.Right("each") && each <= 0 {
			wrong(part, "each", "each is the price of one: more than 0.")
		}
		if _, twice := p.Each[part.Name]; twice {
			l.diags.Add("name.duplicate", part.Labels[0], "Name is taken", fmt.Sprintf("The price of %q is given twice.", part.Name)).Also("the first", p.Places[part.Name])
			continue
		}
		p.Each[part.Name], p.Places[part.Name] = each, part.Labels[0]
		p.Names = append(p.Names, part.Name)
	}
	return p
}

func (l *loader) controller(b *language.Body) *Controller {
	c := &Controller{Name: b.Name, Address: language.Get[netip.Addr](b, "address"), Interface: language.Get[string](b, "interface"), Decl: b.Decl}
	l.addresses.add(c.Address, fmt.Sprintf("controller %s", c.Name), b.Range("address"), "")
	return c
}

func (l *loader) network(b *language.Body) *Network {
	n := &Network{
		Name: b.Name, CIDR: language.Get[netip.Prefix](b, "cidr"), CIDR6: language.Get[netip.Prefix](b, "cidr6"), Gateway: language.Get[netip.Addr](b, "gateway"), Gateway6: language.Get[netip.Addr](b, "gateway6"),
		DNS: language.GetList[netip.Addr](b, "dns"), VLAN: language.Get[int](b, "vlan"), MTU: language.Get[int](b, "mtu"), DHCP: DHCP{Mode: DHCPOff, RouterAdvertisement: "off"}, Decl: b.Decl, Ranges: rangesOf(b),
	}
	if d := b.Block("dhcp"); d != nil {
		n.DHCP = DHCP{
			Mode: DHCPMode(language.Get[string](d, "mode")), Pool: language.Get[Pool](d, "pool"), Relays: language.GetList[netip.Addr](d, "relays"),
			RouterAdvertisement: language.Get[string](d, "router_advertisement"), Decl: d.Decl, Ranges: rangesOf(d),
		}
	}
	return n
}

func (l *loader) bmc(b *language.Body) *BMCProfile {
	p := &BMCProfile{
		Name: b.Name, Protocol: language.Get[string](b, "protocol"), Network: readRef(b, "network", l.networks), Username: language.Get[string](b, "username"),
		Password: language.Get[secret.Ref](b, "password"), FactoryUsername: language.Get[string](b.Block("factory"), "username"),
		Attach: language.Get[string](b, "attach"), VLAN: language.Get[int](b, "vlan"), Decl: b.Decl, Ranges: rangesOf(b),
	}
	p.Endpoint = l.endpoint(b, p.Protocol, "")
	if p.Protocol != "rpc" && b.Right("protocol") && !b.Given("username") {
		l.diags.Add("language.required", b.Decl, "No username given", `A bmc needs the attribute "username": text.`)
	}
	p.Port, p.CipherSuite = l.bmcPort(b, p.Protocol, 0, -1)
	p.TLS = l.trust(b, p.Protocol, TLSTrust{Mode: TLSPinFirstSeen})
	if n := p.Network; p.VLAN != 0 && n != nil && n.VLAN != 0 && n.VLAN != p.VLAN {
		l.diags.Add("bmc.attach", b.Range("vlan"), "VLAN of another network", fmt.Sprintf("The BMCs have vlan = %d, and their network %q has vlan = %d. Correct one of the two.", p.VLAN, n.Name, n.VLAN)).Also("the network", l.place(n, "vlan")).In(b.Decl)
	}
	if p.VLAN != 0 && p.Attach != "shared" {
		l.diags.Add("bmc.attach", b.Range("vlan"), "VLAN of a dedicated BMC", `vlan is for BMCs that share a port with the node. Remove it: the VLAN of a BMC is set in the BMC.`).In(b.Decl)
	}
	return p
}

// bmcPort gives the port and the cipher suite of a BMC: as written, else as
// inherited, else the protocol's own.
func (l *loader) bmcPort(b *language.Body, protocol string, port uint16, suite int) (uint16, int) {
	if port == 0 {
		port = map[string]uint16{"redfish": 443, "ipmi": 623, "rpc": 443}[protocol]
	}
	if suite < 0 {
		suite = 0
		if protocol == "ipmi" {
			suite = 17
		}
	}
	if b.Given("port") {
		port = uint16(language.Get[int](b, "port"))
	}
	if !b.Given("cipher_suite") {
		return port, suite
	}
	suite = language.Get[int](b, "cipher_suite")
	switch {
	case protocol == "redfish", protocol == "rpc":
		l.diags.Add("bmc.protocol", b.Range("cipher_suite"), "Cipher suite without IPMI",
			fmt.Sprintf(`Cipher suites belong to protocol = "ipmi"; %s is protected by tls.`, map[string]string{"redfish": "Redfish", "rpc": "RPC"}[protocol])).In(b.Decl)
	case suite == 0 && b.Right("cipher_suite"):
		l.diags.Add("bmc.cipher-suite", b.Range("cipher_suite"), "Cipher suite without authentication", "Suite 0 lets anybody in without a password. Use 17, or 3 for BMCs that know no other.").In(b.Decl)
	}
	return port, suite
}

// endpoint gives the service that answers for a BMC, else the inherited one. What
// only other protocols have is refused beside it, and it beside those.
func (l *loader) endpoint(b *language.Body, protocol, inherited string) string {
	if protocol != "rpc" {
		if b.Given("endpoint") {
			l.diags.Add("bmc.protocol", b.Range("endpoint"), "Endpoint without RPC", `An endpoint belongs to protocol = "rpc"; other BMCs answer at their own address.`).In(b.Decl)
		}
		return ""
	}
	for name, summary := range map[string]string{"port": "Port with RPC", "username": "User name with RPC"} {
		if b.Given(name) {
			l.diags.Add("bmc.protocol", b.Range(name), summary, fmt.Sprintf(`protocol = "rpc" has no %s: requests go to endpoint and are signed with password. Remove it.`, name)).In(b.Decl)
		}
	}
	if b.Given("endpoint") {
		return language.Get[string](b, "endpoint")
	}
	if inherited == "" {
		l.diags.Add("bmc.protocol", b.Range("protocol"), "RPC without an endpoint", `protocol = "rpc" needs endpoint: the https URL of the service that switches the power of these nodes.`).In(b.Decl)
	}
	return inherited
}

// maxCertificates is the largest file of certificates, in bytes.
const maxCertificates = 1 << 20

var hexDigits = lazyregexp.New(`^[0-9a-f]{64}$`)

// trust reads the tls attribute: a mode, a fingerprint, or certificates.
func (l *loader) trust(b *language.Body, protocol string, inherited TLSTrust) TLSTrust {
	if protocol == "ipmi" {
		inherited = TLSTrust{}
	}
	text := language.Get[string](b, "tls")
	if text == "" {
		return inherited
	}
	if protocol == "ipmi" {
		l.diags.Add("bmc.protocol", b.Range("tls"), "TLS with IPMI", `IPMI has no TLS; cipher_suite says how it is protected.`).In(b.Decl)
		return inherited
	}
	modes := []string{string(TLSPinFirstSeen), string(TLSInsecure)}
	digits := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(text, "sha256:")), ":", "")
	switch {
	case slices.Contains(modes, text):
		return TLSTrust{Mode: TLSMode(text)}
	case hexDigits.MatchString(digits):
		return TLSTrust{Mode: TLSFingerprint, Fingerprint: digits}
	case strings.HasSuffix(text, ".pem"), strings.HasSuffix(text, ".crt"):
		src, err := b.ReadFile(text, maxCertificates)
		if err != nil {
			l.diags.Add("bmc.tls", b.Range("tls"), "No certificates", fmt.Sprintf("The file %q of the site's folder cannot be read.", text)).In(b.Decl)
			return inherited
		}
		text = string(src)
	}
	if isCertificates(text) {
		return TLSTrust{Mode: TLSAuthority, CA: text}
	}
	l.diags.Add("bmc.tls", b.Range("tls"), "Unknown trust",
		fmt.Sprintf("tls is one of %s, a SHA-256 fingerprint of 64 hex digits, or a file of the site's folder with certificates (*.pem, *.crt).%s", diag.Quoted(modes), diag.DidYouMean(text, modes))).In(b.Decl)
	return inherited
}

// isCertificates reports whether text is PEM with certificates and nothing else.
func isCertificates(text string) bool {
	rest, n := []byte(text), 0
	for {
		block, more := pem.Decode(rest)
		if block == nil {
			return n > 0
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			return false
		}
		rest = more
		n++
	}
}
