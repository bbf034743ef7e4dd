// SPDX-License-Identifier: Apache-2.0

package ibswinfo

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibswinfo.txt")
	s, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if s.Name != "leaf-1 in hall A" || s.PartNumber != "MQM8790-HS2F" || s.GUID != 0x506b4b0300c50200 || s.Ports != 80 || s.Seconds != 67*86400+4*3600+19*60+16 || *s.Temperature != 47 || *s.Hottest != 52 || s.FanStatus != "OK" || s.Fans["2"] != 5293 {
		t.Errorf("%+v", s)
	}
	if p := s.Supplies[1]; p.Name != "PSU1" || *p.Watts != 0 || p.Serial != "MT2148T00003" || p.Fan != "OK" || p.DC != "OK" {
		t.Errorf("%+v", p)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "no power", From: "DC power      | OK", To: "DC power      | ERROR", Kind: tool.Failed, Line: 18, Text: "PSU0 DC power: ERROR"},
		{Name: "fans", From: "fan status         | OK", To: "fan status         | ERROR", Kind: tool.Failed, Line: 31, Text: "fans"},
		{Name: "no number", From: "287", To: "foo", Kind: tool.Inconsistent, Line: 20, Text: "foo"},
		{Name: "no speed", From: "fan#1 (rpm)        | 5959", To: "fan#1 (rpm)        |", Kind: tool.Missing, Line: 32, Text: "fan#1"},
		{Name: "uptime", From: "67d-04:19:16", To: "long", Kind: tool.Inconsistent, Line: 13, Text: "long"},
		{Name: "GUID", From: "0x506b4b0300c50200", To: "0x50", Kind: tool.Inconsistent, Line: 10, Text: "0x50"},
		{Name: "no status", From: "PSU1 status        | OK", To: "PSU1 status        |", Kind: tool.Missing, Line: 21, Text: "PSU1"},
	})
	tooltest.CheckTorn(t, Format, good, func(rest string) bool {
		return rule.MatchString(rest[strings.LastIndexByte(strings.TrimSpace(rest), '\n')+1:])
	})
	for name, n := range map[string]int{"treydock-test-err1.txt": 1, "treydock-test1.txt": 1, "treydock-test3.txt": 2} {
		if _, problems, err := Parse([]byte(tooltest.ReadPublic(t, "ibswinfo/"+name))); err != nil || len(problems) != n {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
	}
}

// TestForms: the full output of newer versions, and the short ones.
func TestForms(t *testing.T) {
	t.Parallel()
	newer := strings.NewReplacer("ports              | 80", "modules            | 40\nmax ports          | 80", "firmware version   | 27.2010.4102", "firmware version   | 27.2010.4102\nCPLD               | CPLD000232_REV0700",
		"max temp (C)       | 52", "max temp (C)       | 52\nwarn threshold (C) | 0/105 (low/high)\nmodule#01 (C)      | 41\nmodule#02 (C)      | N/A").Replace(tooltest.ReadSample(t, "ibswinfo.txt"))
	s, problems, err := Parse([]byte(newer))
	if err != nil || len(problems) != 0 || s.Ports != 80 || s.Modules != 40 || s.CPLD != "CPLD000232_REV0700" || s.Warn != "0/105 (low/high)" || s.ModuleTemperatures["01"] != 41 || len(s.ModuleTemperatures) != 1 {
		t.Errorf("%+v, %v, %v", s, problems, err)
	}
	for text, good := range map[string]func(*Switch) bool{
		"node_description   : leaf-1\npart_number        : MQM8790-HS2F\nserial             : MT1\nfw_version         : 27.2010.4102\npsu0.part_number   : P\npsu0.serial        : S\n": func(s *Switch) bool {
			return s.Name == "leaf-1" && s.PartNumber == "MQM8790-HS2F" && s.Firmware == "27.2010.4102" && s.Supplies[0].Serial == "S"
		},
		"psu0.status        : OK\npsu0.dc            : OK\npsu0.fan           : OK\nfans               : OK\n": func(s *Switch) bool { return s.Supplies[0].DC == "OK" && s.FanStatus == "OK" },
		"uptime (sec)       : 604800\npsu0.power (W)     : 72\ncur.temp (C)       : 45\nmax.temp (C)       : 57\nfan#1.speed (rpm)  : 8493\n": func(s *Switch) bool {
			return s.Seconds == 604800 && *s.Temperature == 45 && *s.Hottest == 57 && s.Fans["1"] == 8493 && *s.Supplies[0].Watts == 72
		},
	} {
		s, problems, err := Parse([]byte(text))
		if err != nil || len(problems) != 0 || !good(s) || Format.Is([]byte(text)) == 0 {
			t.Errorf("%q: %+v, %v, %v, %d", text, s, problems, err, Format.Is([]byte(text)))
		}
	}
}

// TestHeading: a version for NDR says of both lines above what they are.
func TestHeading(t *testing.T) {
	t.Parallel()
	rule := strings.Repeat("=", 49) + "\n"
	text := rule + " Device: lid-266\n Current node description: leaf-01\n" + rule + "part number        | MQM9700-NS2F\nmax ports          | 64\nmodules            | 32\n" + strings.Repeat("-", 49) + "\n"
	s, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 0 || s.Name != "leaf-01" || s.Ports != 64 || s.Modules != 32 || Format.Is([]byte(text)) == 0 {
		t.Errorf("%v, %v, %+v", err, problems, s)
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "ibswinfo.txt") }
