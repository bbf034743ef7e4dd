// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	kinds := inventory.DefaultKinds()
	spec := kinds.Handover[Name]
	spec.Check = Check
	kinds.Handover[Name] = spec
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: &kinds})
}

func FuzzTaint(f *testing.F) {
	for _, s := range []string{"gpu", "a=b:NoSchedule", "a/b=:NoExecute", ":", "é:NoSchedule"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if wrongTaint(s) == "" && (len(s) > 2*maxWord+maxPrefix+20 || s == "") {
			t.Errorf("%q is a taint", s)
		}
		wrongEndpoint(s)
	})
}
