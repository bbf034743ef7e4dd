// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"math"
	"strconv"
	"strings"
)

// Time is what chronyd says of the clock.
type Time struct {
	Offset float64 // of the clock from the true time, seconds
	Synced bool
}

// time asks chronyd.
func (l *looker) time(ctx context.Context) error {
	out, status, there, err := l.run(ctx, "chronyc", "-n", "-c", "tracking")
	if err != nil || !there {
		return err
	}
	if t, ok := parseTracking(string(out)); ok && status == 0 {
		l.seen.Time = &t
		return nil
	}
	l.seen.Gaps = append(l.seen.Gaps, "chronyc did not say how good the clock is")
	return nil
}

// parseTracking reads a report of chronyc -c: comma-separated, the offset fifth, the
// leap status last (chrony, client.c).
func parseTracking(s string) (Time, bool) {
	f := strings.Split(strings.TrimSpace(s), ",")
	if len(f) != 14 {
		return Time{}, false
	}
	offset, err := strconv.ParseFloat(f[4], 64)
	if err != nil || math.IsNaN(offset) || math.IsInf(offset, 0) { // no limit compares with these
		return Time{}, false
	}
	return Time{offset, f[13] != "Not synchronised"}, true
}
