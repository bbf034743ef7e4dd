// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/host"
)

// SettingsFact is which host settings a node was given when it was installed. A
// node that was installed before this was recorded, or that was adopted, has none.
const SettingsFact = fact.Name[Given]("install.settings")

// Given is the settings that one configuration wrote. The format only grows.
type Given struct {
	Key string `json:"key"` // effect key of the configuration
	// Values are the settings by name, as Setting has them. One that was not given
	// is there and empty; one that is not there is not known.
	Values map[string]string `json:"values"`
}

// Setting is one host setting that an installation writes: as the site has it.
type Setting struct {
	Name  string    // kernel_args, as the language has it
	Value string    // as shown; empty: not given. Never a secret
	Block string    // what says it: host gpu, site, network boot, hardware h100
	Decl  hcl.Range // of that block, or of the node's own attribute
	Own   bool      // nodes differ in it: an address
}

// NewGiven returns what the configuration of a key writes.
func NewGiven(key string, list []Setting) Given {
	g := Given{Key: key, Values: make(map[string]string, len(list))}
	for _, x := range list {
		g.Values[x.Name] = x.Value
	}
	return g
}

// hasSettings reports whether a stored Given has all of these settings as they are. False
// tells nothing: it looks for them without decoding it, as most nodes of most plans
// have what the files say.
func hasSettings(stored []byte, list []Setting) bool {
	var want []byte
	for _, x := range list {
		value, err := json.Marshal(x.Value)
		if err != nil {
			return false
		}
		want = append(append(append(want[:0], '"'), x.Name...), `":`...)
		want = append(want, value...) // a quote within a text has a backslash: this is no part of one
		if !bytes.Contains(stored, want) {
			return false
		}
	}
	return true
}

// Settings are what an installation of a node writes, in a fixed order. The node has
// an image.
func Settings(inv *inventory.Inventory, n *inventory.Node) []Setting {
	p := hostParams(inv, n)
	host, hostDecl := "node "+n.Name, n.Decl
	if h := n.Host; h != nil {
		host, hostDecl = "host "+h.Name, h.Decl
	} else if n.Role != nil {
		host, hostDecl = "role "+n.Role.Name, n.Role.Decl
	}
	net, netDecl := host, hostDecl
	if b := n.BootNetwork; b != nil {
		net, netDecl = "network "+b.Name, b.Decl
	}
	mac := ""
	if !p.BootNIC.IsZero() {
		mac = p.BootNIC.String()
	}
	address6, gateway6 := ipv6Text(p.Network.IPv6)
	list := func(l []string) string { return strings.Join(l, " ") }
	return []Setting{
		{Name: "kernel_args", Value: list(p.KernelArgs), Block: host, Decl: hostDecl},
		{Name: "timezone", Value: p.Timezone, Block: host, Decl: hostDecl},
		{Name: "authorized_keys", Value: keysText(p.AuthorizedKeys), Block: host, Decl: hostDecl},
		{Name: "user_data", Value: userdata.Digest(p.UserData), Block: host, Decl: hostDecl},
		{Name: "bond", Value: bondsText(p.Network.Bonds), Block: host, Decl: hostDecl},
		{Name: "vlan", Value: vlansText(p.Network.VLANs), Block: "hardware " + n.Hardware.Name, Decl: n.Hardware.Decl, Own: true},
		{Name: "domain", Value: p.Domain, Block: "site", Decl: inv.Site.Decl},
		{Name: "time_servers", Value: list(p.TimeServers), Block: "site", Decl: inv.Site.Decl},
		{Name: "gateway", Value: p.Gateway, Block: net, Decl: netDecl},
		{Name: "dns", Value: list(p.DNS), Block: net, Decl: netDecl},
		{Name: "console", Value: p.Console, Block: "hardware " + n.Hardware.Name, Decl: n.Hardware.Decl},
		{Name: "address", Value: p.Address, Block: "nodes", Decl: n.Ranges.Address, Own: true},
		{Name: "cidr6", Value: address6, Block: net, Decl: netDecl, Own: true},
		{Name: "gateway6", Value: gateway6, Block: net, Decl: netDecl},
		{Name: "boot_mac", Value: mac, Block: "nodes", Decl: n.Ranges.BootMAC, Own: true},
	}
}

// ipv6Text is the second address of a node, and its gateway.
func ipv6Text(a *wire.NetworkAddress) (address, gateway string) {
	if a == nil {
		return "", ""
	}
	if a.Gateway.IsValid() {
		gateway = a.Gateway.String()
	}
	return a.Address.String(), gateway
}

// bondsText is bonds in words.
func bondsText(bonds []wire.NetworkBond) string {
	var list []string
	for _, b := range bonds {
		list = append(list, b.Name+" "+b.Mode+" of "+strings.Join(b.Members, " "))
	}
	return strings.Join(list, ", ")
}

// vlansText is VLAN interfaces in words.
func vlansText(vlans []wire.NetworkVLAN) string {
	var list []string
	for _, v := range vlans {
		text := fmt.Sprintf("%d on %s", v.ID, cmp.Or(v.Over, "the NIC that boots"))
		for _, a := range v.Addresses {
			text += " " + a.String()
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// keysText tells sets of public keys apart, in a few letters.
func keysText(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf("%d, sha256:%.12x", len(keys), sha256.Sum256([]byte(strings.Join(keys, "\n"))))
}

// hostParams is what the site's files say of a node's settings. It holds no secret.
func hostParams(inv *inventory.Inventory, n *inventory.Node) wire.ConfigureParams {
	p := wire.ConfigureParams{Hostname: n.Name, Domain: inv.Site.Domain, TimeServers: inv.Site.TimeServers,
		BootNIC: n.BootMAC, Address: Prefix(n).String()}
	if c := n.Hardware.Console; c.Port != "" {
		p.Console = ConsoleArg(c)
	}
	if net := n.BootNetwork; net != nil {
		if net.Gateway.IsValid() {
			p.Gateway = net.Gateway.String()
		}
		for _, d := range net.DNS {
			p.DNS = append(p.DNS, d.String())
		}
	}
	if h := n.Host; h != nil {
		p.Timezone, p.KernelArgs, p.AuthorizedKeys, p.UserData = h.Timezone, h.KernelArgs, h.Accounts.AuthorizedKeys, h.UserData
	}
	p.Host = host.Settings(n)
	p.Host.NoUpdates = true
	p.Network = host.Network(n)
	return p
}

// recordSettings records which settings the configuration of a key writes, before it does. A
// repetition keeps what was recorded first: the agent answers it with what it did
// then, whatever the site's files say since.
func (s *Stage) recordSettings(ctx context.Context, run stage.Run, n *inventory.Node, key string) error {
	if was, ok, err := readFact(run, SettingsFact, n.Name); err != nil || ok && was.Key == key {
		return err
	}
	if err := learnFact(ctx, run, host.SettingsFact, n, host.Settings(n)); err != nil {
		return err
	}
	if err := learnFact(ctx, run, host.NetworkFact, n, host.Network(n)); err != nil {
		return err
	}
	return learnFact(ctx, run, SettingsFact, n, NewGiven(key, Settings(s.inv, n)))
}
