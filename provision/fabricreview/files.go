// SPDX-License-Identifier: Apache-2.0

// Package fabricreview makes the files of fabrics for review, and compares cables and
// configurations of switches with what the site says, without changing anything.
package fabricreview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// Review looks at the fabrics of a site.
type Review struct {
	Inv     *inventory.Inventory
	Subnets func(fabric string) infiniband.Host // where subnet managers run; nil: nowhere
}

// File is one file that a fabric's switches or managers are configured with.
type File struct {
	Fabric  string `json:"fabric"`
	Of      string `json:"of"`   // the controller or switch that it is for
	Name    string `json:"name"` // below the folder there
	Content []byte `json:"content"`
}

// renderers are what kinds of fabrics write, by kind.
var renderers = map[string]func(Review, context.Context, state.Reader, *inventory.Fabric) ([]File, error){
	infiniband.Name: Review.subnetFiles,
	roce.Name:       Review.switchFiles,
}

// Files makes the files of fabrics for review, all that have any when none is
// named, without touching anything. What only the nodes know, such as GUIDs, is
// from the state (nil: nothing is known).
func (r Review) Files(ctx context.Context, st state.Reader, names ...string) (files []File, err error) {
	fabrics, err := r.findFabrics(names)
	if err != nil {
		return nil, err
	}
	for _, f := range fabrics {
		render := renderers[f.Kind]
		if render == nil {
			if len(names) > 0 {
				return nil, errkind.New(errkind.Unsupported, "fabric %s of kind %s has no files", f.Name, f.Kind)
			}
			continue
		}
		list, err := render(r, ctx, st, f)
		if err != nil {
			return nil, fmt.Errorf("fabric %s: %w", f.Name, err)
		}
		files = append(files, list...)
	}
	return files, nil
}

// findFabrics returns those of the names, all without any.
func (r Review) findFabrics(names []string) (list []*inventory.Fabric, err error) {
	if len(names) == 0 {
		return r.Inv.Fabrics, nil
	}
	var known []string
	for _, f := range r.Inv.Fabrics {
		known = append(known, f.Name)
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, errkind.New(errkind.NotFound, "there is no fabric %q.%s", name, diag.DidYouMean(name, known))
		}
		list = append(list, r.Inv.Fabrics[i])
	}
	return list, nil
}

// subnetFiles are those of every subnet manager of an InfiniBand fabric.
func (r Review) subnetFiles(ctx context.Context, st state.Reader, f *inventory.Fabric) (files []File, err error) {
	members, err := r.readMembers(ctx, st, f)
	if err != nil {
		return nil, err
	}
	for i, host := range infiniband.Managers(f) {
		for _, x := range infiniband.Render(r.Inv, f, infiniband.Known{Members: members}, infiniband.DefaultFolder, i) {
			files = append(files, File{Fabric: f.Name, Of: host, Name: x.Name, Content: x.Content})
		}
	}
	return files, nil
}

// readMembers returns the ports of a fabric that the nodes have told of in earlier runs.
func (r Review) readMembers(ctx context.Context, st state.Reader, f *inventory.Fabric) (list []infiniband.Member, err error) {
	if st == nil {
		return nil, nil
	}
	prior, err := state.ReadPrior(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, n := range r.Inv.Nodes {
		known, ok := prior.Fact(infiniband.Identities(f.Name).Of(subject.OfNode(n.Name)))
		if !ok || n.Hardware == nil {
			continue
		}
		identities, err := infiniband.Identities(f.Name).Get(known)
		if err != nil {
			return nil, err
		}
		list = append(list, infiniband.Members(f, n, identities)...)
	}
	return list, nil
}

// CableReport is how the cables of one fabric are.
type CableReport struct {
	Fabric   string          `json:"fabric"`
	Cables   int             `json:"cables"`  // that the site intends
	Conform  int             `json:"conform"` // of them
	Unknown  int             `json:"unknown"`
	Switches int             `json:"switches"` // that were recognised
	Findings []stage.Finding `json:"findings"`
	Strange  []string        `json:"strange"` // devices that are nobody's of the site
	// UnknownCables are those of Unknown, in the order of the site's files.
	UnknownCables []UnknownCable `json:"unknown_cables"`
}

// UnknownCable is a cable of which a sweep does not say whether it is as the site says.
type UnknownCable struct {
	Cable string `json:"cable"` // the name of the link: its lower end
	To    string `json:"to"`    // the switch port that it should end at
	Why   string `json:"why"`
}

// VerifyCables compares the cables of an InfiniBand fabric with what ibnetdiscover
// printed; nil: with a sweep from this controller, now. Nothing is changed. name
// may be empty where the site has one such fabric.
func (r Review) VerifyCables(ctx context.Context, st state.Reader, name string, output []byte) (rep CableReport, err error) {
	f, err := r.findSubnetFabric(name)
	if err != nil {
		return rep, err
	}
	var found *ibnetdiscover.Topology
	if output == nil {
		if r.Subnets == nil {
			return rep, errkind.New(errkind.Unsupported, "fabric %s cannot be swept from here", f.Name).Do("Give a file with the output of ibnetdiscover.")
		}
		found, err = (&infiniband.Subnet{Inv: r.Inv, Fabric: f, Host: r.Subnets(f.Name)}).Sweep(ctx)
	} else {
		found, err = readSweep(output)
	}
	if err != nil {
		return rep, err
	}
	members, err := r.readMembers(ctx, st, f)
	if err != nil {
		return rep, err
	}
	swept := cabling.CompareSweep(r.Inv, f, infiniband.Plugs(members), found)
	rep = CableReport{Fabric: f.Name, Cables: len(swept.Results), Switches: len(swept.Switches), Findings: append([]stage.Finding{}, swept.Findings...), Strange: append([]string{}, swept.Strange...), UnknownCables: []UnknownCable{}}
	for _, x := range swept.Results {
		switch x.State {
		case cabling.Conforms:
			rep.Conform++
		case cabling.Unknown:
			rep.Unknown++
			rep.UnknownCables = append(rep.UnknownCables, UnknownCable{x.Cable.Name(), fmt.Sprintf("%s/%d", x.Cable.Switch.Name, x.Cable.Number), x.Why})
		}
	}
	return rep, nil
}

func readSweep(output []byte) (*ibnetdiscover.Topology, error) {
	found, problems, err := ibnetdiscover.Parse(output)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "this is no output of ibnetdiscover: %w", err)
	}
	var all []error
	for _, p := range problems {
		all = append(all, errkind.New(errkind.Invalid, "line %d: %s", p.Line, p.Text).Do("Sweep again: what is cut off or contradicts itself cannot be compared."))
	}
	return found, errors.Join(all[:min(len(all), 3)]...)
}

// findSubnetFabric returns the InfiniBand fabric of that name, or the only one.
func (r Review) findSubnetFabric(name string) (*inventory.Fabric, error) {
	if name != "" {
		list, err := r.findFabrics([]string{name})
		if err != nil {
			return nil, err
		}
		if list[0].Kind != infiniband.Name {
			return nil, errkind.New(errkind.Unsupported, "fabric %s is of kind %s: its cables are compared by LLDP when a plan is applied", name, list[0].Kind)
		}
		return list[0], nil
	}
	var only *inventory.Fabric
	for _, f := range r.Inv.Fabrics {
		if f.Kind != infiniband.Name {
			continue
		}
		if only != nil {
			return nil, errkind.New(errkind.Conflict, "the site has several InfiniBand fabrics").Do(fmt.Sprintf("Say which with --fabric, such as --fabric %s.", f.Name))
		}
		only = f
	}
	if only == nil {
		return nil, errkind.New(errkind.NotFound, "the site has no InfiniBand fabric")
	}
	return only, nil
}
