// SPDX-License-Identifier: Apache-2.0

package since

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/uniform"
)

// UnreadGates are those of some health checks that were judged before and are not now, each with the
// reason.
func UnreadGates(before, now []judge.Outcome, of []string) (list []string) {
	for _, was := range before {
		if was.Verdict == judge.NotJudged || !slices.Contains(of, was.Gate) {
			continue
		}
		why, judged := "nothing is reported of it", false
		for _, is := range now {
			switch {
			case is.Gate != was.Gate:
			case is.Verdict == judge.NotJudged:
				why = is.Why
			default:
				judged = true
			}
		}
		if !judged {
			list = append(list, "health check "+was.Gate+" ("+why+")")
		}
	}
	return list
}

// UnreadPorts names the ports that told what they counted at the health checks, and do not now.
func UnreadPorts(was, is *Counts, names map[string]string) (list []string) {
	if was == nil {
		return nil
	}
	now := map[string]rail.PortCounters{}
	if is != nil {
		now = is.byPort()
	}
	for _, part := range slices.Sorted(maps.Keys(was.byPort())) {
		if name := names[part]; name != "" && now[part] == nil {
			list = append(list, "what "+name+" counted")
		}
	}
	return list
}

// ofBMC are the traits that a node's BMC tells, which is asked by itself.
var ofBMC = []string{uniform.BMC, uniform.Fans, uniform.Supplies}

// UnreadTraits names the models, versions and settings that were told at the health checks, and
// are not now, but for those of the BMC.
func UnreadTraits(was, is []uniform.Trait) (list []string) {
	now := uniform.GroupTraits(is)
	for _, k := range slices.SortedFunc(maps.Keys(uniform.GroupTraits(was)), uniform.About.Compare) {
		if len(now[k]) == 0 && !slices.Contains(ofBMC, k.Key) {
			list = append(list, uniform.Row{Key: k.Key, Of: k.Of}.Name())
		}
	}
	return list
}

// mostUnread is how many things a sentence names that could not be read.
const mostUnread = 4

// UnreadFault is that some of what could be read at the health checks could not be read again,
// however often it was asked for. It is the node's that it does not report, and no part's.
func UnreadFault(unread []string, times int) judge.Fault {
	names := strings.Join(unread[:min(len(unread), mostUnread)], ", ")
	if more := len(unread) - mostUnread; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return judge.Fault{Evidence: unread,
		Cause:  fmt.Sprintf("could not be read again, %d times, and was read at the health checks: %s; whether it is as it was tested is not known", times, names),
		Action: "See why the node does not report it any more: the program, its driver and the kernel's log (dmesg); then run `ironrail apply` again: the node is tested again."}
}
