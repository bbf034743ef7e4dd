// SPDX-License-Identifier: Apache-2.0

package ibnetdiscover

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool/ibdiags/ibsimtest"
)

// TestPeerIbnetdiscover reads what the program itself prints, in each of its forms.
func TestPeerIbnetdiscover(t *testing.T) {
	t.Parallel()
	s := ibsimtest.Start(t, ibsimtest.Small)
	var first []string
	for _, option := range []string{"", "-f", "-g", "-p", "-l"} {
		out := s.Run("ibnetdiscover", strings.Fields(option)...)
		top, problems, err := Parse(out)
		if err != nil || len(problems) > 0 || matchFormat(out) == 0 {
			t.Fatalf("%s: %v, %v\n%s", option, err, problems, out)
		}
		if len(top.Switches) != 2 || len(top.HCAs) != 2 || option != "-l" && len(top.Links) != 3 {
			t.Errorf("%s: %q", option, top.Summary())
		}
		if !slices.ContainsFunc(top.Switches, func(s Switch) bool { return s.Name == " spine " && s.GUID == 0xb0cf0e0302000000 && s.Ports == 8 }) {
			t.Errorf("%s: %+v", option, top.Switches)
		}
		if option == "-l" {
			continue
		}
		var cables []string
		for _, l := range top.Links {
			ends := []string{l.From.Name + "/" + string(rune('0'+l.From.Port)), l.To.Name + "/" + string(rune('0'+l.To.Port))}
			slices.Sort(ends)
			cables = append(cables, strings.Join(ends, " - ")+" "+l.Width+l.Speed)
		}
		slices.Sort(cables)
		if first == nil {
			first = cables
		}
		want := []string{" spine /3 - leaf; 1:/U1/5 4xSDR", "gpu-1 mlx5_0/1 - leaf; 1:/U1/1 4xSDR", "gpu-2 mlx5_0/2 - leaf; 1:/U1/2 4xSDR"}
		if !slices.Equal(cables, want) || !slices.Equal(cables, first) {
			t.Errorf("%s: got %q, want %q", option, cables, want)
		}
	}
}
