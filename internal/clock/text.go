// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"fmt"
	"time"
)

// Text writes a duration for a person: 0.3s, 3m12s, 5h12m, 324d15h. What does not
// matter beside the rest is left out; a negative duration, of a clock that was set
// back, is 0s.
func Text(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(0, d); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour-time.Second/2:
		return d.Round(time.Second).String()
	case d < 2*day-time.Minute/2:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// Took writes the time from one moment to a later one, "an unknown time" when one of
// them is not known.
func Took(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return "an unknown time"
	}
	return Text(to.Sub(from).Round(time.Second))
}
