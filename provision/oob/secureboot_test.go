// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// TestJudgeSecureBoot: which signature of shim counts follows from db, and only what stands
// against it for sure takes a node out.
func TestJudgeSecureBoot(t *testing.T) {
	t.Parallel()
	const ca2011, ca2023, windows = "Microsoft Corporation UEFI CA 2011", "Microsoft UEFI CA 2023", "Microsoft Windows Production PCA 2011"
	on := func(db ...string) redfish.SecureBoot {
		return redfish.SecureBoot{Current: "Enabled", Wanted: "true", Mode: "UserMode", Authorities: db}
	}
	for name, c := range map[string]struct {
		shown       redfish.SecureBoot
		cause, says string // "": none
	}{
		"2011 only":              {on(windows, ca2011), "", "shim starts by its signature of " + ca2011},
		"2023 only":              {on(ca2023), "", "shim starts by its signature of " + ca2023},
		"both":                   {on(ca2011, windows, ca2023), "", "shim starts by its signature of " + ca2023},
		"Windows alone":          {on(windows), "none of the authorities that sign it is in db", "db has " + windows},
		"none of Microsoft":      {on("ACME Platform CA"), "none of the authorities that sign it is in db", "db has ACME Platform CA"},
		"db is not shown":        {on(), "", "it does not show db"},
		"nothing is shown":       {redfish.SecureBoot{}, "", "it does not show db"},
		"off":                    {redfish.SecureBoot{Current: "Disabled", Wanted: "false", Mode: "UserMode"}, "switched off", `switched on "false"`},
		"off, last boot unknown": {redfish.SecureBoot{Wanted: "false"}, "switched off", `at the last boot ""`},
		"on from the next boot":  {redfish.SecureBoot{Current: "Disabled", Wanted: "true", Mode: "UserMode"}, "", `at the last boot "Disabled", switched on "true"`},
		"without Enable":         {redfish.SecureBoot{Current: "Disabled"}, "", `at the last boot "Disabled"`},
		"without Enable, on":     {redfish.SecureBoot{Current: "Enabled"}, "", `at the last boot "Enabled"`},
		"setup mode":             {redfish.SecureBoot{Current: "Disabled", Wanted: "true", Mode: "SetupMode"}, "setup mode", `mode "SetupMode"`},
	} {
		cause, action := judgeSecureBoot(c.shown)
		if !strings.Contains(cause, c.cause) || (c.cause == "") != (cause == "") || (cause == "") != (action == "") {
			t.Errorf("%s: %q, %q; want %q", name, cause, action, c.cause)
		}
		debian, _ := distribution.Find(distribution.Debian)
		if got := describeSecureBoot(c.shown, debian); !strings.Contains(got, c.says) {
			t.Errorf("%s: %q; want %q", name, got, c.says)
		}
	}
	ubuntu, _ := distribution.Find(distribution.Ubuntu)
	for says, db := range map[string][]string{"shim of Ubuntu starts by its signature of " + ca2011: {ca2023, ca2011}, "shim of Ubuntu starts where it is one that " + ca2023 + " signed": {ca2023}, "db has " + windows: {windows}} {
		if got := describeSecureBoot(on(db...), ubuntu); !strings.HasSuffix(got, says) {
			t.Errorf("db %q: %q; want %q", db, got, says)
		}
	}
}
