package inventory

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/zclconf/go-cty/cty"
)

// Block is a two-label block (image, driver, fabric, handover). Load checks its
// attributes against the kind's KindSpec; their meaning is the kind owner's, who
// decodes them later.
type Block struct {
	Kind  string // first label
	Name  string // second label, unique among its type
	Body  hcl.Body
	Ctx   *hcl.EvalContext // what the body's references mean; read-only
	Value cty.Value        // the evaluated attributes and nested blocks, as references see them
	Decl  hcl.Range        // the header

	// Ranges are the places of the attributes of the body, by name.
	Ranges map[string]hcl.Range
}

// Decode reads the body into a struct with gohcl tags. A secret is decoded into a
// cty.Value field (see SecretRef), a reference to another block likewise (see
// RefName). The diagnostics are sorted.
func (b Block) Decode(into any) hcl.Diagnostics {
	diags := gohcl.DecodeBody(b.Body, b.Ctx, into)
	sortHCL(diags)
	return diags
}
