// SPDX-License-Identifier: Apache-2.0

package language

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"go.yaml.in/yaml/v3"
)

// Bounds of a YAML document: aliases make a small text mean a large value.
const (
	yamlValues = 500_000
	yamlDepth  = 100
)

var yamlDecodeFunc = function.New(&function.Spec{
	Description: "yamldecode reads one YAML document.",
	Params:      []function.Parameter{{Name: "text", Type: cty.String}},
	Type:        function.StaticReturnType(cty.DynamicPseudoType),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(args[0].AsString()), &doc); err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		if len(doc.Content) == 0 {
			return cty.NullVal(cty.DynamicPseudoType), nil
		}
		y := yamlReader{left: yamlValues}
		v, err := y.value(doc.Content[0], 0)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		return v, nil
	},
})

type yamlReader struct{ left int }

func (y *yamlReader) value(n *yaml.Node, level int) (cty.Value, error) {
	if y.left--; y.left < 0 || level > yamlDepth {
		return cty.NilVal, errors.New("the document is larger or deeper than a site may need")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return y.value(n.Alias, level+1)
	case yaml.SequenceNode:
		out := make([]cty.Value, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := y.value(c, level+1)
			if err != nil {
				return cty.NilVal, err
			}
			out = append(out, v)
		}
		return cty.TupleVal(out), nil
	case yaml.MappingNode:
		return y.mapping(n, level)
	}
	return readScalar(n)
}

func (y *yamlReader) mapping(n *yaml.Node, level int) (cty.Value, error) {
	out := map[string]cty.Value{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			return cty.NilVal, fmt.Errorf("line %d: a key must be a word", k.Line)
		}
		if k.Tag == "!!merge" {
			return cty.NilVal, fmt.Errorf("line %d: merge keys (<<) are not read", k.Line)
		}
		v, err := y.value(n.Content[i+1], level+1)
		if err != nil {
			return cty.NilVal, err
		}
		out[k.Value] = v
	}
	return cty.ObjectVal(out), nil
}

func readScalar(n *yaml.Node) (cty.Value, error) {
	switch n.ShortTag() {
	case "!!null":
		return cty.NullVal(cty.DynamicPseudoType), nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return cty.NilVal, err
		}
		return cty.BoolVal(b), nil
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil {
			return cty.NilVal, fmt.Errorf("line %d: %q is too large a number", n.Line, n.Value)
		}
		return cty.NumberIntVal(i), nil
	case "!!float":
		v, err := cty.ParseNumberVal(n.Value)
		if err != nil {
			return cty.NilVal, fmt.Errorf("line %d: %q is no number", n.Line, n.Value)
		}
		return v, nil
	}
	return cty.StringVal(n.Value), nil
}
