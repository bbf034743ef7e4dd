// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"encoding/json"
	"strings"
	"testing"
)

const settingsList = `[ {
        "ifname": "ens1f0np0",
        "supported-ports": [ "FIBRE" ],
        "supported-link-modes": [ "100000baseSR4/Full","400000baseCR4/Full" ],
        "supports-auto-negotiation": true,
        "advertised-fec-modes": [ "RS" ],
        "speed": 400000,
        "lanes": 4,
        "duplex": "Full",
        "auto-negotiation": true,
        "port": "Direct Attach Copper",
        "link-detected": true
    } ]
`

const moduleList = `[ {
        "identifier": 17,
        "identifier_description": "QSFP28",
        "connector": 35,
        "vendor_name": "ExampleOptics",
        "vendor_oui": [ 0,2,201 ],
        "vendor_pn": "EX-100G-SR4",
        "vendor_sn": "EX2611200001",
        "module_temperature": 56.75,
        "module_voltage": 3.261,
        "laser_tx_bias_current": [ 7.5,0 ],
        "transmit_avg_optical_power": [ 0.8014,0 ],
        "rcvr_signal_avg_optical_power": [ 0.6501,0.0001 ],
        "laser_rx_power_low_alarm": [ false,true ],
        "Module temperature high alarm": true,
        "module_temperature": {
            "high_alarm_threshold": 80,
            "units": "degrees C"
        }
    } ]
`

func TestSettingsJSON(t *testing.T) {
	t.Parallel()
	s, problems, err := ParseSettings([]byte(settingsList))
	if err != nil || problemTexts(problems) != "" || SettingsFormat.Is([]byte("$ ethtool --json ens1f0np0\n"+settingsList)) != 90 || ModuleFormat.Is([]byte(settingsList)) != 0 {
		t.Fatalf("%v %s", err, problemTexts(problems))
	}
	if s.Interface != "ens1f0np0" || *s.Speed != 400000 || !*s.Link || len(s.Supported) != 2 || s.FEC != "RS" || s.Port != "Direct Attach Copper" || s.AutoNeg != "on" || s.All["lanes"] != "4" {
		t.Errorf("%+v", s)
	}
	for in, want := range map[string]string{
		settingsList[:strings.Index(settingsList, `"duplex"`)]:                                                             "truncated 0: The list ends before its end: what it has so far was read.\ntruncated 0: The key \"link-detected\" is not there.",
		strings.Replace(settingsList, "} ]", `}, { "ifname": "ens1f1np1", "port": "Other", "link-detected": false } ]`, 1): "inconsistent 0: What is said of a second interface is here, and was not read.",
		strings.Replace(settingsList, "true\n", "false\n", 1):                                                              "",
	} {
		if _, problems, err := ParseSettings([]byte(in)); err != nil || problemTexts(problems) != want {
			t.Errorf("%q: %v got %s, want %s", in, err, problemTexts(problems), want)
		}
	}
}

func TestModuleJSON(t *testing.T) {
	t.Parallel()
	m, problems, err := ParseModule([]byte(moduleList))
	want := "failed 0: The module says: laser_rx_power_low_alarm (Channel 2).\nfailed 0: The module says: Module temperature high alarm."
	if err != nil || problemTexts(problems) != want || ModuleFormat.Is([]byte(moduleList)) != 90 || SettingsFormat.Is([]byte(moduleList)) != 0 {
		t.Fatalf("%v %s", err, problemTexts(problems))
	}
	lanes, _ := json.Marshal(m.Lanes)
	if want := `[{"lane":1,"rx_dbm":-1.87,"tx_dbm":-0.96,"tx_bias_ma":7.5},{"lane":2,"rx_dbm":-40,"tx_dbm":null,"tx_bias_ma":0}]`; string(lanes) != want {
		t.Errorf("got %s, want %s", lanes, want)
	}
	if m.Identifier != "0x11 (QSFP28)" || m.Vendor != "ExampleOptics" || m.Part != "EX-100G-SR4" || m.Serial != "EX2611200001" || *m.Temperature != 56.75 || *m.Voltage != 3.261 || len(m.All["module_temperature"]) != 2 {
		t.Errorf("%+v", m)
	}
	cmis := strings.Replace(moduleList, `"rcvr_signal_avg_optical_power": [ 0.6501,0.0001 ]`, `"rx_power": { "values": [ 0.6501,0.0001 ], "type": "Rcvr signal avg optical power" }`, 1)
	if m, _, err := ParseModule([]byte(cmis)); err != nil || *m.Lanes[0].Receive != -1.87 {
		t.Errorf("%v %+v", err, m)
	}
}
