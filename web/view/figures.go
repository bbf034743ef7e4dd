// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
)

// Figure is a measurement of a node against its limit.
type Figure struct {
	Test     string    `json:"test"` // Bandwidth of GPUs
	Check    string    `json:"check"`
	Part     string    `json:"part,omitempty"`
	Measured string    `json:"measured,omitempty"` // with its unit; empty: there is no figure
	Limit    string    `json:"limit,omitempty"`
	Share    float64   `json:"share,omitempty"` // of the limit, in percent; 0: not known
	Above    bool      `json:"above,omitempty"` // the figure must be the limit or more
	Verdict  string    `json:"verdict"`
	Why      string    `json:"why,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Params   string    `json:"params,omitempty"`
	Evidence []string  `json:"evidence,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Report is the report of the site's state.
func (k *Keeper) Report(ctx context.Context) (report.Input, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return report.Input{}, err
	}
	return k.reportOf(ctx, s)
}

func (k *Keeper) reportOf(ctx context.Context, s *Snapshot) (report.Input, error) {
	return k.report.get(s, k.Now(), func() (in report.Input, err error) {
		site, err := k.Open(s.Inv)
		if err != nil {
			return in, err
		}
		err = k.withState(ctx, s, func(r state.Reader) (err error) {
			in, err = site.Report(ctx, r, k.Version, s.At)
			return err
		})
		return in, err
	})
}

// figuresOf are the measurements of a node, what failed first.
func (k *Keeper) figuresOf(ctx context.Context, s *Snapshot, node string) (out []Figure, err error) {
	in, err := k.reportOf(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, t := range in.Tests {
		for _, m := range t.Measurements {
			if !slices.Contains(m.Nodes, node) {
				continue
			}
			f := Figure{Test: t.Title, Check: m.Check, Part: m.Part, Measured: m.Figure(), Limit: m.Limit, Verdict: m.Verdict, Why: m.Why, Rule: m.Rule, Params: m.Params, Evidence: m.Evidence, At: t.At}
			f.Share, f.Above, _ = m.ShareOfLimit()
			out = append(out, f)
		}
	}
	rank := map[string]int{report.Fail: 0, report.Allowed: 1, report.NotJudged: 2, report.Pass: 3}
	slices.SortStableFunc(out, func(a, b Figure) int { return rank[a.Verdict] - rank[b.Verdict] })
	return out, nil
}
