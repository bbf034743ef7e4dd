// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// DefaultFolder is where opensm's files lie unless a caller says otherwise.
const DefaultFolder = "/etc/opensm"

// engines are the routing engines of upstream opensm (opensm(8), 3.3.24).
var engines = []string{"minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp"}

// proprietary are engines of NVIDIA's opensm that upstream's does not have. It
// says one line in its log and routes by minhop instead.
var proprietary = []string{"ar_updn", "ar_ftree", "ar_dor", "ar_torus", "dfp", "dfp2", "kdor-hc", "pqft"}

// hasSpines reports whether a fabric has switches above its leaves, and with them
// more than one way between two leaves.
func hasSpines(inv *inventory.Inventory, f *inventory.Fabric) bool {
	return slices.ContainsFunc(inv.Switches, func(s *inventory.Switch) bool {
		return s.Fabric == f && (s.Tier == inventory.Spine || s.Tier == inventory.Core)
	})
}

// Managers are the names of the controllers that run a fabric's subnet manager, the
// master first.
func Managers(f *inventory.Fabric) []string { return readManager(f.Value).runOn }

// RoutingEngines returns the engines that opensm tries in this order: those of the files, else
// what fits the fabric. The last one is always one that routes any fabric.
func RoutingEngines(inv *inventory.Inventory, f *inventory.Fabric) []string {
	if given := readManager(f.Value).routing; len(given) > 0 {
		return given
	}
	if hasSpines(inv, f) {
		return []string{"ftree", "updn"}
	}
	return []string{"minhop"}
}

// checkManager looks at the subnet_manager block.
func checkManager(inv *inventory.Inventory, f *inventory.Fabric) hcl.Diagnostics {
	m, at := readManager(f.Value), f.Place("subnet_manager")
	var diags hcl.Diagnostics
	add := func(severity hcl.DiagnosticSeverity, summary, format string, args ...any) {
		diags = append(diags, &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()})
	}
	switch {
	case !m.given:
		add(hcl.DiagError, "Fabric has no subnet manager", "Fabric %q of kind \"infiniband\" needs a subnet_manager block: without a subnet manager no port becomes active, and one that runs in a switch is not configured. Add subnet_manager { run_on = [controller.NAME] }.", f.Name)
	case m.engine == "ufm":
		add(hcl.DiagError, "Subnet manager is not supported", "Fabric %q is managed by UFM, which is configured by its own interface. The engine that is supported is \"opensm\".", f.Name)
	case len(m.runOn) == 0:
		add(hcl.DiagError, "Subnet manager has no place", "The subnet manager of fabric %q runs nowhere: set run_on = [controller.NAME].", f.Name)
	}
	for _, other := range inv.Fabrics {
		if other == f {
			break
		}
		if other.Kind != Name {
			continue
		}
		for _, name := range readManager(other.Value).runOn {
			if slices.Contains(m.runOn, name) {
				add(hcl.DiagError, "Two subnet managers on one controller", "Controller %q runs the subnet manager of fabric %q already: opensm and the programs that look at a fabric take the first port that is active. Run that of %q on another controller.", name, other.Name, f.Name)
			}
		}
	}
	for _, name := range m.routing {
		if slices.Contains(engines, name) {
			continue
		}
		hint := diag.DidYouMean(name, engines)
		if slices.Contains(proprietary, name) {
			hint = " It is one of NVIDIA's own opensm."
		}
		add(hcl.DiagError, "Unknown routing engine", "Upstream opensm has no routing engine %q and would route by minhop without stopping.%s The engines are %s.", name, hint, strings.Join(engines, ", "))
	}
	if !diags.HasErrors() && hasSpines(inv, f) {
		add(hcl.DiagWarning, "No adaptive routing", "Fabric %q has several ways between its leaves. Upstream opensm has neither adaptive routing nor SHARP: large collectives can stay 10 to 40%% below what the links carry. That is no fault of a node.", f.Name)
	}
	return diags
}

// readTexts reads a list of strings of the block; nil without one.
func readTexts(v cty.Value, name string) []string {
	list, ok := inventory.Attribute(v, name)
	if !ok || !list.CanIterateElements() {
		return nil
	}
	var out []string
	for it := list.ElementIterator(); it.Next(); {
		if _, e := it.Element(); e.Type() == cty.String && e.IsKnown() && !e.IsNull() {
			out = append(out, e.AsString())
		}
	}
	return out
}
