// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ironrail/ironrail/internal/addr"
)

// netplanProgram is in every system that has netplan.
const netplanProgram = "usr/sbin/netplan"

// netplanFile is what matters of a netplan(5) file.
type netplanFile struct {
	Network struct {
		Ethernets map[string]netplanInterface `yaml:"ethernets"`
		Bonds     map[string]netplanInterface `yaml:"bonds"`
		VLANs     map[string]netplanInterface `yaml:"vlans"`
	} `yaml:"network"`
}

type netplanInterface struct {
	Match struct {
		MAC string `yaml:"macaddress"`
	} `yaml:"match"`
	MAC       string         `yaml:"macaddress"`
	MTU       int            `yaml:"mtu"`
	Addresses []netip.Prefix `yaml:"addresses"`
	Routes    []struct {
		To  string `yaml:"to"`
		Via string `yaml:"via"`
	} `yaml:"routes"`
	Interfaces []string `yaml:"interfaces"` // of a bond, by their identifiers
	ID         int      `yaml:"id"`         // of a VLAN
	Link       string   `yaml:"link"`       // identifier of what a VLAN is on
	Parameters struct {
		Mode string `yaml:"mode"`
	} `yaml:"parameters"`
}

// netplan does what netplan does at boot: of its files it makes those of networkd. A file
// that is wrong is an error, and nothing is made.
func (n *node) netplan() (list []networkFile, err error) {
	const dir = "etc/netplan"
	if !n.tree.exists(netplanProgram) {
		return nil, nil
	}
	for _, name := range n.fs.Names(dir) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		var f netplanFile
		if err := yaml.Unmarshal([]byte(n.fs.Text(dir, name)), &f); err != nil {
			return nil, fmt.Errorf("/%s/%s: %w", dir, name, err)
		}
		files, err := f.networkd()
		if err != nil {
			return nil, fmt.Errorf("/%s/%s: %w", dir, name, err)
		}
		list = append(list, files...)
	}
	return list, nil
}

// networkd is what comes of a file.
func (f netplanFile) networkd() (list []networkFile, err error) {
	bond := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.Network.Bonds)) {
		x := f.Network.Bonds[name]
		own, err := addr.ParseMAC(x.MAC)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, id := range x.Interfaces {
			if _, ok := f.Network.Ethernets[id]; !ok {
				return nil, fmt.Errorf("%s: interface '%s' is not defined", name, id)
			}
			bond[id] = name
		}
		list = append(list, networkFile{name: name, kind: "bond", mode: x.Parameters.Mode, own: own}, x.file(networkFile{match: name, vlans: f.vlansOn(name)}))
	}
	for _, id := range slices.Sorted(maps.Keys(f.Network.Ethernets)) {
		x := f.Network.Ethernets[id]
		mac, err := addr.ParseMAC(x.Match.MAC)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		list = append(list, x.file(networkFile{mac: mac, bond: bond[id], vlans: f.vlansOn(id)}))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Network.VLANs)) {
		x := f.Network.VLANs[name]
		_, port := f.Network.Ethernets[x.Link]
		if _, bond := f.Network.Bonds[x.Link]; !port && !bond {
			return nil, fmt.Errorf("%s: interface '%s' is not defined", name, x.Link)
		}
		list = append(list, networkFile{name: name, kind: "vlan", id: x.ID}, x.file(networkFile{match: name}))
	}
	return list, nil
}

// vlansOn are the names of the VLAN interfaces on an interface.
func (f netplanFile) vlansOn(id string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(f.Network.VLANs)) {
		if f.Network.VLANs[name].Link == id {
			names = append(names, name)
		}
	}
	return names
}

// file is an interface with its addresses and routes.
func (x netplanInterface) file(f networkFile) networkFile {
	f.mtu, f.addresses = x.MTU, x.Addresses
	for _, r := range x.Routes {
		if r.To == "default" {
			f.setGateway(r.Via)
		}
	}
	return f
}

// runNetplan is `netplan generate`.
func runNetplan(_ context.Context, c call) int {
	if len(c.Argv) != 2 || c.Argv[1] != "generate" || !c.n.tree.exists(netplanProgram) {
		fmt.Fprintln(c.Err, "netplan: only generate is here")
		return 1
	}
	if _, err := c.n.netplan(); err != nil {
		fmt.Fprintln(c.Err, err)
		return 1
	}
	return 0
}
