// SPDX-License-Identifier: Apache-2.0

package nodecheck

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
)

// The lines of /proc/mdstat (drivers/md/md.c, md_seq_show).
var (
	arrayLine = lazyregexp.New(`^(md[^ ]*) : active (?:\([a-z-]+\) )?([a-z]+[0-9]*) `)
	countLine = lazyregexp.New(`\[([0-9]+)/([0-9]+)\] \[[U_]+\]`)
	doingLine = lazyregexp.New(`(resync|recovery|reshape|check)\s*=\s*(?:([0-9.]+)%|(?:DELAYED|PENDING))`)
)

// Arrays reads the text of /proc/mdstat: the arrays that run, and what the kernel does to them
// beside their work. A resync that waits for another is at 0 %.
func Arrays(text string) (all []wire.Array) {
	for line := range strings.Lines(text) {
		if m := arrayLine.FindStringSubmatch(line); m != nil {
			all = append(all, wire.Array{Name: m[1], Level: m[2]})
			continue
		}
		if len(all) == 0 {
			continue
		}
		a := &all[len(all)-1]
		if m := countLine.FindStringSubmatch(line); m != nil {
			a.Disks, _ = strconv.Atoi(m[1]) // the form has digits alone
			a.Active, _ = strconv.Atoi(m[2])
		}
		if m := doingLine.FindStringSubmatch(line); m != nil {
			a.Doing = m[1]
			a.Percent, _ = strconv.ParseFloat(m[2], 64) // "": it waits
		}
	}
	return all
}
