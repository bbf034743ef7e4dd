// SPDX-License-Identifier: Apache-2.0

package cabling

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// naming is how a switch system names its ports: the first expression that
// matches the whole name decides. The group n is the number printed on the panel;
// index is a port index that counts lanes from 0.
type naming struct {
	systems []string // as the os attribute says them
	forms   []*lazyregexp.Regexp
}

func compileForms(list ...string) (out []*lazyregexp.Regexp) {
	for _, s := range list {
		out = append(out, lazyregexp.New(`^(?i:`+s+`)$`))
	}
	return out
}

// namings are the switch systems whose names are understood. A name that is not
// is no reason to call a cable wrong.
var namings = []naming{
	// SONiC says the port's alias, which is the maker's: NVIDIA etp17, a half of it
	// etp17a; Edgecore Eth17(Port17), Eth17/1(Port17); Dell hundredGigE1/17; or
	// without one its own name, Ethernet64, which counts lanes.
	{[]string{"sonic"}, compileForms(`etp(?P<n>\d+)[a-h]?`, `eth\d+(/\d+)?\(port(?P<n>\d+)\)`, `eth(?P<n>\d+)(/\d+)?`, `[a-z]+gige\d+/(?P<n>\d+)(/\d+)?`, `ethernet\d+/(?P<n>\d+)(/\d+)?`, `ethernet(?P<index>\d+)`)},
	{[]string{"cumulus", "nvos"}, compileForms(`swp(?P<n>\d+)(s\d+)?`, `sw(?P<n>\d+)p\d+`)},
	// MLNX-OS and Onyx: Eth1/17, a half Eth1/17/1; by SNMP 1/17.
	{[]string{"mlnx-os", "onyx", "nx-os", "nxos"}, compileForms(`eth(?:ernet)?\d+/(?P<n>\d+)(/\d+)?`, `1/(?P<n>\d+)(/\d+)?`)},
	{[]string{"eos", "arista"}, compileForms(`et(?:hernet)?(?P<n>\d+)(/\d+)?`)},
}

// lanes are how many lanes a port of a model has, which SONiC's own names count.
// Source: the platforms' port_config.ini in sonic-buildimage (device/mellanox).
var lanes = map[string]int{"sn2700": 4, "sn3700": 4, "sn3700c": 4, "sn4600": 4, "sn4600c": 4, "sn4700": 8, "sn5400": 8, "sn5600": 8, "sn5610n": 8, "sn5640": 8}

// PanelNumber reads the number on the panel out of a port's name. Where no os is given,
// all systems that know the name must agree: Eth1/3 is port 3 of one maker and
// port 1 of another.
func PanelNumber(os, model, name string) (int, bool) {
	found := 0
	for _, n := range namings {
		if os != "" && !oneOf(os, n.systems) {
			continue
		}
		port, known := n.read(strings.TrimSpace(name), model)
		switch {
		case !known:
		case port == 0 || found != 0 && port != found:
			return 0, false
		default:
			found = port
		}
	}
	return found, found != 0
}

// read reads a name of one system; known and 0: it is one, and the number cannot
// be told.
func (n naming) read(name, model string) (port int, known bool) {
	for _, form := range n.forms {
		if m := form.FindStringSubmatch(name); m != nil {
			return numberOf(form, m, model), true
		}
	}
	return 0, false
}

func numberOf(form *lazyregexp.Regexp, m []string, model string) int {
	if i := form.SubexpIndex("n"); i >= 0 {
		n, err := strconv.Atoi(m[i])
		if err != nil {
			return 0
		}
		return n
	}
	per := lanes[strings.ToLower(model)]
	n, err := strconv.Atoi(m[form.SubexpIndex("index")])
	if err != nil || per == 0 {
		return 0
	}
	return n/per + 1
}

func oneOf(s string, list []string) bool {
	for _, x := range list {
		if strings.EqualFold(s, x) {
			return true
		}
	}
	return false
}
