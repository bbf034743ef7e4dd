// SPDX-License-Identifier: Apache-2.0

package perfquery

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "perfquery.txt")
	c, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if len(c.Records) != 3 {
		t.Fatalf("%d records", len(c.Records))
	}
	x := c.Records[0]
	if x.Title != "Port extended counters" || x.LID != 11 || x.Port != 2 || x.CapMask != "0x5300 CapMask2: 0x0000002" || x.Values["PortXmitData"] != 178791657177235 || x.Values["LinkDownedCounter"] != 1 || x.Saturated != nil {
		t.Errorf("%+v", x)
	}
	if p := c.Records[1]; p.Port != 255 || !slices.Equal(p.Saturated, []string{"LinkDownedCounter", "PortXmitData"}) {
		t.Errorf("%+v", p)
	}
	if e := c.Records[2]; e.Title != "PortRcvErrorDetails counters" || e.Values["PortMalformedPktErrors"] != 4 || e.LID != 0 || e.Address != "DR path slid 0; dlid 0; 0,1" {
		t.Errorf("%+v", e)
	}
	if s := c.Summary(); s[1] != "Lid 11 port 2: LinkDownedCounter 1, PortXmitDiscards 20046" {
		t.Errorf("%q", s)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "other port", From: "PortSelect:......................2", To: "PortSelect:......................3", Kind: tool.Inconsistent, Line: 2, Text: "port 3"},
		{Name: "twice", From: "PortRcvData:.", To: "PortXmitData:.", Kind: tool.Inconsistent, Line: 5, Text: "twice"},
		{Name: "too large", From: "178791657177235", To: "99999999999999999999", Kind: tool.Inconsistent, Line: 4, Text: "64 bits"},
		{Name: "not to its end", From: good[strings.Index(good, "PortVLMapping"):], To: "", Kind: tool.Truncated, Text: "PortDLIDMappingErrors"},
		{Name: "failed", From: "# Port counters", To: "perfquery: iberror: failed: perfquery failed\n# Port counters", Kind: tool.Failed, Text: "iberror"},
	})
	tooltest.CheckTorn(t, Format, good, func(rest string) bool {
		line := strings.TrimSpace(rest[strings.LastIndexByte(strings.TrimSpace(rest), '\n')+1:])
		for _, last := range []string{"QP1Dropped:", "PortMulticastRcvPkts:", "PortRcvPkts:", "PortXmitWait:"} {
			if strings.HasPrefix(line, last) {
				return true // the last counter of a record
			}
		}
		return false
	})
}

// TestOldNames: counters of old versions have other names, and the same sizes.
func TestOldNames(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Port counters: Lid 12 port 1\n")
	for _, line := range []string{"PortSelect 1", "CounterSelect 0x0000", "SymbolErrors 65535", "LinkRecovers 255", "LinkDowned 254", "RcvErrors 24058", "XmtDiscards 0", "VL15Dropped 0", "XmtData 4294967295", "RcvData 1708", "XmtPkts 114", "RcvPkts 114"} {
		name, value, _ := strings.Cut(line, " ")
		b.WriteString(name + ":...................." + value + "\n")
	}
	c, problems, err := Parse([]byte(b.String()))
	if err != nil || len(problems) != 0 || !slices.Equal(c.Records[0].Saturated, []string{"SymbolErrors", "LinkRecovers", "XmtData"}) {
		t.Fatalf("%v, %v, %+v", err, problems, c)
	}
	if s := c.Summary(); len(s) != 2 || s[1] != "Lid 12 port 1: SymbolErrors 65535, LinkRecovers 255, LinkDowned 254, RcvErrors 24058" {
		t.Errorf("%q", s)
	}
}

func TestFailureAlone(t *testing.T) {
	t.Parallel()
	text := "perfquery: iberror: failed: can't resolve destination port 0\n"
	_, problems, err := Parse([]byte(text))
	if err != nil || Format.Is([]byte(text)) == 0 {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 1, "destination port")
}

func TestPublicSamples(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"0x506b4b03005c2740": 1, "0x7cfe9003009ce5b0": 2, "rcverr-0x506b4b03005c2740-1": 1} {
		c, problems, err := Parse([]byte(tooltest.ReadPublic(t, "perfquery/treydock-"+name+".txt")))
		if err != nil || len(problems) != 0 || len(c.Records) != n {
			t.Errorf("%s: %v, %v, %+v", name, err, problems, c)
		}
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "perfquery.txt") }

// TestOtherProgramsDumps: ibportstate and smpquery write lines of the same form
// about a port's settings, which are no counters.
func TestOtherProgramsDumps(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"CA/RT PortInfo:\n# Port info: Lid 38 port 1\nLinkState:.......................Active\nLid:.............................38\nSMLid:...........................13\n",
		"# Switch info: Lid 4\nLinearFdbCap:....................49152\n",
	} {
		if sure := Format.Is([]byte(text)); sure != 0 {
			t.Errorf("%d for %q", sure, text)
		}
	}
}
