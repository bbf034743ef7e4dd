// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

const settings = `Settings for ens1f0np0:
	Supported ports: [ Backplane ]
	Supported link modes:   100000baseSR4/Full
	                        400000baseCR4/Full
	Supported pause frame use: Symmetric
	Advertised FEC modes: RS
	Speed: 400000Mb/s
	Duplex: Full
	Port: Direct Attach Copper
	Auto-negotiation: on
Cannot get wake-on-lan settings: Operation not permitted
	Link detected: yes
`

const module = `	Identifier                                : 0x11 (QSFP28)
	Connector                                 : 0x0c (MPO)
	Vendor name                               : ExampleOptics
	Vendor PN                                 : EX-100G-SR4
	Vendor SN                                 : EX2611200001
	Laser tx bias current (Channel 1)         : 7.120 mA
	Laser tx bias current (Channel 2)         : 7.000 mA
	Transmit avg optical power (Channel 1)    : 0.8014 mW / -0.96 dBm
	Transmit avg optical power (Channel 2)    : 0.7911 mW / -1.02 dBm
	Rcvr signal avg optical power(Channel 1)  : 0.6501 mW / -1.87 dBm
	Rcvr signal avg optical power(Channel 2)  : 0.0001 mW / -40.00 dBm
	Module temperature                        : 41.50 degrees C / 106.70 degrees F
	Module voltage                            : 3.2891 V
	Rx power low alarm   (Channel 1)          : Off
	Rx power low alarm   (Channel 2)          : On
	Module temperature high alarm threshold   : 75.00 degrees C / 167.00 degrees F
`

func problemTexts(p tool.Problems) string {
	var lines []string
	for _, x := range p {
		lines = append(lines, fmt.Sprintf("%s %d: %s", x.Kind, x.Line, x.Text))
	}
	return strings.Join(lines, "\n")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s, problems, err := ParseSettings([]byte(settings))
	if err != nil || problemTexts(problems) != "" || SettingsFormat.Is([]byte(settings)) < 90 {
		t.Fatalf("%v %s", err, problemTexts(problems))
	}
	if s.Interface != "ens1f0np0" || *s.Speed != 400000 || !*s.Link || len(s.Supported) != 2 || s.FEC != "RS" || s.Port != "Direct Attach Copper" || s.Summary()[0] != "ens1f0np0: link, 400000 Mb/s" {
		t.Errorf("%+v %q", s, s.Summary())
	}
	for in, want := range map[string]string{
		strings.NewReplacer("400000Mb/s", "Unknown!", "detected: yes", "detected: no (No cable)").Replace(settings): "",
		settings[:strings.Index(settings, "Cannot")]:                                                                "truncated 0: The line \"Link detected\" is not there.",
		settings + settings: "inconsistent 13: The settings of a second interface begin here: ens1f0np0.",
		strings.Replace(settings, "Link detected: yes", "Cannot get link status: Operation not permitted", 1): "missing 12: Whether there is a link is not known: ethtool ran without the rights of root.",
		"Settings for eth9:\nCannot get device settings: No such device\nNo data available\n":                 "failed 2: ethtool failed: Cannot get device settings: No such device\ntruncated 0: The line \"Link detected\" is not there.",
	} {
		if _, problems, err := ParseSettings([]byte(in)); err != nil || problemTexts(problems) != want {
			t.Errorf("%q: %v got %s, want %s", in, err, problemTexts(problems), want)
		}
	}
	s, _, _ = ParseSettings([]byte(strings.NewReplacer("400000Mb/s", "Unknown!", "detected: yes", "detected: no (No cable)").Replace(settings)))
	if s.Speed != nil || *s.Link || s.LinkNote != "No cable" {
		t.Errorf("%+v", s)
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	m, problems, err := ParseModule([]byte(module))
	if err != nil || problemTexts(problems) != "failed 15: The module says: Rx power low alarm   (Channel 2)." || ModuleFormat.Is([]byte(module)) < 90 {
		t.Fatalf("%v %s", err, problemTexts(problems))
	}
	lanes, _ := json.Marshal(m.Lanes)
	if want := `[{"lane":1,"rx_dbm":-1.87,"tx_dbm":-0.96,"tx_bias_ma":7.12},{"lane":2,"rx_dbm":-40,"tx_dbm":-1.02,"tx_bias_ma":7}]`; string(lanes) != want {
		t.Errorf("got %s, want %s", lanes, want)
	}
	if m.Vendor != "ExampleOptics" || m.Part != "EX-100G-SR4" || m.Serial != "EX2611200001" || *m.Temperature != 41.5 || *m.Voltage != 3.2891 {
		t.Errorf("%+v", m)
	}
	_, problems, err = ParseModule([]byte(module[:strings.Index(module, "temperature     ")]))
	if err != nil || !strings.Contains(problemTexts(problems), "truncated 12") {
		t.Errorf("%v %s", err, problemTexts(problems))
	}
	one, problems, err := ParseModule([]byte("Identifier : 0x03 (SFP)\nVendor name : X\nLaser bias current : 13.1 mA\nLaser output power : 3.6 mW / 5.58 dBm\nReceiver signal average optical power : 0.0044 mW / -23.57 dBm\n"))
	if err != nil || len(problems) != 0 || len(one.Lanes) != 1 || *one.Lanes[0].Receive != -23.57 || *one.Lanes[0].Send != 5.58 {
		t.Errorf("%v %s %+v", err, problemTexts(problems), one)
	}
}

// TestNoModule: of an interface without one, ethtool has one line.
func TestNoModule(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Cannot get module EEPROM information: Operation not supported\n", "Cannot get Module EEPROM data: Input/output error\n"} {
		m, problems, err := ParseModule([]byte(text))
		if err != nil || ModuleFormat.Is([]byte(text)) == 0 || !strings.HasPrefix(problemTexts(problems), "failed 1: ethtool failed: Cannot get ") || len(m.Summary()) != 1 {
			t.Errorf("%q: %v, %s", text, err, problemTexts(problems))
		}
	}
}

func FuzzLink(f *testing.F) {
	f.Add([]byte(settings))
	f.Add([]byte(module))
	f.Add([]byte(settingsList))
	f.Add([]byte(moduleList))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, _, err := ParseSettings(data); err == nil {
			if _, err := json.Marshal(s); err != nil || len(s.Summary()) == 0 {
				t.Error(err)
			}
		}
		if m, _, err := ParseModule(data); err == nil {
			if _, err := json.Marshal(m); err != nil || len(m.Summary()) == 0 {
				t.Error(err)
			}
		}
	})
}
