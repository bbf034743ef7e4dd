// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"math"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"}, {345 * time.Millisecond, "345ms"}, {1234 * time.Millisecond, "1.2s"}, {12 * time.Second, "12s"},
		{192 * time.Second, "3m12s"}, {time.Hour - time.Second, "59m59s"}, {time.Hour - time.Millisecond, "1h0m"}, {5*time.Hour + 12*time.Minute + 40*time.Second, "5h13m"},
		{24*time.Hour - time.Second, "24h0m"}, {48 * time.Hour, "2d0h"}, {7791*time.Hour + 21*time.Minute + 29*time.Second, "324d15h"},
		{-time.Hour, "0s"}, {math.MinInt64, "0s"}, {math.MaxInt64, "106751d23h"},
	} {
		if got := Text(c.d); got != c.want {
			t.Errorf("%d is %s, want %s", c.d, got, c.want)
		}
	}
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		from, to time.Time
		want     string
	}{
		{now, now.Add(90 * time.Second), "1m30s"}, {now, now.Add(-time.Second), "0s"},
		{time.Time{}, now, "an unknown time"}, {now, time.Time{}, "an unknown time"},
	} {
		if got := Took(c.from, c.to); got != c.want {
			t.Errorf("from %s to %s: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}
