// SPDX-License-Identifier: Apache-2.0

package throughput

import (
	"fmt"

	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/throughput/exchange"
)

// Report is the measurement as the tests of groups have theirs.
func (r Report) Report() result.Report {
	rep := result.Report{At: r.At, Members: r.Members, NotJudged: r.Notes}
	if len(r.Rows) == 0 {
		return rep
	}
	rep.Proves = "What nodes send and receive by TCP over the networks that are no fabrics, for some seconds, with partners on their own leaf. It does not prove these networks between leaves, nor under the load of all nodes at once."
	for _, row := range r.Rows {
		one := result.Result{Check: floor.NetworkTCP, Part: fmt.Sprintf("network %s, what hardware %s %s", row.Network, row.Hardware, row.Direction), Measured: row.Least, Unit: "B/s", Transport: "TCP", Evidence: r.Evidence,
			Params: fmt.Sprintf("%d connections for %d s; the slowest of %d nodes, median %s", exchange.Streams, exchange.Seconds, row.Count, result.FormatRate(row.Median))}
		switch {
		case row.Groups != nil:
			one = result.WithVerdict(one, true, "its nodes are in two groups: the finding about the role names both")
		case row.Floor > 0:
			one.Limit, one.Rule = ">= "+result.FormatRate(row.Floor), fmt.Sprintf("%.0f%% of the median", 100*row.Floor/row.Median)
			one = result.WithVerdict(one, row.Least < row.Floor, "one is slow: the finding names it")
		default:
			one.Verdict, one.Why = result.NotJudged, "they are too few to be compared, or scatter too much"
		}
		rep.Results = append(rep.Results, one)
	}
	return rep
}
