// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

func TestGateReport(t *testing.T) {
	t.Parallel()
	r := gate.Report{Evidence: []string{"sha256:ab"}, Gates: []judge.Outcome{{Gate: "acs", Verdict: judge.Allowed, Covered: "8 GPUs", Why: "it is on"}}}.Report("n1")
	if len(r.Results) != 1 || r.Results[0].Check != "gate.acs" || r.Results[0].Verdict != "allowed" || r.Results[0].Evidence[0] != "sha256:ab" || r.Results[0].Unit != "" {
		t.Errorf("%+v", r.Results)
	}
	if old := (gate.Report{}).Report("n1"); len(old.NotJudged) != 1 {
		t.Errorf("%+v", old)
	}
}
