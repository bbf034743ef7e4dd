// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// logged is what opensm's log says about one load of its files.
type logged struct {
	Up       bool     // a sweep has ended: SUBNET UP
	Standby  bool     // another manager is the master
	Engine   string   // that routed last; empty: none since
	Problems []string // what it could not read or do, in its own words
}

var (
	engineLine = lazyregexp.New(`ucast_mgr_process: (\S+) tables configured on all switches`)
	stamp      = lazyregexp.New(`^\w{3} +\d+ \d\d:\d\d:\d\d \d+ \[[0-9A-F]+\] 0x[0-9a-f]+ -> `)
)

// logTroubles are what opensm logs once and goes on without. Everything that it
// says of a parser is one of them: after a syntax error in partitions.conf the
// subnet comes up, with no isolation.
var logTroubles = []string{
	"PARSE ERROR", "Partition configuration in error", "cannot find or setup routing engine", "Failed to setup routing engine",
	"cannot build lid matrices", "Found more than one root", "cannot parse node map", "Failed to parse", "duplicated GUID",
}

// readLog reads a piece of opensm's log.
func readLog(text []byte) (l logged) {
	for line := range strings.SplitSeq(string(text), "\n") {
		if m := engineLine.FindStringSubmatch(line); m != nil {
			l.Engine = m[1]
		}
		switch {
		case strings.Contains(line, "SUBNET UP"):
			l.Up = true
		case strings.Contains(line, "Entering STANDBY state"):
			l.Standby = true
		case strings.Contains(line, "Entering MASTER state"):
			l.Standby = false
		}
		for _, words := range logTroubles {
			if strings.Contains(line, words) {
				l.Problems = append(l.Problems, strings.TrimSpace(stamp.ReplaceAllString(line, "")))
				break
			}
		}
	}
	return l
}
