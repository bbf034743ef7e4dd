// SPDX-License-Identifier: Apache-2.0

package bimodal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/uniform"
)

// mostNamed is how many differences a sentence names: racks and hardware come first.
const mostNamed = 3

// Trait is something that is known of a node, such as its rack.
type Trait struct{ Name, Value string }

// Traits are what is known of nodes, by their names. Each node has a trait once.
type Traits map[string][]Trait

// bios is what the oob stage has set in the firmware of a node and read back.
const bios = fact.Name[struct {
	Settings map[string]string `json:"settings"`
}]("bmc.bios_asked")

// ReadTraits collects what is known of nodes: where they are, what the site says that they are, and what
// their health checks have read of models, firmware and settings.
func ReadTraits(run stage.Run, nodes []*inventory.Node) Traits {
	all := make(Traits, len(nodes))
	for _, n := range nodes {
		var list []Trait
		if n.Rack != nil {
			list = append(list, Trait{"rack", n.Rack.Name})
		}
		if n.Hardware != nil {
			list = append(list, Trait{"hardware block", n.Hardware.Name})
		}
		if n.Image != nil {
			list = append(list, Trait{"image", n.Image.Name})
		}
		id := subject.OfNode(n.Name)
		rec, _ := target.ReadFact(run, uniform.VersionsFact, id)
		of := uniform.GroupTraits(rec.Traits)
		for _, a := range slices.SortedFunc(maps.Keys(of), uniform.About.Compare) {
			var values []string
			for _, t := range of[a] {
				values = append(values, t.Value)
			}
			slices.Sort(values)
			list = append(list, Trait{uniform.Row{Key: a.Key, Of: a.Of}.Name(), strings.Join(values, " and ")})
		}
		asked, _ := target.ReadFact(run, bios, id)
		for _, name := range slices.Sorted(maps.Keys(asked.Settings)) {
			list = append(list, Trait{"BIOS setting " + name, asked.Settings[name]})
		}
		all[n.Name] = list
	}
	return all
}

// differences are the traits that all nodes of both groups have and in which no node of one is like
// one of the other: "rack: r01 of the slower, r02 of the faster". A trait that nearly every node has
// a value of its own of, such as a serial number, distinguishes nothing.
func (g Groups) differences(traits Traits) (list []string) {
	if len(g.Low.Nodes) == 0 {
		return nil
	}
	for _, t := range traits[g.Low.Nodes[0]] {
		low, high := traits.values(g.Low.Nodes, t.Name), traits.values(g.High.Nodes, t.Name)
		if low == nil || high == nil || slices.ContainsFunc(low, func(v string) bool { return slices.Contains(high, v) }) {
			continue
		}
		list = append(list, fmt.Sprintf("%s: %s of the slower, %s of the faster", t.Name, result.NameSome(low), result.NameSome(high)))
	}
	return list
}

// values are those that nodes have of a trait, each once; nil: one of them has none, or more than half
// of them have one of their own.
func (t Traits) values(nodes []string, name string) []string {
	of := map[string]bool{}
	for _, n := range nodes {
		i := slices.IndexFunc(t[n], func(x Trait) bool { return x.Name == name })
		if i < 0 {
			return nil
		}
		of[t[n][i].Value] = true
	}
	if 2*len(of) > len(nodes) {
		return nil
	}
	return slices.Sorted(maps.Keys(of))
}
