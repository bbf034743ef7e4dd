// SPDX-License-Identifier: Apache-2.0

package language

import (
	"math/big"
	"net/netip"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// The functions on prefixes are those of Terraform; cty's library has none.

var cidrHostFunc = function.New(&function.Spec{
	Description: "cidrhost returns address number n of a prefix; a negative n counts from its end.",
	Params:      []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "hostnum", Type: cty.Number}},
	Type:        function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := prefixArg(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		n, acc := args[1].AsBigFloat().Int(nil)
		if acc != big.Exact {
			return cty.NilVal, argError(1, "a whole number is wanted")
		}
		size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
		if n.Sign() < 0 {
			n = n.Add(n, size)
		}
		if n.Sign() < 0 || n.Cmp(size) >= 0 {
			return cty.NilVal, argError(1, "prefix %s has only %s addresses", p, size)
		}
		return cty.StringVal(offsetAddress(p.Addr(), n).String()), nil
	},
})

var cidrSubnetFunc = function.New(&function.Spec{
	Description: "cidrsubnet returns subnet number netnum of a prefix, newbits longer.",
	Params:      []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "newbits", Type: cty.Number}, {Name: "netnum", Type: cty.Number}},
	Type:        function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := prefixArg(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		newbits, acc := args[1].AsBigFloat().Int64()
		room := p.Addr().BitLen() - p.Bits()
		if acc != big.Exact || newbits < 0 || newbits > int64(room) {
			return cty.NilVal, argError(1, "prefix %s can grow by 0 to %d bits", p, room)
		}
		n, acc := args[2].AsBigFloat().Int(nil)
		count := new(big.Int).Lsh(big.NewInt(1), uint(newbits))
		if acc != big.Exact || n.Sign() < 0 || n.Cmp(count) >= 0 {
			return cty.NilVal, argError(2, "there are %s subnets of that size in %s", count, p)
		}
		bits := p.Bits() + int(newbits)
		n.Lsh(n, uint(p.Addr().BitLen()-bits))
		return cty.StringVal(netip.PrefixFrom(offsetAddress(p.Addr(), n), bits).String()), nil
	},
})

var cidrNetmaskFunc = function.New(&function.Spec{
	Description: "cidrnetmask returns the mask of an IPv4 prefix, such as 255.255.240.0.",
	Params:      []function.Parameter{{Name: "prefix", Type: cty.String}},
	Type:        function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := prefixArg(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		if !p.Addr().Is4() {
			return cty.NilVal, argError(0, "only IPv4 has netmasks")
		}
		mask := ^uint32(0) << (32 - p.Bits())
		if p.Bits() == 0 {
			mask = 0
		}
		return cty.StringVal(netip.AddrFrom4([4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}).String()), nil
	},
})

func prefixArg(v cty.Value) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(v.AsString())
	if err != nil {
		return p, argError(0, "%q is no prefix such as 10.20.0.0/20", v.AsString())
	}
	return p.Masked(), nil
}

// offsetAddress returns the address n after base; n must stay within its family.
func offsetAddress(base netip.Addr, n *big.Int) netip.Addr {
	sum := new(big.Int).Add(new(big.Int).SetBytes(base.AsSlice()), n)
	raw := make([]byte, base.BitLen()/8)
	a, _ := netip.AddrFromSlice(sum.FillBytes(raw))
	return a
}
