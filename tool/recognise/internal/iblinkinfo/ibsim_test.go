// SPDX-License-Identifier: Apache-2.0

package iblinkinfo

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool/ibdiags/ibsimtest"
	"github.com/ironrail/ironrail/tool/recognise/internal/ibstat"
	"github.com/ironrail/ironrail/tool/recognise/internal/perfquery"
)

// TestPeerIblinkinfo reads what the program itself prints, in each of its forms.
func TestPeerIblinkinfo(t *testing.T) {
	t.Parallel()
	s := ibsimtest.Start(t, ibsimtest.Small)
	for _, c := range []struct {
		options   string
		ports, up int
	}{{"", 18, 6}, {"-l", 18, 6}, {"-p", 18, 6}, {"--switches-only", 16, 4}, {"--cas-only", 2, 2}, {"-d", 12, 0}} {
		out := s.Run("iblinkinfo", strings.Fields(c.options)...)
		info, problems, err := Parse(out)
		if err != nil || len(problems) > 0 || matchFormat(out) == 0 {
			t.Fatalf("%s: %v, %v\n%s", c.options, err, problems, out)
		}
		up := 0
		for _, p := range info.Ports {
			if p.Physical == "LinkUp" && p.Peer != nil && p.Width == "4X" && p.Lane == 2.5 && p.Rate == 10 {
				up++
			}
		}
		if len(info.Ports) != c.ports || up != c.up {
			t.Errorf("%s: %d ports, %d up", c.options, len(info.Ports), up)
		}
	}
	if c, problems, err := perfquery.Parse(s.Run("perfquery", "-x")); err != nil || len(problems) > 0 || len(c.Records) != 1 || c.Records[0].LID != 1 {
		t.Errorf("perfquery -x: %+v, %v, %v", c, problems, err)
	}
	if c, problems, err := perfquery.Parse(s.Run("perfquery")); err != nil || len(problems) > 0 || c.Records[0].Title != "Port counters" {
		t.Errorf("perfquery: %+v, %v, %v", c, problems, err)
	}
	if d, problems, err := ibstat.Parse(s.Run("ibstat")); err != nil || len(problems) > 0 || d.Devices[0].Kind != "Switch" {
		t.Errorf("ibstat: %+v, %v, %v", d, problems, err)
	}
}
