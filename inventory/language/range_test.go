// SPDX-License-Identifier: Apache-2.0

package language

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// TestRange compares range with cty's own where that one answers, and past its end.
func TestRange(t *testing.T) {
	t.Parallel()
	num := cty.NumberFloatVal
	for _, args := range [][]cty.Value{
		{num(0)}, {num(3)}, {num(-3)}, {num(2.5)}, {num(1), num(4)}, {num(4), num(1)}, {num(1), num(1)}, {num(1), num(9), num(3)},
		{num(9), num(1), num(-3)}, {num(0), num(1), num(0.25)}, {num(1), num(4), num(-1)}, {num(4), num(1), num(1)}, {num(1), num(4), num(0)}, {},
	} {
		got, err := rangeFunc.Call(args)
		want, wantErr := stdlib.RangeFunc.Call(args)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("range(%#v): got %v, cty's %v", args, err, wantErr)
		} else if err == nil && !got.RawEquals(want) {
			t.Errorf("range(%#v): got %#v, cty's %#v", args, got, want)
		}
	}
	if v, err := rangeFunc.Call([]cty.Value{num(12_500)}); err != nil || v.LengthInt() != 12_500 {
		t.Errorf("range(12500): %v", err)
	}
	if _, err := rangeFunc.Call([]cty.Value{num(1e12)}); err == nil || !strings.Contains(err.Error(), "200000") {
		t.Errorf("range(1e12): got %v", err)
	}
}
