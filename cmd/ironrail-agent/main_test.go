// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args, in string
		status         int
		out, talk      string
	}{
		{"no command", "ironrail-agent", "", 64, "", "usage:"},
		{"unknown command", "ironrail-agent fly", "", 64, "", "usage:"},
		{"no JSON", "ironrail-agent roce check", "hello", 64, "", "error: stdin:"},
		{"parameters that cannot be", "ironrail-agent roce check", `{"mtu":1}`, 1, "MTU 1", ""},
		{"no such NIC", "ironrail-agent roce check", `{"mtu":1500,"ports":[{"pci":"ffff:ff:1f.7","mac":"02:00:00:00:00:01","address":"192.0.2.1/24"}]}`, 0, "no network interface at PCI ffff:ff:1f.7", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, talk bytes.Buffer
			status := runAgent(t.Context(), strings.Fields(c.args), strings.NewReader(c.in), &out, &talk)
			if status != c.status || !strings.Contains(out.String(), c.out) || !strings.Contains(talk.String(), c.talk) {
				t.Errorf("got %d, %q, %q", status, out.String(), talk.String())
			}
			var r wire.RoCEResult
			if err := json.Unmarshal(out.Bytes(), &r); c.out != "" && err != nil {
				t.Errorf("stdout is not one JSON object: %v", err)
			}
		})
	}
}
