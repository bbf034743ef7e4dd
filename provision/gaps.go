// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/provision/services"
)

// UnimplementedCheck is the check of settings that this version does nothing with.
const UnimplementedCheck = "setting.unimplemented"

// Gaps lists what the site asks for and does not get from this version, or not yet. It
// is computed from the files, and from what lies in the image store and among the
// repositories; nothing is contacted or changed.
func (s *Site) Gaps() (gaps.List, error) { return s.gapsIn(nil) }

// gapsIn are the gaps by what the state knows; nil: nothing.
func (s *Site) gapsIn(view stage.View) (gaps.List, error) {
	digests, err := s.Artifacts.Digests()
	if err != nil {
		return nil, err
	}
	f := gaps.Found{Refused: slices.Concat(services.CheckControllers(s.Inv), s.Artifacts.Unsigned(digests), s.Artifacts.Unshared(digests), s.offlineWorld().refusals(digests, view)), Stock: s.Artifacts.Unmirrored(digests)}
	return gaps.Collect(s.Inv, f), nil
}

// refusals are what the stages of the site find wrong for a plan.
func (w world) refusals(digests map[string]string, view stage.View) (found hcl.Diagnostics) {
	for _, st := range w.bareStages(digests) {
		switch c := st.(type) {
		case stage.ViewChecker:
			found = append(found, c.CheckView(view)...)
		case stage.Checker:
			found = append(found, c.Check()...)
		}
	}
	return found
}

// Refusals are the errors for which a plan of a site is refused although all of its images
// are built, with their places.
func Refusals(inv *inventory.Inventory) (hcl.Diagnostics, error) {
	s, err := newSite(inv, Options{})
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, i := range inv.Images {
		digests[i.Name] = "built"
	}
	all := slices.Concat(refused(inv), s.offlineWorld().refusals(digests, nil))
	return slices.DeleteFunc(all, func(d *hcl.Diagnostic) bool { return d.Severity != hcl.DiagError }), nil
}

// MissingKinds are the kinds of typed blocks that the language has and no plan can hold.
func MissingKinds() []gaps.MissingKind {
	w := world{inv: &inventory.Inventory{}}
	return gaps.Kinds{Drivers: driverKinds(w), Fabrics: fabricKinds(w), Handovers: handoverKinds(w)}.Missing(inventory.DefaultKinds())
}

// checkUnimplemented warns of settings that a plan refuses or ignores.
func checkUnimplemented(inv *inventory.Inventory) (found diag.List) {
	for _, g := range gaps.OfSettings(inv) {
		found.Add(UnimplementedCheck, g.Range(), g.Summary, g.Detail).Warn()
	}
	for _, d := range services.CheckControllers(inv) {
		found.Add(UnimplementedCheck, *d.Subject, d.Summary, d.Detail).Warn()
	}
	return found
}

// refused are the errors of a plan that no stage finds.
func refused(inv *inventory.Inventory) hcl.Diagnostics {
	return slices.Concat(services.CheckControllers(inv), gaps.RefuseSettings(inv))
}
