// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// fact returns a fact that is durable. One that was not asked for before is looked
// up in the store; a store that cannot be read ends the run.
func (l *ledger) fact(k fact.Key) (fact.Fact, bool) {
	l.mu.Lock()
	f, ok := l.facts[k]
	l.mu.Unlock()
	if ok {
		return f, true
	}
	f, version, err := state.Get[fact.Fact](context.Background(), l.store, state.FactKey(k))
	if err != nil {
		_ = l.setFailure(err)
	}
	if err != nil || version == state.Absent {
		return fact.Fact{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if newer, ok := l.facts[k]; ok { // learned meanwhile
		return newer, true
	}
	l.facts[k] = f
	return f, true
}

// recordFacts makes facts durable; those that say nothing new are passed over.
func (l *ledger) recordFacts(step string, fs []fact.Fact) ([]fact.Fact, error) {
	var parts []entry // a fact that is not recorded is learned again
	var news []fact.Fact
	for _, f := range fs {
		if old, ok := l.fact(f.Key); ok && string(old.Value) == string(f.Value) && old.Part == f.Part {
			continue
		}
		f.Step = step
		if f.Observed.IsZero() {
			f.Observed = l.now()
		}
		var n entry
		put, data, err := state.PutFact(context.Background(), l.store, l.fence, f)
		if err != nil {
			return nil, l.setFailure(err)
		}
		n.puts = append(n.puts, put)
		n.addRecord(state.Record{Kind: state.FactLearned, Step: step, Subject: f.Key.Subject, Data: data})
		if f.Key.Subject.Kind == subject.Node {
			n.changeNode(f.Key.Subject.Name, nil)
		}
		if err := (&state.Batch{Records: n.records, Puts: n.puts}).Check(); err != nil {
			return nil, err // it fails its step, and not the run
		}
		parts, news = append(parts, n), append(news, f)
	}
	if len(news) == 0 {
		return nil, l.failure()
	}
	if err := l.writeParts(parts); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range news {
		l.facts[f.Key] = f
	}
	return news, nil
}
