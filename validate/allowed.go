package validate

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/validate/gate"
)

// allowed are the gates that the site allows a node to fail, with its reasons.
func allowed(n *inventory.Node) map[string]string {
	all := map[string]string{}
	if n.Validation != nil {
		for _, a := range n.Validation.Allowed {
			all[a.Gate] = a.Reason
		}
	}
	return all
}

// allowedInputs declares them.
func allowedInputs(n *inventory.Node) (in []plan.Input) {
	if n.Validation != nil {
		for _, a := range n.Validation.Allowed {
			in = append(in, plan.Input{Name: "allowed gate", Value: a.Gate, Decl: stage.Source(a.Decl)})
		}
	}
	return in
}

// checkAllowed finds gates that cannot be allowed to fail, or that there are none of.
func checkAllowed(v *inventory.Validation, add func(hcl.DiagnosticSeverity, hcl.Range, string, string, ...any)) {
	known := gate.Allowable()
	for _, a := range v.Allowed {
		if !slices.Contains(known, a.Gate) {
			add(hcl.DiagError, a.Decl, "Gate cannot be allowed", "Validation %q allows %q to fail, and that is no gate that can be allowed.%s Those are %s.", v.Name, a.Gate, diag.DidYouMean(a.Gate, known), strings.Join(known, ", "))
		}
	}
}
