// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

// The types of attributes beyond those of the language package.
var (
	typeWatts     = language.Parsed(`power such as "7.2kW"`, unit.ParseWatts)
	typeVolts     = language.Parsed(`a voltage such as "415V"`, unit.ParseVolts)
	typeAmps      = language.Parsed(`a current such as "63A"`, unit.ParseAmps)
	typeLength    = language.Parsed(`a length such as "2.4m"`, unit.ParseLength)
	typeMass      = language.Parsed(`a weight such as "90kg"`, unit.ParseMass)
	typePercent   = language.Parsed(`a percentage such as "92%"`, parseShare)
	typeBytes     = language.Parsed(`an amount of data such as "2TiB"`, unit.ParseBytes)
	typeBitRate   = language.Parsed(`a line rate such as "400Gbps"`, unit.ParseBitRate)
	typeDuration  = language.Parsed(`a duration such as "30min"`, unit.ParseDuration)
	typeQuantity  = language.Parsed(`a quantity such as "2850GB/s"`, unit.ParseAny)
	typeSize      = language.Parsed(`the size of a disk such as "3.84TB", ">= 900GB" or ">= 900GB, <= 2TB"`, unit.ParseDriveSize)
	typeVersion   = language.Parsed(`a version such as ">= 1.03.18"`, unit.ParseVersionLimit)
	typeEndpoint  = language.Parsed(`an https URL with an IP address such as "https://10.20.0.3:8443/power"`, parseEndpoint)
	typeMember    = language.Parsed(`the https URL of a member for clients such as "https://10.20.0.11:2379"`, parseMember)
	typeKeyPrefix = language.Parsed(`a prefix of keys such as "/ironrail/paris"`, matchForm(keyPrefix, `%q is not a prefix of keys such as "/ironrail/paris": letters, digits, dots, dashes and underscores, a slash before each part, and none at the end`))
	typePEMFile   = language.Parsed(`the path of a PEM file such as "/etc/ironrail/etcd.pem"`, parsePEMFile)
	typeTarget    = language.Custom(`an http or https URL, or a secret that holds one`, parseTarget)
	typeAddress   = language.Parsed(`an IP address such as "10.20.0.2"`, parseAddress)
	typePrefix    = language.Parsed(`a network such as "10.20.0.0/20"`, parsePrefix)
	typeHostKey   = language.Parsed(`a fingerprint as ssh-keygen -lf prints it: "SHA256:" and 43 characters of base64`, parseHostKey)
	typePool      = language.Parsed(`a range of addresses such as "10.10.15.0-10.10.15.254"`, parsePool)
	typeMAC       = language.Parsed(`a MAC address such as "02:00:5e:10:00:01"`, parseMAC)
	typeUUID      = language.Parsed(`a UUID such as "6c616230-0000-4000-8000-000000000001"`, parseUUID)
	typePCI       = language.Parsed(`a PCI address such as "0000:18:00.0"`, matchForm(pciAddress, `%q is not a PCI address such as "0000:18:00.0"`))
	typeWWN       = language.Parsed(`a World Wide Name such as "naa.5000c500a1b2c3d4"`, parseWWN)
	typeByPath    = language.Parsed(`the name of a link in /dev/disk/by-path such as "pci-0000:3b:00.0-nvme-1"`, parseByPath)
	typePKey      = language.Parsed(`a P_Key such as "0x0001"`, parsePKey)
	typeDate      = language.Parsed(`a date such as "2026-12-20"`, parseDate)
	typeDigest    = language.Parsed(`a digest such as "sha256:..." with 64 hex digits`, matchForm(digestForm, `%q is not a digest: "sha256:" and 64 hex digits in lower case`))
	typeCheck     = language.Parsed(`the name of a check such as "power.feed-loss"`, matchForm(checkForm, `%q is not the name of a check such as "power.feed-loss"`))
	typeDomain    = language.Parsed(`a DNS name such as "dc1.example"`, matchForm(dnsName, `%q is not a DNS name such as "dc1.example"`))
)

var (
	pciAddress = lazyregexp.New(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
	wwnForm    = lazyregexp.New(`^([0-9a-f]{16}|[0-9a-f]{32})$`)
	keyPrefix  = lazyregexp.New(`^(/[A-Za-z0-9._-]{1,64}){1,8}$`)
	digestForm = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
	checkForm  = lazyregexp.New(`^[a-z0-9_-]+(\.[a-z0-9_-]+)+$`)
	dnsName    = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	uuidForm   = lazyregexp.New(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// matchForm returns a parser of text that has a form and needs no conversion.
func matchForm(form *lazyregexp.Regexp, message string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !form.MatchString(s) {
			return "", fmt.Errorf(message, s)
		}
		return s, nil
	}
}

// NormalWWN is a World Wide Name without what tools write before its hexadecimal
// digits ("0x5000c5...", "naa.5000c5...", "eui.0025...", "wwn-0x5000c5..."), in
// lower case; "" where there are no such digits.
func NormalWWN(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	for _, before := range []string{"wwn-", "nvme-", "naa.", "eui.", "uuid.", "0x"} {
		s = strings.TrimPrefix(s, before)
	}
	s = strings.ReplaceAll(s, "-", "")
	if !wwnForm.MatchString(s) {
		return ""
	}
	return s
}

func parseWWN(s string) (string, error) {
	if NormalWWN(s) == "" {
		return "", fmt.Errorf(`%q is not a World Wide Name: 16 or 32 hexadecimal digits, such as "naa.5000c500a1b2c3d4"`, s)
	}
	return s, nil
}

// byPathFolder is where udev keeps its links.
const byPathFolder = "/dev/disk/by-path/"

func parseByPath(s string) (string, error) {
	name := strings.TrimPrefix(s, byPathFolder)
	if name == "" || strings.ContainsAny(name, "/ ") {
		return "", fmt.Errorf(`%q is not a link in /dev/disk/by-path such as "pci-0000:3b:00.0-nvme-1"`, s)
	}
	return name, nil
}

func parseShare(s string) (unit.Percent, error) {
	p, err := unit.ParsePercent(s)
	if err == nil && p > 100 {
		err = fmt.Errorf("%q is more than 100%%", s)
	}
	return p, err
}

// typeBMCProtocol is how a BMC is spoken to.
var typeBMCProtocol = language.OneOf("redfish", "ipmi", "rpc")

// parseEndpoint reads the URL of a service. It has an address, since the controller
// asks no name server before the site has one.
func parseEndpoint(s string) (string, error) {
	u, err := url.Parse(s)
	if err == nil && u.Scheme == "https" && u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		host := u.Host
		if u.Port() == "" {
			host += ":443"
		}
		if at, err := netip.ParseAddrPort(host); err == nil && at.Port() != 0 && at.Addr().Zone() == "" {
			return s, nil
		}
	}
	return "", fmt.Errorf(`%q is not an https URL with an IP address such as "https://10.20.0.3:8443/power", without a user or a query`, s)
}

// parseMember checks the URL of a member of etcd.
func parseMember(s string) (string, error) {
	u, err := url.Parse(s)
	if err == nil && u.Scheme == "https" && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" && u.Hostname() != "" {
		if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil && port != 0 {
			return s, nil
		}
	}
	if strings.Contains(s, "@") { // perhaps a password, which no message repeats
		return "", errors.New("the URL has a user, and members know a controller by its certificate: remove it")
	}
	return "", fmt.Errorf(`%q is not the https URL of a member for clients: host and port alone, such as "https://10.20.0.11:2379"`, s)
}

// parsePEMFile checks the path of a file, which may be that of a key: text that holds a key
// is not repeated.
func parsePEMFile(s string) (string, error) {
	if strings.Contains(s, "-----") {
		return "", errors.New("this is PEM itself, and the path of a file with it is due")
	}
	if s == "" || strings.ContainsFunc(s, unicode.IsControl) {
		return "", fmt.Errorf("%q is not the path of a file", s)
	}
	return s, nil
}

// parseTarget reads where to send: a URL, or where one lies.
func parseTarget(v cty.Value) (NotifyURL, error) {
	if ref, ok := SecretRef(v); ok {
		return NotifyURL{Secret: ref}, nil
	}
	if v.Type() != cty.String {
		return NotifyURL{}, fmt.Errorf("%s is no URL", v.Type().FriendlyName())
	}
	if why := WrongNotifyURL(v.AsString()); why != "" {
		if strings.Contains(v.AsString(), "@") { // perhaps a password, which no message repeats
			return NotifyURL{}, fmt.Errorf("the URL %s", why)
		}
		return NotifyURL{}, fmt.Errorf(`%q %s; a URL such as "https://hooks.example/ironrail" is wanted, or where one lies, such as secret("env:HOOK_URL")`, v.AsString(), why)
	}
	return NotifyURL{Text: v.AsString()}, nil
}

// WrongNotifyURL says why a text cannot be sent to; "" for nothing. It repeats nothing of
// it, since it may be a secret.
func WrongNotifyURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "is no URL with a host"
	case u.Scheme != "https" && u.Scheme != "http":
		return "is neither http nor https"
	case u.User != nil:
		return "holds a user name; give token or a header instead"
	case u.Fragment != "":
		return "has a fragment, which is not sent"
	}
	return ""
}

func parseAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return a, fmt.Errorf(`%q is not an IP address such as "10.20.0.2"`, s)
	}
	return a.Unmap(), nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf(`%q is not a network such as "10.20.0.0/20"`, s)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("%q has bits beyond its prefix; the network is %q", s, p.Masked())
	}
	return p, nil
}

func parsePool(s string) (Pool, error) {
	first, last, ok := strings.Cut(s, "-")
	a, errA := netip.ParseAddr(strings.TrimSpace(first))
	b, errB := netip.ParseAddr(strings.TrimSpace(last))
	if !ok || errA != nil || errB != nil || a.Is4() != b.Is4() {
		return Pool{}, fmt.Errorf(`%q is not a range of addresses such as "10.10.15.0-10.10.15.254"`, s)
	}
	if b.Less(a) {
		return Pool{}, fmt.Errorf("%q ends before it starts", s)
	}
	return Pool{a, b}, nil
}

func parseMAC(s string) (addr.MAC, error) {
	if s == "" { // a column of the vendor's list that is not filled in yet
		return addr.MAC{}, nil
	}
	m, err := addr.ParseMAC(s)
	switch {
	case err != nil:
		return m, err
	case m.IsZero() || m[0]&1 != 0:
		return m, fmt.Errorf("%q is the address of no single port (a group address, or zero)", s)
	}
	return m, nil
}

func parseUUID(s string) (string, error) {
	lower := strings.ToLower(s)
	if s == "" {
		return "", nil
	}
	if !uuidForm.MatchString(lower) {
		return "", fmt.Errorf(`%q is not a UUID such as "6c616230-0000-4000-8000-000000000001"`, s)
	}
	return lower, nil
}

// parsePKey reads a P_Key without its membership bit. 0x7fff is the default
// partition of every subnet and may be named.
func parsePKey(s string) (uint16, error) {
	rest, ok := strings.CutPrefix(strings.ToLower(s), "0x")
	if b, err := hex.DecodeString(fmt.Sprintf("%04s", rest)); ok && err == nil && len(rest) > 0 && len(b) == 2 {
		if v := uint16(b[0])<<8 | uint16(b[1]); v >= 1 && v <= 0x7fff {
			return v, nil
		}
	}
	return 0, fmt.Errorf(`%q is not a P_Key from "0x0001" to "0x7fff"; the membership bit is not part of it`, s)
}

// parseDate reads a day; what ends on it ends with it.
func parseDate(s string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return t, fmt.Errorf(`%q is not a date such as "2026-12-20"`, s)
	}
	return t.AddDate(0, 0, 1), nil
}

// Short forms of the tables below.

func optionalAttr(name string, t language.Type) language.Attr {
	return language.Attr{Name: name, Type: t}
}

func requiredAttr(name string, t language.Type) language.Attr {
	return language.Attr{Name: name, Type: t, Required: true}
}

func numberAttr(name string, low, high int) language.Attr {
	return optionalAttr(name, language.Int(low, high))
}

func orText(name, value string, t language.Type) language.Attr {
	return language.Attr{Name: name, Type: t, Default: cty.StringVal(value)}
}

func orNumber(name string, value, low, high int) language.Attr {
	return language.Attr{Name: name, Type: language.Int(low, high), Default: cty.NumberIntVal(int64(value))}
}

// singleBlock returns a nested block without labels, at most once.
func singleBlock(name string, attrs ...language.Attr) language.BlockSpec {
	return language.BlockSpec{Type: name, Single: true, Body: language.Spec{Attrs: attrs}}
}

// namedBlock are nested blocks with a label each.
func namedBlock(name string, attrs ...language.Attr) language.BlockSpec {
	return language.BlockSpec{Type: name, Labels: []string{"name"}, Body: language.Spec{Attrs: attrs}}
}

// referableBlock returns a top-level block that others refer to by its name.
func referableBlock(name string, attrs []language.Attr, blocks ...language.BlockSpec) language.BlockSpec {
	return language.BlockSpec{Type: name, Labels: []string{"name"}, Repeat: true, Refer: true, Body: language.Spec{Attrs: attrs, Blocks: blocks}}
}
