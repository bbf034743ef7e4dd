// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/provision/bmc"
)

// askParallel is how many BMCs are asked at once.
const askParallel = 64

// Ask asks the BMCs of nodes, all of them when none is named, at once. It gives
// each answer to tell when it comes, one at a time, and returns all in the order of the
// site.
func (b BMCs) Ask(ctx context.Context, q control.BMCQuestion, names map[string]bool, tell func(control.BMCAnswer)) []control.BMCAnswer {
	var out []control.BMCAnswer
	for _, n := range b.Inv.Nodes {
		if len(names) == 0 || names[n.Name] {
			out = append(out, control.BMCAnswer{Node: n.Name})
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // one tells at a time
	slots := make(chan struct{}, askParallel)
	for i := range out {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			b.answer(ctx, q, &out[i])
			mu.Lock()
			defer mu.Unlock()
			tell(out[i])
		})
	}
	wg.Wait()
	return out
}

// answer fills in what the BMC of one node says.
func (b BMCs) answer(ctx context.Context, q control.BMCQuestion, a *control.BMCAnswer) {
	ctx, cancel := context.WithTimeout(ctx, askTime[q.For])
	defer cancel()
	h, err := b.Handle(a.Node)
	if err == nil {
		err = ask(ctx, h, q, a)
	}
	if err != nil {
		a.Error = err.Error()
	}
	a.At = time.Now().UTC()
}

// askTime is how long a BMC has: logs and sensors are many requests to slow ones.
var askTime = map[string]time.Duration{control.AskPower: 20 * time.Second, control.AskLog: 2 * time.Minute, control.AskSensors: 2 * time.Minute}

func ask(ctx context.Context, h *bmc.Handle, q control.BMCQuestion, a *control.BMCAnswer) error {
	switch q.For {
	case control.AskLog:
		return bmc.Use(ctx, h, "read the event log", func(e bmc.EventLog) error {
			entries, err := e.EventLog(ctx, q.Last)
			for _, x := range entries {
				a.Log = append(a.Log, control.LogEntry{Time: x.Created, Severity: x.Severity, Text: x.Message})
			}
			return err
		})
	case control.AskSensors:
		return bmc.Use(ctx, h, "read the sensors", func(s bmc.Sensors) error {
			readings, err := s.Sensors(ctx)
			for _, x := range readings {
				a.Sensors = append(a.Sensors, control.Sensor{Name: x.Name, Value: x.Value, Unit: x.Unit})
			}
			return err
		})
	}
	state, err := h.PowerState(ctx)
	a.State = string(state)
	return err
}
