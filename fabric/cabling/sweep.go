// SPDX-License-Identifier: Apache-2.0

package cabling

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// Swept is what a sweep of an InfiniBand fabric says about its cables.
type Swept struct {
	Report
	Switches map[addr.GUID]*inventory.Switch // by node GUID: those that were recognised
	Ports    Known                           // those that were seen
	Strange  []string                        // devices that are nobody's of the site, such as hosts of subnet managers
}

// CompareSweep judges the cables of a fabric by what ibnetdiscover found: cables
// of nodes and between switches, the missing, the exchanged and the additional,
// and links that are slower or narrower than they should be. known are the ports
// of the nodes that said theirs; a port that is not in it and not found is
// unknown, since its node may be off. Where none said any, a node of which a port is found is on.
func CompareSweep(inv *inventory.Inventory, f *inventory.Fabric, known Known, t *ibnetdiscover.Topology) Swept {
	cables := IntendedOf(inv, f)
	s := newSite(inv, f, known, t, cables)
	r := Swept{Switches: s.switches, Ports: s.plugs, Strange: s.strange(t)}
	reported := map[Plug]bool{}
	for _, p := range known {
		reported[p] = true
	}
	lower, up := s.lower(), map[*inventory.Node]bool{}
	if len(known) == 0 { // else a node that has not said its GUIDs may not have set its NICs yet
		up = s.nodesUp()
	}
	r.Results = make([]Result, 0, len(cables))
	for _, c := range cables {
		r.Results = append(r.Results, s.compareCable(c, lower, reported, up))
	}
	misplaced, rest := findMisnamed(r.Results)
	slow, unrated := s.slow(cables, lower)
	r.Findings = slices.Concat(misplaced, findExchanged(rest), s.missing(rest), s.extra(cables), slow)
	for i := range r.Results {
		if x := &r.Results[i]; x.State == Conforms && unrated[x.Cable.tail()] {
			x.State, x.Why = Unknown, "it ends where it should, and the sweep does not say how fast its link is"
		}
	}
	s.addPlaces(r.Findings, cables)
	return r
}

// nodesUp are the nodes of which the sweep finds a port: they are on.
func (s *site) nodesUp() map[*inventory.Node]bool {
	up := map[*inventory.Node]bool{}
	for _, p := range s.plugs {
		up[p.Node] = true
	}
	return up
}

// IntendedOf lists the cables of a fabric with a switch at their upper end, those
// between switches too.
func IntendedOf(inv *inventory.Inventory, f *inventory.Fabric) (list []Cable) {
	for _, c := range IntendedCables(inv) {
		if c.NIC.Fabric == f {
			list = append(list, c)
		}
	}
	for _, b := range inv.Cables {
		low, high := &b.From, &b.To
		if low.Switch == nil || high.Switch == nil || low.Switch.Fabric != f && high.Switch.Fabric != f {
			continue
		}
		if low.Switch.Tier.Height() > high.Switch.Tier.Height() {
			low, high = high, low
		}
		list = append(list, Cable{Low: End{low.Switch.Name, low.Port}, Switch: high.Switch, Number: high.Port, Block: b})
	}
	return list
}

// compareCable compares one cable.
func (s *site) compareCable(c Cable, lower map[tail]spot, reported map[Plug]bool, up map[*inventory.Node]bool) Result {
	r := Result{Cable: c, State: Unknown, swept: true}
	from, seen := lower[c.tail()]
	f, linked := s.far[from]
	switch {
	case !seen || !linked:
		upper, used := s.upper(c)
		switch {
		case c.Node != nil && !reported[c.tail().Plug] && !up[c.Node]:
			r.Why = "its node has not said its GUID, and the sweep does not find it"
		case used:
			r.Why = "the sweep finds no link, and its place is taken"
		case c.Node == nil && !s.present(c.Low.Switch) && !upper:
			r.Why = "neither switch was found"
		default:
			r.State, r.Why = Missing, "the sweep finds no link"
		}
		return r
	default:
		end, ok := s.end(f.to)
		if !ok {
			r.Why = "it leads to a device that is none of the site's"
			return r
		}
		if r.Found, r.State = end, Wrong; end == c.end() || slices.Contains(c.others, end) {
			r.State = Conforms
		}
		return r
	}
}

// upper reports whether the switch of a cable was found, and whether its port has
// a link.
func (s *site) upper(c Cable) (present, used bool) {
	guid, present := s.guids[c.Switch.Name]
	_, used = s.far[spot{guid, c.Number}]
	return present, present && used
}

func (s *site) present(name string) bool {
	_, ok := s.guids[name]
	return ok
}

// missing are the cables without a link at either end.
func (s *site) missing(results []Result) (findings []stage.Finding) {
	for _, r := range results {
		if r.State != Missing {
			continue
		}
		findings = append(findings, stage.Finding{
			Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Link, Name: r.Cable.Name()}, Part: r.Cable.panel()}},
			Cause:    fmt.Sprintf("%s has no link to %s", titleOf(r.Cable), s.label(r.Cable.end())),
			Evidence: []string{fmt.Sprintf("the sweep finds no cable at %s and none at %s", r.Cable.Name(), r.Cable.end())},
			Action:   "Look whether it is plugged in at both ends, and whether its port is on; then exchange the cable or its transceivers" + again + ".",
		})
	}
	return findings
}

// extra are links between two switches that no cable of the site is.
func (s *site) extra(cables []Cable) (findings []stage.Finding) {
	planned := map[End]bool{}
	for _, c := range cables {
		planned[c.end()] = true
		if c.Node == nil {
			planned[c.Low] = true
		}
	}
	done := map[spot]bool{}
	for _, at := range s.unplanned(planned) {
		a, _ := s.end(at)
		b, _ := s.end(s.far[at].to)
		if done[at] {
			continue
		}
		done[s.far[at].to] = true
		findings = append(findings, stage.Finding{
			Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Link, Name: a.String()}}},
			Cause:    fmt.Sprintf("an additional cable links %s with %s", s.label(a), s.label(b)),
			Evidence: []string{fmt.Sprintf("the sweep finds %s at %s, and the site has no cable at either", b, a)},
			Action:   "Take it out, or write it into the site's files.",
		})
	}
	return findings
}

// unplanned lists the switch ports of the sweep that are linked with another one, neither
// of which is planned, in an order that is the same every time.
func (s *site) unplanned(planned map[End]bool) []spot {
	var list []spot
	for at, f := range s.far {
		a, ok := s.end(at)
		if !ok || planned[a] {
			continue
		}
		if b, ok := s.end(f.to); ok && !planned[b] {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b spot) int {
		x, _ := s.end(a)
		y, _ := s.end(b)
		if n := strings.Compare(x.Switch, y.Switch); n != 0 {
			return n
		}
		return x.Number - y.Number
	})
	return list
}

// laneRates are the nominal rates of one lane, bits a second (IBTA).
var laneRates = map[string]unit.BitRate{
	"SDR": 2.5e9, "DDR": 5e9, "QDR": 10e9, "FDR10": 10e9, "FDR": 14e9, "EDR": 25e9, "HDR": 50e9, "NDR": 100e9, "XDR": 200e9,
}

// rateWanted is how fast the link of a cable is to be: as its block says, or the fabric, or
// the card of a node; 0: nobody says it.
func (s *site) rateWanted(c Cable) unit.BitRate {
	switch {
	case c.Block != nil && c.Block.Speed > 0:
		return c.Block.Speed
	case s.fabric.Link == 0 && c.NIC != nil:
		return c.NIC.Speed
	}
	return s.fabric.Link
}

// slow are links that carry less than the fabric says, and the cables of which the sweep does
// not say what they carry.
func (s *site) slow(cables []Cable, lower map[tail]spot) (findings []stage.Finding, unrated map[tail]bool) {
	unrated = map[tail]bool{}
	for _, c := range cables {
		f, ok := s.far[lower[c.tail()]]
		want := s.rateWanted(c)
		if !ok || want == 0 {
			continue
		}
		width, err := strconv.Atoi(strings.TrimRight(f.link.Width, "xX"))
		lane, known := laneRates[strings.ToUpper(f.link.Speed)]
		if err != nil || !known {
			unrated[c.tail()] = true
		}
		if err != nil || !known || unit.BitRate(width)*lane >= want {
			continue
		}
		what, why := "slow", fmt.Sprintf("it runs at %s %s", f.link.Width, f.link.Speed)
		if 4*lane >= want {
			what = "narrow"
		}
		findings = append(findings, stage.Finding{
			Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Link, Name: c.Name()}, Part: c.panel()}},
			Cause:    fmt.Sprintf("the link of %s to %s is too %s: %s, which is %s of %s", titleOf(c), s.label(c.end()), what, why, unit.BitRate(width)*lane, want),
			Evidence: []string{fmt.Sprintf("ibnetdiscover says %s%s for the link between %s and %s", f.link.Width, f.link.Speed, c.Name(), c.end())},
			Action:   "Clean and reseat both ends, then exchange the cable or its transceivers" + again + ".",
		})
	}
	return findings, unrated
}

// label names a switch port with the label on the panel.
func (s *site) label(e End) string {
	if sw := s.named[e.Switch]; sw != nil {
		if printed := printedPort(sw, s.fabric, e.Number); printed != "" {
			return fmt.Sprintf("%s (port %s)", e, printed)
		}
	}
	return e.String()
}

// printedPort is how a switch's panel numbers a port of a cage of several; "" where it is
// as the site numbers it, or the model is not known.
func printedPort(sw *inventory.Switch, f *inventory.Fabric, number int) string {
	model := sw.Model
	if model == "" && f != nil {
		model = f.Switch.Model
	}
	if m, ok := topology.FindModel(model); ok && m.Cage > 1 {
		return topology.PortLabel(m.Cage, number, 0)
	}
	return ""
}

// socket says where a technician finds the switch port that a cable belongs into.
func (c Cable) socket() string {
	var f *inventory.Fabric
	if c.NIC != nil {
		f = c.NIC.Fabric
	}
	var words []string
	if printed := printedPort(c.Switch, f, c.Number); printed != "" {
		words = append(words, "port "+printed)
	}
	if sw := c.Switch; sw.Rack != nil {
		words = append(words, fmt.Sprintf("rack %s, unit %d", sw.Rack.Name, sw.Unit))
	}
	if len(words) == 0 {
		return c.end().String()
	}
	return fmt.Sprintf("%s (%s)", c.end(), strings.Join(words, "; "))
}

// addPlaces adds to findings where their parts stand.
func (s *site) addPlaces(findings []stage.Finding, cables []Cable) {
	suspected := map[string][]int{} // indices of findings, by the name of a link
	for i, f := range findings {
		for _, x := range f.Suspects {
			if at := suspected[x.Subject.Name]; !slices.Contains(at, i) {
				suspected[x.Subject.Name] = append(at, i)
			}
		}
	}
	if len(suspected) == 0 {
		return
	}
	parts := make([][]Cable, len(findings))
	for _, c := range cables {
		for _, i := range suspected[c.Name()] {
			parts[i] = append(parts[i], c)
		}
	}
	for i := range findings {
		findings[i].Evidence = append(findings[i].Evidence, s.places(parts[i])...)
	}
}

// places says where cables and their ends stand.
func (s *site) places(parts []Cable) (reported []string) {
	var list []string
	for _, c := range parts {
		if c.Node != nil && c.Node.Rack != nil {
			list = append(list, fmt.Sprintf("%s is in rack %s, unit %d", c.Node.Name, c.Node.Rack.Name, c.Node.Unit))
		}
		if sw := c.Switch; sw.Rack != nil {
			list = append(list, fmt.Sprintf("%s is in rack %s, unit %d, and the cable belongs into %s", sw.Name, sw.Rack.Name, sw.Unit, s.label(c.end())))
		} else {
			list = append(list, fmt.Sprintf("the cable belongs into %s", s.label(c.end())))
		}
	}
	for _, text := range list {
		if !slices.Contains(reported, text) {
			reported = append(reported, text)
		}
	}
	return reported
}

// strange lists the HCAs and switches that nobody of the site is.
func (s *site) strange(t *ibnetdiscover.Topology) (list []string) {
	for _, h := range t.HCAs {
		if !slices.ContainsFunc(h.Ports, func(p ibnetdiscover.Port) bool { _, ok := s.plugs[p.GUID]; return ok }) {
			list = append(list, fmt.Sprintf("HCA %s %q", h.GUID, h.Name))
		}
	}
	for _, x := range t.Switches {
		if s.switches[x.GUID] == nil {
			list = append(list, fmt.Sprintf("switch %s %q", x.GUID, x.Name))
		}
	}
	slices.Sort(list)
	return list
}
