package provision

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

// FabricFile is one file that a fabric's switches or managers are configured with.
type FabricFile struct {
	Fabric  string `json:"fabric"`
	Of      string `json:"of"`   // the controller or switch that it is for
	Name    string `json:"name"` // below the folder there
	Content []byte `json:"content"`
}

// renderers are what kinds of fabrics write, by kind.
var renderers = map[string]func(*Site, context.Context, state.Reader, *inventory.Fabric) ([]FabricFile, error){
	infiniband.Name: (*Site).subnetFiles,
	roce.Name:       (*Site).switchFiles,
}

// FabricFiles makes the files of fabrics for review, all that have any when none is
// named, without touching anything. What only the nodes know, such as GUIDs, is
// from the state (nil: nothing is known).
func (s *Site) FabricFiles(ctx context.Context, r state.Reader, names ...string) (files []FabricFile, err error) {
	fabrics, err := s.fabrics(names)
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
		list, err := render(s, ctx, r, f)
		if err != nil {
			return nil, fmt.Errorf("fabric %s: %w", f.Name, err)
		}
		files = append(files, list...)
	}
	return files, nil
}

// fabrics are those of the names, all without any.
func (s *Site) fabrics(names []string) (list []*inventory.Fabric, err error) {
	if len(names) == 0 {
		return s.Inv.Fabrics, nil
	}
	var known []string
	for _, f := range s.Inv.Fabrics {
		known = append(known, f.Name)
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, errkind.New(errkind.NotFound, "there is no fabric %q.%s", name, diag.DidYouMean(name, known))
		}
		list = append(list, s.Inv.Fabrics[i])
	}
	return list, nil
}

// subnetFiles are those of every subnet manager of an InfiniBand fabric.
func (s *Site) subnetFiles(ctx context.Context, r state.Reader, f *inventory.Fabric) (files []FabricFile, err error) {
	members, err := s.members(ctx, r, f)
	if err != nil {
		return nil, err
	}
	for i, host := range infiniband.Managers(f) {
		for _, x := range infiniband.Render(s.Inv, f, infiniband.Known{Members: members}, infiniband.DefaultFolder, i) {
			files = append(files, FabricFile{Fabric: f.Name, Of: host, Name: x.Name, Content: x.Content})
		}
	}
	return files, nil
}

// members are the ports of a fabric that the nodes have told of in earlier runs.
func (s *Site) members(ctx context.Context, r state.Reader, f *inventory.Fabric) (list []infiniband.Member, err error) {
	if r == nil {
		return nil, nil
	}
	prior, err := state.ReadPrior(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, n := range s.Inv.Nodes {
		known, ok := prior.Fact(infiniband.Identities(f.Name).Of(subject.OfNode(n.Name)))
		if !ok || n.Hardware == nil {
			continue
		}
		said, err := infiniband.Identities(f.Name).Get(known)
		if err != nil {
			return nil, err
		}
		list = append(list, infiniband.Members(f, n, said)...)
	}
	return list, nil
}

// FabricReport is how the cables of one fabric are.
type FabricReport struct {
	Fabric   string          `json:"fabric"`
	Cables   int             `json:"cables"`  // that the site intends
	Conform  int             `json:"conform"` // of them
	Unknown  int             `json:"unknown"`
	Switches int             `json:"switches"` // that were recognised
	Findings []stage.Finding `json:"findings"`
	Strange  []string        `json:"strange"` // devices that are nobody's of the site
}

// VerifyFabric compares the cables of an InfiniBand fabric with what ibnetdiscover
// printed; nil: with a sweep from this controller, now. Nothing is changed. name
// may be empty where the site has one such fabric.
func (s *Site) VerifyFabric(ctx context.Context, r state.Reader, name string, output []byte) (rep FabricReport, err error) {
	f, err := s.subnetFabric(name)
	if err != nil {
		return rep, err
	}
	var found *ibnetdiscover.Topology
	if output == nil {
		if s.subnets == nil {
			return rep, errkind.New(errkind.Unsupported, "fabric %s cannot be swept from here", f.Name).Do("Give a file with the output of ibnetdiscover.")
		}
		found, err = (&infiniband.Subnet{Inv: s.Inv, Fabric: f, Host: s.subnets(f.Name)}).Sweep(ctx)
	} else {
		found, err = readSweep(output)
	}
	if err != nil {
		return rep, err
	}
	members, err := s.members(ctx, r, f)
	if err != nil {
		return rep, err
	}
	swept := cabling.CompareSweep(s.Inv, f, infiniband.Plugs(members), found)
	rep = FabricReport{Fabric: f.Name, Cables: len(swept.Results), Switches: len(swept.Switches), Findings: append([]stage.Finding{}, swept.Findings...), Strange: append([]string{}, swept.Strange...)}
	for _, x := range swept.Results {
		switch x.State {
		case cabling.Conforms:
			rep.Conform++
		case cabling.Unknown:
			rep.Unknown++
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

// subnetFabric is the InfiniBand fabric of that name, or the only one.
func (s *Site) subnetFabric(name string) (*inventory.Fabric, error) {
	if name != "" {
		list, err := s.fabrics([]string{name})
		if err != nil {
			return nil, err
		}
		if list[0].Kind != infiniband.Name {
			return nil, errkind.New(errkind.Unsupported, "fabric %s is of kind %s: its cables are compared by LLDP when a plan is applied", name, list[0].Kind)
		}
		return list[0], nil
	}
	var only *inventory.Fabric
	for _, f := range s.Inv.Fabrics {
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
