// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/speed"
)

// machine does the work of the agent's measurements: it takes its time, and the figures are
// those of the hardware.
type machine struct{ n *node }

var _ speed.Machine = machine{}

// each is what a node's CPUs come to, once the time is over.
func (m machine) each(ctx context.Context, cpus []int, long time.Duration, rate func(cpu int) float64) ([]float64, error) {
	if rate == nil {
		return nil, errkind.New(errkind.Unsupported, "nobody knows how fast this node is")
	}
	if err := m.n.cfg.Clock.Sleep(ctx, long); err != nil {
		return nil, err
	}
	list := make([]float64, 0, len(cpus))
	for _, cpu := range cpus {
		list = append(list, rate(cpu))
	}
	return list, nil
}

// Triad implements speed.Machine.
func (m machine) Triad(ctx context.Context, cpus []int, _ int64, long time.Duration) ([]float64, error) {
	return m.each(ctx, cpus, long, m.n.cfg.TriadRate)
}

// Rounds implements speed.Machine.
func (m machine) Rounds(ctx context.Context, cpus []int, long time.Duration) ([]float64, error) {
	return m.each(ctx, cpus, long, m.n.cfg.RoundRate)
}

// Read implements speed.Machine.
func (m machine) Read(ctx context.Context, path string, size, most int64, long time.Duration) (int64, time.Duration, bool, error) {
	rate := 0.0
	if m.n.cfg.ReadRate != nil {
		rate = m.n.cfg.ReadRate(path)
	}
	if rate <= 0 {
		return 0, 0, false, errkind.New(errkind.NotFound, "nobody reads %s", path)
	}
	bytes := min(float64(min(size, most)), rate*long.Seconds())
	took := time.Duration(bytes / rate * float64(time.Second))
	if err := m.n.cfg.Clock.Sleep(ctx, took); err != nil {
		return 0, 0, false, err
	}
	return int64(bytes), took, false, nil
}
