// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"fmt"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// turnFact counts what a scheduler was told about a node, or what was written for a
// handover.
const turnFact = fact.Name[int]("handover.turn")

// DoEffect does an effect that is due again and again in a cluster's life, such as the
// drain of a node; the caller has seen that it is not so. Each time has a number, which
// names the effect with the key of e, and which is learned when it is done: a run that
// goes on after a crash finds the same name, and asks the probe instead of doing it
// again; the next time has the next number. e must have a probe.
func DoEffect(ctx context.Context, run stage.Run, of subject.ID, e stage.Effect) error {
	key := e.Key
	for {
		turn := 1
		if f, ok := run.Fact(turnFact.Of(of)); ok {
			last, err := turnFact.Get(f)
			if err != nil {
				return err
			}
			turn = last + 1
		}
		tried := false
		now := e
		now.Key = fmt.Sprintf("%s-%d", key, turn)
		now.Probe = func(ctx context.Context) (stage.Probe, string, error) { tried = true; return e.Probe(ctx) }
		now.Do = func(ctx context.Context) error { tried = true; return e.Do(ctx) }
		if err := run.Effect(ctx, now); err != nil {
			return err
		}
		f, err := turnFact.New(of, turn, "")
		if err != nil {
			return err
		}
		if err := run.Learn(ctx, f); err != nil || tried {
			return err
		}
		// It was done in a run that died before it learned the number. Where somebody
		// has undone it since, it is due again.
		if seen, _, err := e.Probe(ctx); err != nil || seen == stage.Done {
			return err
		}
	}
}
