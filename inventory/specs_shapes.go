// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// feedText is one supply as written: the PDU's label, and the outlet where one is
// named.
type feedText struct {
	supply int // 1..; 0: in the order of the list
	pdu    string
	outlet int // 0: any
}

// typeFeeds is a list of PDUs that the supplies take in turn, or a map from
// supply to outlet.
var typeFeeds = language.Custom(`feeds such as ["a", "b"] or { psu1 = "a/1", psu2 = "b/1" }`, parseFeeds)

func parseFeeds(v cty.Value) ([]feedText, error) {
	ty := v.Type()
	if !v.CanIterateElements() {
		return nil, fmt.Errorf(`feeds are written ["a", "b"] or { psu1 = "a/1", psu2 = "b/1" }`)
	}
	keyed := ty.IsObjectType() || ty.IsMapType()
	out := make([]feedText, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if e.IsNull() || e.Type() != cty.String {
			return nil, &language.Problem{Detail: "each feed is the name of a PDU of the rack, in quotes", Element: len(out)}
		}
		f, err := parseFeed(e.AsString())
		if err != nil {
			return nil, &language.Problem{Detail: err.Error(), Element: len(out)}
		}
		if keyed {
			n, err := strconv.Atoi(strings.TrimPrefix(k.AsString(), "psu"))
			if err != nil || n < 1 || n > 99 || !strings.HasPrefix(k.AsString(), "psu") {
				return nil, fmt.Errorf("%q is no supply; they are called psu1, psu2 and so on", k.AsString())
			}
			f.supply = n
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b feedText) int { return a.supply - b.supply })
	return out, nil
}

func parseFeed(s string) (feedText, error) {
	name, rest, found := strings.Cut(s, "/")
	f := feedText{pdu: name}
	if !found {
		return f, nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 1 {
		return f, fmt.Errorf(`%q is no feed: a PDU such as "a", or a PDU and an outlet such as "a/1"`, s)
	}
	f.outlet = n
	return f, nil
}

// typePorts is the list of a NIC's ports.
var typePorts = language.Custom(`ports such as [{ rail = 0, pci = "0000:18:00.0", panel = "OSFP 1" }]`, parsePorts)

func parsePorts(v cty.Value) ([]NICPort, error) {
	if !v.CanIterateElements() || v.Type().IsObjectType() || v.Type().IsMapType() {
		return nil, fmt.Errorf(`ports are a list such as [{ rail = 0, pci = "0000:18:00.0" }]`)
	}
	out := make([]NICPort, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		p, err := parsePort(e)
		if err != nil {
			return nil, &language.Problem{Detail: err.Error(), Element: len(out)}
		}
		out = append(out, p)
	}
	return out, nil
}

var portAttrs = []string{"rail", "pci", "panel"}

func parsePort(v cty.Value) (NICPort, error) {
	p := NICPort{Rail: -1}
	if v.IsNull() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return p, fmt.Errorf(`a port is written { rail = 0, pci = "0000:18:00.0", panel = "OSFP 1" }`)
	}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		name := k.AsString()
		switch {
		case !slices.Contains(portAttrs, name):
			return p, fmt.Errorf("a port has no attribute %q.%s", name, diag.DidYouMean(name, portAttrs))
		case e.IsNull():
		case name == "rail":
			rail, ok := railNumber(e)
			if !ok {
				return p, fmt.Errorf("the rail of a port is a whole number from 0 to 63")
			}
			p.Rail = rail
		case e.Type() != cty.String:
			return p, fmt.Errorf("%s of a port is a string", name)
		case name == "panel":
			p.Panel = e.AsString()
		case !pciAddress.MatchString(e.AsString()):
			return p, fmt.Errorf(`%q is not a PCI address such as "0000:18:00.0"`, e.AsString())
		default:
			p.PCI = e.AsString()
		}
	}
	if p.PCI == "" {
		return p, fmt.Errorf("a port needs its PCI address: pci = \"0000:18:00.0\"")
	}
	return p, nil
}

// railNumber reads a whole number from 0 to 63.
func railNumber(v cty.Value) (int, bool) {
	if v.Type() != cty.Number {
		return 0, false
	}
	n, acc := v.AsBigFloat().Int64()
	return int(n), acc == big.Exact && n >= 0 && n <= 63
}
