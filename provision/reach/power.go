// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/control"
)

// powerParallel is how many BMCs are asked at once.
const powerParallel = 64

// PowerOf asks the BMCs of nodes, all of them when none is named, at once. It gives
// each answer to tell when it comes, one at a time, and returns all in the order of the
// site.
func (b BMCs) PowerOf(ctx context.Context, names map[string]bool, tell func(control.BMCAnswer)) []control.BMCAnswer {
	var out []control.BMCAnswer
	for _, n := range b.Inv.Nodes {
		if len(names) == 0 || names[n.Name] {
			out = append(out, control.BMCAnswer{Node: n.Name})
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // one tells at a time
	slots := make(chan struct{}, powerParallel)
	for i := range out {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			b.readPower(ctx, &out[i])
			mu.Lock()
			defer mu.Unlock()
			tell(out[i])
		})
	}
	wg.Wait()
	return out
}

// readPower fills in the power of one node.
func (b BMCs) readPower(ctx context.Context, p *control.BMCAnswer) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	h, err := b.Handle(p.Node)
	if err == nil {
		state, perr := h.PowerState(ctx)
		p.State, err = string(state), perr
	}
	if err != nil {
		p.Error = err.Error()
	}
	p.At = time.Now().UTC()
}
