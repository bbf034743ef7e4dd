// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// found is a finding with when it was made.
type found struct {
	stage.Finding
	at time.Time
}

// readFound reads what the last run found, with the runs that it resumed, oldest first.
func readFound(ctx context.Context, r state.Reader) (list []found, err error) {
	err = r.Read(ctx, 1, func(rec state.Record) error {
		switch rec.Kind {
		case state.RunStarted:
			var run state.Run
			if json.Unmarshal(rec.Data, &run) == nil && run.Resumes == "" {
				list = nil
			}
		case state.FindingMade:
			var f stage.Finding
			if json.Unmarshal(rec.Data, &f) == nil {
				list = append(list, found{f, rec.Time.UTC()})
			}
		}
		return nil
	})
	return list, err
}

// aboutNoNode are the findings whose suspects are switches, PDUs, links or the site, and that
// do not stand with a node already. The same one that was made again is one.
func (d *describer) aboutNoNode(nodes []report.Node) (out []report.Finding) {
	seen := map[string]bool{} // causes
	for _, n := range nodes {
		for _, f := range n.Findings {
			seen[f.Part+" "+f.Cause] = true
		}
	}
	for _, f := range d.made {
		if slices.ContainsFunc(f.Suspects, func(s stage.Suspect) bool { return s.Subject.Kind == subject.Node }) {
			continue
		}
		if made := makeFinding(f.Finding, f.at); !seen[made.Part+" "+made.Cause] {
			seen[made.Part+" "+made.Cause] = true
			out = append(out, d.finding(f))
		}
	}
	return out
}

// timeOf is when a finding was made first; zero: not in the last run.
func timeOf(list []found, f stage.Finding) time.Time {
	for _, o := range list {
		if o.Cause == f.Cause && slices.Equal(o.Suspects, f.Suspects) {
			return o.at
		}
	}
	return time.Time{}
}

// makeFinding is a finding as the report says it.
func makeFinding(f stage.Finding, at time.Time) report.Finding {
	return report.Finding{Part: strings.Join(f.Parts(), ", "), At: at, Step: f.Step, Cause: f.Cause, Evidence: f.Evidence, Action: f.Action}
}
