// SPDX-License-Identifier: Apache-2.0

package state

import "github.com/ironrail/ironrail/engine/state/commit"

// Groups lets one of several concurrent writers write for all, exactly as those of
// a file do.
type Groups struct{ groups commit.Queue[*pending] }

// Append returns when line was written with those of its group.
func (g *Groups) Append(line []byte, write func(lines [][]byte) error) error {
	p := &pending{lines: [][]byte{line}}
	g.groups.Join(p, func(group []*pending) {
		lines := make([][]byte, len(group))
		for i, p := range group {
			lines[i] = p.lines[0]
		}
		err := write(lines)
		for _, p := range group {
			p.err = err
		}
	})
	return p.err
}
