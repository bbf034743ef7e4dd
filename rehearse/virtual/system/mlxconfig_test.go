// SPDX-License-Identifier: Apache-2.0

package system

import (
	"testing"

	"github.com/ironrail/ironrail/tool/mlxconfig"
)

// TestCardTable: what the simulated program prints is read by the reader of the real one's
// output, with every column and without.
func TestCardTable(t *testing.T) {
	t.Parallel()
	list := []CardSetting{{"LINK_TYPE_P1", 1, 1, 2}, {"EXP_ROM_PXE_ENABLE", 1, 0, 0}, {"INTERNAL_CPU_OFFLOAD_ENGINE", 0, 0, 1}, {"NUM_OF_VFS", 16, 16, 16}}
	for _, all := range []bool{true, false} {
		l, problems, err := mlxconfig.Parse([]byte(cardTable("0000:18:00.0", "BlueField3", list, all)))
		if err != nil || len(problems) > 0 || len(l.Cards) != 1 {
			t.Fatalf("%v, %v", err, problems)
		}
		c := l.Cards[0]
		if c.Type != "BlueField3" || c.Device != "0000:18:00.0" || c.Current != all || len(c.Settings) != len(list) {
			t.Errorf("%+v", c)
		}
		for i, want := range []mlxconfig.Setting{
			{Name: "LINK_TYPE_P1", Default: "IB(1)", Current: "IB(1)", Next: "ETH(2)"}, {Name: "EXP_ROM_PXE_ENABLE", Default: "True(1)", Current: "False(0)", Next: "False(0)"},
			{Name: "INTERNAL_CPU_OFFLOAD_ENGINE", Default: "ENABLED(0)", Current: "ENABLED(0)", Next: "DISABLED(1)"}, {Name: "NUM_OF_VFS", Default: "16", Current: "16", Next: "16"},
		} {
			if !all {
				want.Default, want.Current = "", ""
			}
			if c.Settings[i] != want {
				t.Errorf("%+v, want %+v", c.Settings[i], want)
			}
		}
	}
}
